"""The status of a pass that could not do all that it wanted, or anything at all."""

from datetime import UTC, datetime
from typing import Any

import pytest

from triton_converters.contract.reasons import Reason
from triton_operator.api.status import Condition, TritonDeploymentStatus
from triton_operator.planning.plan import Event, Plan
from triton_operator.planning.setbacks import Report, failed, held_up, not_stored, stalled

NOW = datetime(2026, 11, 21, 10, 0, 5, 999, tzinfo=UTC)


def an_owner(stored: TritonDeploymentStatus) -> dict[str, Any]:
    """A TritonDeployment of generation 3 with that status."""
    status = stored.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_defaults=True)
    return {"metadata": {"name": "digits", "generation": 3}, "status": status}


def a_condition(type: Any, status: Any, time: str = "2026-11-21T09:00:00Z") -> Condition:
    return Condition(
        type=type, status=status, reason="Some", message="", observed_generation=2, last_transition_time=time
    )


def test_stalled_keeps_what_is_known_and_the_time_it_began() -> None:
    old = TritonDeploymentStatus(
        observed_generation=2, conditions=[a_condition("Stalled", "True"), a_condition("Ready", "True")]
    )
    wanted = TritonDeploymentStatus(
        observed_generation=2,
        conditions=[a_condition("Ready", "True"), a_condition("Converted", "True"), a_condition("Stalled", "False")],
    )
    report = stalled(an_owner(old), wanted, Reason.APPLY_REFUSED, "Job j: no", NOW)
    status = report.status
    found = {item.type: (item.status, item.reason, item.last_transition_time) for item in status.conditions}
    assert found == {
        "Ready": ("False", "ApplyRefused", "2026-11-21T10:00:05Z"),
        "UpToDate": ("False", "ApplyRefused", "2026-11-21T10:00:05Z"),
        "Reconciling": ("False", "ApplyRefused", "2026-11-21T10:00:05Z"),
        "Stalled": ("True", "ApplyRefused", "2026-11-21T09:00:00Z"),
        "Converted": ("True", "Some", "2026-11-21T09:00:00Z"),
    }
    assert status.observed_generation == 3
    again = stalled(an_owner(status), wanted, Reason.APPLY_REFUSED, "Job j: no", NOW)
    assert again == Report(status), "then nothing is written, and no Event posted"


def test_a_refusal_of_what_something_newer_needs_leaves_the_object_ready() -> None:
    met = [("Ready", "True"), ("UpToDate", "False"), ("Reconciling", "False"), ("Stalled", "False")]
    wanted = TritonDeploymentStatus(observed_generation=3, conditions=[a_condition(*each) for each in met])

    def found(reason: Reason) -> dict[str, tuple[str, str]]:
        status = stalled(an_owner(wanted), wanted, reason, "Job j: exceeded quota", NOW).status
        return {item.type: (item.status, item.reason) for item in status.conditions}

    assert found(Reason.APPLY_REFUSED) == {
        "Ready": ("True", "Some"),
        "UpToDate": ("False", "ApplyRefused"),
        "Reconciling": ("False", "ApplyRefused"),
        "Stalled": ("False", "Some"),
    }
    assert {each[0] for each in found(Reason.INVALID_SPEC).values()} == {"False", "True"}
    assert found(Reason.INVALID_SPEC)["Ready"] == ("False", "InvalidSpec"), "the spec is another one"


SETTLED = [("Ready", "True"), ("UpToDate", "True"), ("Reconciling", "False"), ("Stalled", "False")]
NEWER = [("Ready", "True"), ("UpToDate", "False"), ("Reconciling", "False"), ("Stalled", "False")]
FAILED = [("Ready", "False"), ("UpToDate", "False"), ("Reconciling", "False"), ("Stalled", "True")]
BEGUN = [("Ready", "False"), ("UpToDate", "False"), ("Reconciling", "True"), ("Stalled", "False")]


@pytest.mark.parametrize(
    ("before", "reconciling"), [(SETTLED, "True"), (BEGUN, "True"), (NEWER, "False"), (FAILED, "False")]
)
def test_what_fails_for_long_is_told_by_reconciling_alone(before: list[Any], reconciling: str) -> None:
    wanted = TritonDeploymentStatus(observed_generation=3, conditions=[a_condition(*each) for each in before])
    report = held_up(an_owner(wanted), Plan((), (), wanted, (), None), "Service digits: webhook down", NOW)
    found = {each.type: (each.status, each.reason) for each in report.status.conditions}
    assert found == {each.type: (each.status, each.reason) for each in wanted.conditions} | {
        "Reconciling": (reconciling, "ApplyFailed")
    }
    message = "objects could not be written, and the operator tries again: Service digits: webhook down"
    assert report.events == (Event("Warning", "ApplyFailed", message),)


def test_the_same_failure_by_another_port_changes_nothing() -> None:
    wanted = TritonDeploymentStatus(observed_generation=3, conditions=[a_condition(*each) for each in SETTLED])
    plan = Plan((), (), wanted, (), None)
    first = held_up(an_owner(wanted), plan, "Service digits: read tcp 10.0.0.1:51234: connection reset", NOW)
    again = held_up(an_owner(first.status), plan, "Service digits: read tcp 10.0.0.1:51250: connection reset", NOW)
    assert again == Report(first.status)
    other = held_up(an_owner(first.status), plan, "ConfigMap digits-results: connection refused", NOW)
    assert other.status != first.status
    assert other.events == ()


@pytest.mark.parametrize(
    ("tell", "reason", "words"),
    [
        (failed, "InternalError", "the operator failed: ValueError: no such stage. "),
        (not_stored, "StatusRefused", "the API server refuses the status of this object: no such stage. "),
    ],
)
def test_what_ends_a_pass_leaves_the_rest_of_the_status(tell: Any, reason: str, words: str) -> None:
    conditions = [a_condition(*each) for each in (*SETTLED, ("Verified", "True"))]
    stored = TritonDeploymentStatus(observed_generation=2, conditions=conditions)
    report = tell(an_owner(stored), ValueError("no such stage"), NOW)
    found = {each.type: each for each in report.status.conditions}
    assert {each.reason for kind, each in found.items() if kind != "Verified"} == {reason}
    assert found["Verified"] == conditions[-1]
    assert found["Stalled"].message.startswith(words)
    assert [each.reason for each in report.events] == [reason]
    assert tell(an_owner(report.status), ValueError("no such stage"), NOW).status == report.status


def test_a_refusal_while_nothing_newer_is_worked_on_stalls_the_object() -> None:
    soaked = [a_condition("Ready", "True"), a_condition("UpToDate", "False").model_copy(update={"reason": "Soaking"})]
    wanted = TritonDeploymentStatus(observed_generation=3, conditions=soaked)
    status = stalled(an_owner(wanted), wanted, Reason.APPLY_REFUSED, "Service digits: no", NOW).status
    assert {item.type: item.status for item in status.conditions}["Ready"] == "False"
