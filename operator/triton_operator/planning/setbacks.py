"""The status where a plan could not be carried out, or none could be made. Pure.

| What happened | Conditions |
|---|---|
| The spec is invalid, or the API server refuses an object | stalled |
| It refuses an object that nothing else needs | that object's own condition |
| An object fails for long, and may succeed by itself | Reconciling |
| It refuses the status, or the operator has a bug | stalled, and the rest as it was |
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from triton_converters.contract.reasons import Reason
from triton_converters.contract.text import shortened
from triton_operator.api.deployment import parse_status
from triton_operator.api.status import OF_ACTIVE, Condition, ConditionType, TritonDeploymentStatus
from triton_operator.effects import Statement, conditions_of
from triton_operator.planning.plan import Event, Plan

Body = dict[str, Any]
STALLED: Mapping[ConditionType, bool] = {"Ready": False, "UpToDate": False, "Reconciling": False, "Stalled": True}
"""The conditions of an object that is stalled."""
ONLY_NEWER_STALLED: Mapping[ConditionType, bool] = {"UpToDate": False, "Reconciling": False}
"""The conditions of an object whose spec is met, while something newer than the active revision is stalled."""
STAYS: Mapping[ConditionType, str] = {
    "Autoscaling": "the replicas stay as they are",
    "Routed": "the route stays as it is",
}
"""What holds while the object that a condition tells of is refused."""
LONGEST_ERROR = 300
"""The longest text of an exception in a condition, in bytes; the log has all of it."""
WITH_NUMBERS = {Reason.APPLY_FAILED, Reason.STATUS_REFUSED, Reason.INTERNAL_ERROR}
"""Reasons whose messages may have an address or a port that differs each time. If each pass stored another message, it
would wake the next one at once."""


@dataclass(frozen=True)
class Report:
    """What a pass tells the user."""

    status: TritonDeploymentStatus
    events: tuple[Event, ...] = ()
    """To be posted if the status differs from the one that is stored."""


def stalled(owner: Body, status: TritonDeploymentStatus, reason: Reason, message: str, now: datetime) -> Report:
    """Report that the object is stalled until somebody changes something.

    ``owner``: the TritonDeployment as it is stored. ``status``: all else that is known of it by now. If the API server
    refuses what something newer needs, while the spec is met, only that does not go on.
    """
    only_newer = reason is Reason.APPLY_REFUSED and _only_newer(status)
    summary = ONLY_NEWER_STALLED if only_newer else STALLED
    stored = parse_status(owner).conditions
    known = any(each.type in ("Stalled", "UpToDate") and each.reason == reason for each in stored)
    events = () if known else (Event("Warning", reason, message),)
    told = {type: (value, reason, message) for type, value in summary.items()}
    return Report(_with(owner, status, told, now), events)


def refused(owner: Body, wanted: Plan, messages: Mapping[ConditionType, str], now: datetime) -> Report:
    """Report the plan's status, except that the API server refused objects that nothing else needs.

    ``messages``: why each was refused, by the type of its condition.
    """
    known = {each.type for each in parse_status(owner).conditions if each.reason == Reason.APPLY_REFUSED}
    told = {type: f"{message}; {STAYS[type]}" for type, message in messages.items()}
    # The plan took these objects for granted.
    events = [each for each in wanted.events if each.condition not in told]
    for type, message in told.items():
        if type not in known:
            events.append(Event("Warning", Reason.APPLY_REFUSED, f"{type}: {message}"))
    new = {type: (False, Reason.APPLY_REFUSED, message) for type, message in told.items()}
    return Report(_with(owner, wanted.status, new, now), tuple(events))


def held_up(owner: Body, wanted: Plan, words: str, now: datetime) -> Report:
    """Report the plan's status, except that objects could not be written for long, and may be by themselves.

    An object whose spec is met while something newer is held up stays done to tools that wait for Reconciling, and one
    that is stalled has failed for them, whatever else is tried.
    """
    message = f"objects could not be written, and the operator tries again: {words}"
    is_stalled = any((each.type, each.status) == ("Stalled", "True") for each in wanted.status.conditions)
    goes_on = not is_stalled and not _only_newer(wanted.status)
    known = any(each.reason == Reason.APPLY_FAILED for each in parse_status(owner).conditions)
    told = () if known else (Event("Warning", Reason.APPLY_FAILED, message),)
    status = _with(owner, wanted.status, {"Reconciling": (goes_on, Reason.APPLY_FAILED, message)}, now)
    return Report(status, (*wanted.events, *told))


def not_stored(owner: Body, error: Exception, now: datetime) -> Report:
    """Report that the API server refused the status, with its own words. All else stays as it is stored."""
    message = (
        f"the API server refuses the status of this object: {shortened(str(error), LONGEST_ERROR)}. The active revision"
        " stays as it is, and the operator tries again; update the CustomResourceDefinition, or change the policy"
    )
    return _as_it_was(owner, Reason.STATUS_REFUSED, message, now)


def failed(owner: Body, error: Exception, now: datetime) -> Report:
    """Report an error of the operator. All else stays as it is stored."""
    first_line = str(error).strip().partition("\n")[0]
    words = shortened(f"{type(error).__name__}: {first_line}", LONGEST_ERROR)
    message = (
        f"the operator failed: {words}. The active revision stays as it is, and the operator tries again; if the error"
        " stays, report it with the traceback in the operator's log"
    )
    return _as_it_was(owner, Reason.INTERNAL_ERROR, message, now)


def _as_it_was(owner: Body, reason: Reason, message: str, now: datetime) -> Report:
    """The stored status, stalled. Another failure of the same reason has another message, and so its own Event."""
    report = stalled(owner, parse_status(owner), reason, message, now)
    return Report(report.status, (Event("Warning", reason, message),))


def _only_newer(status: TritonDeploymentStatus) -> bool:
    """Whether the spec is met, and only something newer than the active revision is worked on."""
    held = {each.type: each for each in status.conditions}
    ready, newest = held.get("Ready"), held.get("UpToDate")
    if ready is None or newest is None or newest.reason in OF_ACTIVE:
        return False
    return (ready.status, newest.status) == ("True", "False")


def _with(
    owner: Body,
    status: TritonDeploymentStatus,
    told: Mapping[ConditionType, tuple[bool, Reason, str]],
    now: datetime,
) -> TritonDeploymentStatus:
    """The status with other conditions in the place of its own: whether each holds, why, and in words."""
    generation, stored = owner["metadata"]["generation"], parse_status(owner).conditions
    new = conditions_of([Statement(type, *each) for type, each in told.items()], stored, generation, now)
    merged = {each.type: each for each in (*status.conditions, *new)}.values()
    return status.model_copy(
        update={"observed_generation": generation, "conditions": [_steady(each, stored) for each in merged]}
    )


def _steady(new: Condition, stored: Iterable[Condition]) -> Condition:
    """The condition as it is stored, if it tells of the same error with other numbers."""
    if new.reason not in WITH_NUMBERS:
        return new
    return next((old for old in stored if _without_numbers(old) == _without_numbers(new)), new)


def _without_numbers(told: Condition) -> Condition:
    return told.model_copy(update={"message": re.sub(r"0x[0-9a-f]+|\d+", "", told.message)})
