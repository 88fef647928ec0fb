"""The status where a plan could not be carried out, or none could be made. Pure.

| What happened | Told | As |
|---|---|---|
| The spec is invalid | at once | an invalid spec: nothing serves as it asks |
| The API server refuses an object | at once | a refusal: stalled, or only what is newer |
| It refuses an object that nothing else needs | at once | that object's own condition |
| Objects, requests or statuses fail, or the operator does | once it lasts | Reconciling |

`summary.py` has the table of what each makes of the conditions that summarize.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from triton_converters.contract.reasons import Reason
from triton_converters.contract.text import shortened
from triton_operator.api.status import FAILING, OF_ACTIVE, Condition, ConditionType, TritonDeploymentStatus
from triton_operator.api.triton_deployment import parse_status
from triton_operator.effects import Statement, conditions_of
from triton_operator.names import Body
from triton_operator.planning.conditions import CLEAR
from triton_operator.planning.plan import Event, Plan
from triton_operator.planning.summary import SUMMARY, Hindrance, SummaryFacts, hindered_conditions, summary_truths

STAYS: Mapping[ConditionType, str] = {
    "Autoscaling": "the replicas stay as they are",
    "Routed": "the route stays as it is",
}
"""What holds while the object that a condition tells of is refused."""
TOLD_AFTER = timedelta(seconds=15)
"""How long passes fail before the status says so. Neither an API server nor the pod of a webhook takes longer to start
again, and a race of the operator with itself is over by the next pass."""
LONGEST_ERROR = 300
"""The longest text of an exception in a condition, in bytes; the log has all of it."""
VARYING: Mapping[str, str] = {
    "UUID, as of a request or an object": r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b",
    "id of a trace or a request": r"\b[0-9a-f]{32}\b",
    "address of an object in memory": r"0x[0-9a-f]+",
    "time, as of a certificate that has expired": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\S*",
    "host and port of either end of a connection": r"(?:\d+(?:\.\d+){3}|\[[0-9a-f:]+\])(?::\d+)?",
    "duration": r"(?:\d+h)?(?:\d+m)?\d+(?:\.\d+)? ?(?:ns|µs|ms|s|seconds?)\b",
    "resource version, as of a conflict": r"[Rr]esource ?[Vv]ersion\D{1,30}\d+",
    "stream of a connection by HTTP/2": r"[Ss]tream ?ID[ =]\d+",
    "length of an answer that was cut": r"\d+ (?:bytes read|more expected)",
    "port, or number of a process or a request": r"\d{5,}",
}
"""What varies in the words of the same failure, as regular expressions: of Go, of Python's libraries, and of the API
server. All other numbers are news, such as another status of HTTP, or another count of objects."""
_VARYING = re.compile("|".join(VARYING.values()))
GOES_ON = "The active revision stays as it is, and the operator tries again"
"""What the words of a failure that ends a pass have in common."""


@dataclass(frozen=True)
class Report:
    """What a pass tells the user."""

    status: TritonDeploymentStatus
    events: tuple[Event, ...] = ()
    """To be posted if the status differs from the one that is stored."""


@dataclass(frozen=True)
class Setback:
    """What kept a pass from being done, in words."""

    hindrance: Hindrance
    reason: Reason
    message: str


def invalid(reason: Reason, words: str) -> Setback:
    """Return the setback of a spec that its user has to correct."""
    return Setback(Hindrance.INVALID, reason, words)


def apply_refused(words: str) -> Setback:
    """Return the setback of objects that the API server refuses until somebody changes something."""
    return Setback(Hindrance.REFUSED, Reason.APPLY_REFUSED, words)


def apply_failed(words: str) -> Setback:
    """Return the setback of objects that could not be written; they may be by themselves."""
    return _failing(Reason.APPLY_FAILED, f"objects could not be written, and the operator tries again: {words}")


def request_failed(error: Exception) -> Setback:
    """Return the setback of a request that ended the pass, such as one that reads an object."""
    return _failing(
        Reason.REQUEST_FAILED,
        f"a request to the API server failed: {_words(error)}. {GOES_ON}; if it is forbidden, upgrade the operator's"
        " release, because the chart grants it",
    )


def status_refused(error: Exception) -> Setback:
    """Return the setback of a status that the API server refuses."""
    return _failing(
        Reason.STATUS_REFUSED,
        f"the API server refuses the status of this object: {_words(error)}. {GOES_ON}; update the"
        " CustomResourceDefinition, or change the policy",
    )


def internal_error(error: Exception) -> Setback:
    """Return the setback of an error of the operator, in its first line."""
    first_line = str(error).strip().partition("\n")[0]
    words = shortened(f"{type(error).__name__}: {first_line}", LONGEST_ERROR)
    return _failing(
        Reason.INTERNAL_ERROR,
        f"the operator failed: {words}. {GOES_ON}; if the error stays, report it with the traceback in the operator's"
        " log",
    )


def failing_since(owner: Body, now: datetime) -> datetime:
    """Return since when passes fail at the latest, as the status tells it; ``now``, if it tells of no failure.

    ``owner``: the TritonDeployment as it is stored. A failure is in its status once it has lasted, and until a pass
    succeeds. So neither a restart of the operator nor another replica begins to wait anew.
    """
    return now if parse_status(owner).failing is None else now - TOLD_AFTER


def is_told(hindrance: Hindrance, since: datetime, now: datetime) -> bool:
    """Return whether the user is told: at once of what waits for a person, and of all else once it lasts.

    ``since``: when passes began to fail.
    """
    return hindrance is not Hindrance.FAILS or now - since >= TOLD_AFTER


def report(
    owner: Body, setback: Setback, planned: Plan | None, now: datetime, seen: Iterable[Statement] = ()
) -> Report:
    """Report a setback.

    ``owner``: the TritonDeployment as it is stored. ``planned``: the plan that could not be carried out; None: there
    was none, so all that the setback does not change stays as it is stored, but for what is ``seen`` all the same.
    """
    stored = parse_status(owner)
    status, facts = (planned.status, planned.facts) if planned else (stored, stored_facts(owner, stored))
    told = _told(replace(facts, hindrance=setback.hindrance), setback, status)
    known = any(each.type in SUMMARY and each.reason == setback.reason for each in stored.conditions)
    events = () if known else (Event("Warning", setback.reason, setback.message),)
    planned_events = planned.events if planned else ()
    if setback.hindrance is not Hindrance.FAILS:
        # Of a stalled object, the plan's own Events would tell what it was before it stalled.
        planned_events = tuple(each for each in planned_events if each.reason == Reason.APPLY_REFUSED)
    return Report(_with(owner, status, (*told, *seen), now), (*planned_events, *events))


def without(owner: Body, planned: Plan, messages: Mapping[ConditionType, str], now: datetime) -> Plan:
    """Return the plan, except that the API server refused objects of it that nothing else needs.

    ``messages``: why each was refused, by the type of its condition; empty: none was.
    """
    if not messages:
        return planned
    known = {each.type for each in parse_status(owner).conditions if each.reason == Reason.APPLY_REFUSED}
    told = {type: f"{message}; {STAYS[type]}" for type, message in messages.items()}
    # The plan took these objects for granted.
    events = [each for each in planned.events if each.condition not in told]
    for type, message in told.items():
        if type not in known:
            events.append(Event("Warning", Reason.APPLY_REFUSED, f"{type}: {message}"))
    new = [Statement(type, False, Reason.APPLY_REFUSED, message) for type, message in told.items()]
    return replace(planned, status=_with(owner, planned.status, new, now), events=tuple(events))


def _failing(reason: Reason, message: str) -> Setback:
    return Setback(Hindrance.FAILS, reason, message)


def _words(error: Exception) -> str:
    return shortened(str(error), LONGEST_ERROR)


def stored_facts(owner: Body, stored: TritonDeploymentStatus) -> SummaryFacts:
    """The facts as the last status has them, for a pass that found out none; of another spec, nothing is known."""
    generation = owner["metadata"]["generation"]
    known = {each.type: each for each in stored.conditions if each.observed_generation == generation}
    ready, newest, stalled = known.get("Ready"), known.get("UpToDate"), known.get("Stalled")
    serves = ready is not None and ready.status == "True"
    return SummaryFacts(
        # A canary of something newer may be held too.
        complete=serves
        and newest is not None
        and (newest.status == "True" or (newest.reason in OF_ACTIVE and stored.target is None)),
        rolled_back=newest is not None and newest.reason == Reason.ROLLED_BACK,
        met=serves,
        available=serves,
        soaks=newest is not None and newest.reason == Reason.SOAKING,
        stalled=stalled is not None and stalled.status == "True" and stalled.reason not in FAILING,
        paused=False,
    )


def _told(facts: SummaryFacts, setback: Setback, status: TritonDeploymentStatus) -> Iterator[Statement]:
    """The conditions that the setback changes."""
    says = summary_truths(facts)
    # A new object has no conditions that could stay.
    changed = hindered_conditions(facts) if any(each.type == "Ready" for each in status.conditions) else SUMMARY
    for type in changed:
        yield Statement(type, says[type], setback.reason, setback.message)
    if not says["Stalled"]:
        # The stored one may be of another spec.
        yield CLEAR


def _with(
    owner: Body, status: TritonDeploymentStatus, told: Iterable[Statement], now: datetime
) -> TritonDeploymentStatus:
    """The status with other conditions in the place of its own."""
    generation = owner["metadata"]["generation"]
    stored = parse_status(owner).conditions
    new = conditions_of(told, stored, generation, now)
    merged = {each.type: each for each in (*status.conditions, *new)}.values()
    return status.model_copy(
        update={"observed_generation": generation, "conditions": [_steady(each, stored) for each in merged]}
    )


def _steady(new: Condition, stored: Iterable[Condition]) -> Condition:
    """The condition as it is stored, if only what varies by itself is different in what it tells.

    If each pass stored another message, it would wake the next one at once.
    """
    if new.reason not in (*FAILING, Reason.APPLY_REFUSED):
        return new
    return next((old for old in stored if _lasting(old) == _lasting(new)), new)


def _lasting(told: Condition) -> Condition:
    """The condition without what varies by itself."""
    return told.model_copy(update={"message": _VARYING.sub("", told.message)})
