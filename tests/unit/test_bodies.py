"""The bodies of the status and of Events."""

from datetime import UTC, datetime
from typing import Any

from triton_operator.api.status import Condition, TritonDeploymentStatus
from triton_operator.api.triton_deployment import parse_status
from triton_operator.kube.bodies import event_body, status_body

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


def test_an_event_is_about_the_object_and_within_the_limit() -> None:
    body = event_body(OWNER, "Warning", "ApplyRefused", "x" * 2000, NOW)
    assert body["involvedObject"]["uid"] == "u"
    assert body["metadata"] == {"generateName": "digits.", "namespace": "vision"}
    assert len(body["message"]) == 1024
