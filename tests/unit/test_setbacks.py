"""The status of a pass that could not do all that it wanted, or anything at all."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.unit.truth_table import ANY, Rows, decided, idle
from triton_converters.contract.reasons import Reason
from triton_operator.api.status import Condition, TritonDeploymentStatus
from triton_operator.planning.plan import Event, Plan
from triton_operator.planning.setbacks import (
    TOLD_AFTER,
    Report,
    apply_failed,
    apply_refused,
    failing_since,
    internal_error,
    invalid,
    is_told,
    report,
    request_failed,
    status_refused,
)
from triton_operator.planning.summary import Hindrance, SummaryFacts, summary_truths

NOW = datetime(2026, 11, 21, 10, 0, 5, 999, tzinfo=UTC)


def an_owner(stored: TritonDeploymentStatus) -> dict[str, Any]:
    """A TritonDeployment of generation 3 with that status."""
    status = stored.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_defaults=True)
    return {"metadata": {"name": "digits", "generation": 3}, "status": status}


SETTLED = SummaryFacts(True, False, True, True, False, False, False)
NEWER = replace(SETTLED, complete=False)
FAILED = replace(NEWER, met=False, stalled=True)
BEGUN = replace(NEWER, met=False)
"""The facts of a plan, but for what hinders it."""


def a_plan(status: TritonDeploymentStatus, facts: SummaryFacts) -> Plan:
    return Plan((), (), status, (), None, facts)


def a_condition(type: Any, status: Any, time: str = "2026-11-21T09:00:00Z") -> Condition:
    return Condition(
        type=type, status=status, reason="Some", message="", observed_generation=2, last_transition_time=time
    )


def said_of(facts: SummaryFacts) -> list[Any]:
    """Type and status of the conditions that summarize."""
    return [(type, str(value)) for type, value in summary_truths(facts).items()]


TOLD: Rows = {
    # hindrance, how long passes fail -> whether the user is told
    "what may pass by itself has just begun": (Hindrance.FAILS, timedelta(), False),
    "what may pass by itself is not long": (Hindrance.FAILS, TOLD_AFTER - timedelta(microseconds=1), False),
    "all else": (ANY, ANY, True),
}


def test_what_waits_for_a_person_is_told_at_once_and_all_else_once_it_lasts() -> None:
    ages = [timedelta(), TOLD_AFTER - timedelta(microseconds=1), TOLD_AFTER, timedelta(days=1)]
    every = [_Case(hindrance, age) for hindrance in Hindrance for age in ages]
    for each in every:
        assert is_told(each.hindrance, NOW, NOW + each.age) is decided(TOLD, each), each
    assert idle(TOLD, every) == []


@dataclass
class _Case:
    hindrance: Hindrance
    age: timedelta


def test_stalled_keeps_what_is_known_and_the_time_it_began() -> None:
    old = TritonDeploymentStatus(
        observed_generation=2, conditions=[a_condition("Stalled", "True"), a_condition("Ready", "True")]
    )
    wanted = TritonDeploymentStatus(
        observed_generation=2,
        conditions=[a_condition("Ready", "True"), a_condition("Converted", "True"), a_condition("Stalled", "False")],
    )
    setback = apply_refused("Job j: no")
    found = report(an_owner(old), setback, a_plan(wanted, SETTLED), NOW)
    status = found.status
    assert {item.type: (item.status, item.reason, item.last_transition_time) for item in status.conditions} == {
        "Ready": ("False", "ApplyRefused", "2026-11-21T10:00:05Z"),
        "UpToDate": ("False", "ApplyRefused", "2026-11-21T10:00:05Z"),
        "Reconciling": ("False", "ApplyRefused", "2026-11-21T10:00:05Z"),
        "Stalled": ("True", "ApplyRefused", "2026-11-21T09:00:00Z"),
        "Converted": ("True", "Some", "2026-11-21T09:00:00Z"),
    }
    assert status.observed_generation == 3
    again = report(an_owner(status), setback, a_plan(wanted, SETTLED), NOW)
    assert again == Report(status), "then nothing is written, and no Event posted"


@pytest.mark.parametrize("reason", ["Running", "RolloutHeld"])
def test_a_refusal_of_what_something_newer_needs_leaves_the_object_ready(reason: str) -> None:
    """Also while its canary is held, which has the reason of a soak that is held."""
    wanted = TritonDeploymentStatus(
        observed_generation=3,
        conditions=[a_condition(*each).model_copy(update={"reason": reason}) for each in said_of(NEWER)],
    )
    status = report(an_owner(wanted), apply_refused("Job j: exceeded quota"), a_plan(wanted, NEWER), NOW).status
    assert {item.type: (item.status, item.reason) for item in status.conditions} == {
        "Ready": ("True", reason),
        "UpToDate": ("False", "ApplyRefused"),
        "Reconciling": ("False", "ApplyRefused"),
        "Stalled": ("False", "NoStall"),
    }
    status = report(an_owner(wanted), invalid(Reason.INVALID_SPEC, "no"), None, NOW).status
    assert {item.type: (item.status, item.reason) for item in status.conditions}["Ready"] == ("False", "InvalidSpec")


@pytest.mark.parametrize(
    ("facts", "reconciling"), [(SETTLED, "True"), (BEGUN, "True"), (NEWER, "False"), (FAILED, "False")]
)
def test_what_fails_for_long_is_told_by_reconciling_alone(facts: SummaryFacts, reconciling: str) -> None:
    says = said_of(facts)
    wanted = TritonDeploymentStatus(observed_generation=3, conditions=[a_condition(*each) for each in says])
    wanted = wanted.model_copy(update={"conditions": [*wanted.conditions, a_condition("Converted", "True")]})
    done = Event("Normal", "Converted", "Converted: yes")
    plan = replace(a_plan(wanted, facts), events=(done,))
    found = report(an_owner(wanted), apply_failed("Service digits: webhook down"), plan, NOW)
    told = {each.type: each for each in found.status.conditions}
    assert (told["Reconciling"].status, told["Reconciling"].reason) == (reconciling, "ApplyFailed")
    assert [(type, told[type].status) for type, _ in says if type != "Reconciling"] == [
        each for each in says if each[0] != "Reconciling"
    ]
    assert {each.reason for type, each in told.items() if type not in ("Reconciling", "Stalled")} == {"Some"}
    message = "objects could not be written, and the operator tries again: Service digits: webhook down"
    assert found.events == (done, Event("Warning", "ApplyFailed", message))


def test_the_same_failure_by_another_port_changes_nothing() -> None:
    says = said_of(SETTLED)
    wanted = TritonDeploymentStatus(observed_generation=3, conditions=[a_condition(*each) for each in says])
    plan = a_plan(wanted, SETTLED)

    def again(stored: TritonDeploymentStatus, words: str) -> Report:
        return report(an_owner(stored), apply_failed(words), plan, NOW)

    first = again(wanted, "Service digits: read tcp 10.0.0.1:51234: connection reset")
    assert again(first.status, "Service digits: read tcp 10.0.0.1:51250: connection reset") == Report(first.status)
    other = again(first.status, "ConfigMap digits-results: connection refused")
    assert other.status != first.status
    assert other.events == ()


SAME = {
    "memory": ("<Pod at 0x7f3a91b2c4d0>", "<Pod at 0x7f3a91b2ffff>"),
    "UUID of a request": (
        'admission webhook "policy.example" denied the request: id 3f2504e0-4f89-41d3-9a0c-0305e82c3301: later',
        'admission webhook "policy.example" denied the request: id 6ba7b810-9dad-11d1-80b4-00c04fd430c8: later',
    ),
    "id of a trace": (
        "502 Bad Gateway, trace 4bf92f3577b34da6a3ce929d0e0e4736",
        "502 Bad Gateway, trace 0af7651916cd43dd8448eb211c80319c",
    ),
    "time": (
        "x509: certificate has expired: current time 2026-11-21T10:00:05Z is after 2026-11-20T00:00:00Z",
        "x509: certificate has expired: current time 2026-11-21T10:00:35Z is after 2026-11-20T00:00:00Z",
    ),
    "connection": (
        "read tcp 10.0.0.1:51234->10.96.0.1:443: connection reset by peer",
        "read tcp 10.0.0.1:1025->10.96.0.2:443: connection reset by peer",
    ),
    "IPv6": ("dial tcp [fd00::12]:9443: connection refused", "dial tcp [fd00::9]:9443: connection refused"),
    "duration": ("no answer after 1m2.5s", "no answer after 59.125s"),
    "words of a duration": ("try again in 5 seconds", "try again in 1 second"),
    "conflict": (
        "the ResourceVersion in the precondition (812) does not match the ResourceVersion in record (813)",
        "the ResourceVersion in the precondition (814) does not match the ResourceVersion in record (820)",
    ),
    "stream": ("stream error: stream ID 17; INTERNAL_ERROR", "stream error: stream ID 19; INTERNAL_ERROR"),
    "last stream": ("GOAWAY; LastStreamID=1999, ErrCode=NO_ERROR", "GOAWAY; LastStreamID=2001, ErrCode=NO_ERROR"),
    "length": ("IncompleteRead(512 bytes read, 70 more expected)", "IncompleteRead(98 bytes read, 484 more expected)"),
    "request": ("request 123456 was dropped", "request 9876543 was dropped"),
}
OTHER = {
    "status of HTTP": ("HTTP 502 bad gateway", "HTTP 503 bad gateway"),
    "count": ("2 objects are locked", "3 objects are locked"),
    "bound": ("status.candidates: Too many: 19", "status.candidates: Too many: 20"),
    "object": ("Job digits-convert-1a2b", "Job digits-convert-3a4b"),
    "error of the system": ("[Errno 111] Connection refused", "[Errno 113] Connection refused"),
    "quantity": ("1500m of cpu are used", "2500m of cpu are used"),
}


def told_of(stored: TritonDeploymentStatus, words: str) -> TritonDeploymentStatus:
    """The status of a pass that failed for it."""
    return report(an_owner(stored), request_failed(ValueError(words)), None, NOW).status


@pytest.mark.parametrize("case", SAME)
def test_what_varies_by_itself_is_not_told_anew(case: str) -> None:
    first, again = SAME[case]
    told = told_of(TritonDeploymentStatus(), first)
    assert told_of(told, again) == told


@pytest.mark.parametrize("case", SAME)
def test_a_refusal_that_differs_in_what_varies_by_itself_is_not_told_anew(case: str) -> None:
    first, again = SAME[case]
    told = report(an_owner(TritonDeploymentStatus()), apply_refused(first), None, NOW).status
    assert report(an_owner(told), apply_refused(again), None, NOW) == Report(told)


@pytest.mark.parametrize("case", OTHER)
def test_what_makes_it_another_failure_is_told(case: str) -> None:
    first, again = OTHER[case]
    told = told_of(told_of(TritonDeploymentStatus(), first), again)
    assert told.failing is not None
    assert again in told.failing.message


def test_a_failure_that_the_status_tells_of_has_lasted() -> None:
    told = told_of(TritonDeploymentStatus(), "etcd: timed out")
    assert failing_since(an_owner(told), NOW) == NOW - TOLD_AFTER
    assert failing_since(an_owner(TritonDeploymentStatus()), NOW) == NOW


@pytest.mark.parametrize(
    ("setback", "reason", "words"),
    [
        (internal_error, "InternalError", "the operator failed: ValueError: no such stage. "),
        (request_failed, "RequestFailed", "a request to the API server failed: no such stage. "),
        (status_refused, "StatusRefused", "the API server refuses the status of this object: no such stage. "),
    ],
)
def test_what_ends_a_pass_leaves_the_rest_of_the_status(setback: Any, reason: str, words: str) -> None:
    says = said_of(SETTLED)
    conditions = [a_condition(*each) for each in (*says, ("Verified", "True"))]
    stored = TritonDeploymentStatus(observed_generation=2, conditions=conditions)
    found = report(an_owner(stored), setback(ValueError("no such stage")), None, NOW)
    told = {each.type: each for each in found.status.conditions}
    assert [each for each in conditions if told[each.type] != each] == [conditions[2], conditions[3]]
    assert (told["Reconciling"].status, told["Reconciling"].reason) == ("True", reason)
    assert (told["Stalled"].status, told["Stalled"].reason) == ("False", "NoStall")
    assert told["Reconciling"].message.startswith(words)
    assert [each.reason for each in found.events] == [reason]
    again = report(an_owner(found.status), setback(ValueError("no such stage")), None, NOW)
    assert again == Report(found.status)


def test_a_refusal_while_nothing_newer_is_worked_on_stalls_the_object() -> None:
    soaked = [a_condition("Ready", "True"), a_condition("UpToDate", "False").model_copy(update={"reason": "Soaking"})]
    wanted = TritonDeploymentStatus(observed_generation=3, conditions=soaked)
    plan = a_plan(wanted, replace(SETTLED, soaks=True))
    status = report(an_owner(wanted), apply_refused("Service digits: no"), plan, NOW).status
    assert {item.type: item.status for item in status.conditions}["Ready"] == "False"
