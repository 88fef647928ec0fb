"""The bodies of the status and of Events."""

from datetime import UTC, datetime
from typing import Any

from triton_converters.contract.reasons import Reason
from triton_operator.api.deployment import parse_status
from triton_operator.api.status import Condition, TritonDeploymentStatus
from triton_operator.kube.bodies import event_body, stalled, status_body

NOW = datetime(2026, 11, 21, 10, 0, 5, 999, tzinfo=UTC)
OWNER: dict[str, Any] = {
    "apiVersion": "triton-operator.dev/v1alpha1",
    "kind": "TritonDeployment",
    "metadata": {"name": "digits", "namespace": "vision", "uid": "u", "resourceVersion": "7", "generation": 3},
}


def a_condition(type: Any, status: Any, time: str = "2026-11-21T09:00:00Z") -> Condition:
    return Condition(
        type=type, status=status, reason="Some", message="", observed_generation=2, last_transition_time=time
    )


def test_a_status_survives_the_way_to_the_api_server_and_back() -> None:
    status = TritonDeploymentStatus(observed_generation=3, conditions=[a_condition("Ready", "True")])
    body = status_body(OWNER, status)
    assert body["metadata"] == {"name": "digits", "namespace": "vision", "resourceVersion": "7"}
    assert parse_status({"status": body["status"]}) == status
    assert set(body["status"]) == {"observedGeneration", "conditions"}, "defaults are left out"


def test_a_status_that_is_none_counts_as_empty() -> None:
    assert parse_status({}) == TritonDeploymentStatus()
    assert parse_status({"status": {"conditions": "many"}}) == TritonDeploymentStatus()


def test_stalled_keeps_what_is_known_and_the_time_it_began() -> None:
    old = TritonDeploymentStatus(
        observed_generation=2, conditions=[a_condition("Stalled", "True"), a_condition("Ready", "True")]
    )
    wanted = TritonDeploymentStatus(
        observed_generation=2,
        conditions=[a_condition("Ready", "True"), a_condition("Converted", "True"), a_condition("Stalled", "False")],
    )
    status = stalled(OWNER, old, wanted, Reason.APPLY_REFUSED, "Job j: no", NOW)
    found = {item.type: (item.status, item.reason, item.last_transition_time) for item in status.conditions}
    assert found == {
        "Ready": ("False", "ApplyRefused", "2026-11-21T10:00:05Z"),
        "UpToDate": ("False", "ApplyRefused", "2026-11-21T10:00:05Z"),
        "Reconciling": ("False", "ApplyRefused", "2026-11-21T10:00:05Z"),
        "Stalled": ("True", "ApplyRefused", "2026-11-21T09:00:00Z"),
        "Converted": ("True", "Some", "2026-11-21T09:00:00Z"),
    }
    assert status.observed_generation == 3
    assert stalled(OWNER, status, wanted, Reason.APPLY_REFUSED, "Job j: no", NOW) == status, "then nothing is written"


def test_a_refusal_of_what_something_newer_needs_leaves_the_object_ready() -> None:
    met = [("Ready", "True"), ("UpToDate", "False"), ("Reconciling", "False"), ("Stalled", "False")]
    wanted = TritonDeploymentStatus(observed_generation=3, conditions=[a_condition(*each) for each in met])

    def found(reason: Reason) -> dict[str, tuple[str, str]]:
        status = stalled(OWNER, wanted, wanted, reason, "Job j: exceeded quota", NOW)
        return {item.type: (item.status, item.reason) for item in status.conditions}

    assert found(Reason.APPLY_REFUSED) == {
        "Ready": ("True", "Some"),
        "UpToDate": ("False", "ApplyRefused"),
        "Reconciling": ("False", "ApplyRefused"),
        "Stalled": ("False", "Some"),
    }
    assert {each[0] for each in found(Reason.INVALID_SPEC).values()} == {"False", "True"}
    assert found(Reason.INVALID_SPEC)["Ready"] == ("False", "InvalidSpec"), "the spec is another one"


def test_an_event_is_about_the_object_and_within_the_limit() -> None:
    body = event_body(OWNER, "Warning", "ApplyRefused", "x" * 2000, NOW)
    assert body["involvedObject"]["uid"] == "u"
    assert body["metadata"] == {"generateName": "digits.", "namespace": "vision"}
    assert len(body["message"]) == 1024
