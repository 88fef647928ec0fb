"""The course of a soak, or of a canary's step, that is inconclusive at the end of its time. Pure."""

from dataclasses import replace
from datetime import datetime, timedelta
from enum import Enum, auto

from triton_converters.contract.reasons import Reason
from triton_operator.api.duration import seconds
from triton_operator.api.rollout import OnInconclusive
from triton_operator.context import Context
from triton_operator.observed.promotion import Promotion
from triton_operator.rollout.traffic import Verdict

TOLD_SECONDS = 1800.0
"""Seconds for which a soak or a step may be held after its own time before the condition's reason says so.

Half an hour is longer than most pauses between requests, and the person who began the rollout is still at work.
"""

LOOK_SECONDS = 20.0
"""Seconds between two looks at an active revision that does not answer: time alone ends an outage's patience."""


class Course(Enum):
    """What follows from a judgement."""

    GO_ON = auto()
    """The rollout goes on."""
    UNDO = auto()
    """The previous revision is active again."""
    WAIT = auto()
    """The rollout stays as it is, and is judged again with the requests that come until then."""
    BEGIN_ANEW = auto()
    """The rollout stays as it is, and only requests from now on count."""


def next_course(policy: OnInconclusive, verdict: Verdict) -> Course:
    """Return the course that follows from a verdict; the first line that applies decides."""
    if verdict.reason is Reason.SOAK_PASSED:
        return Course.GO_ON
    if verdict.reason is Reason.SOAK_FAILED:
        return Course.UNDO
    if policy != "Hold":
        return Course.GO_ON if policy == "Continue" else Course.UNDO
    return Course.BEGIN_ANEW if verdict.spoiled else Course.WAIT


def held_record(context: Context, promotion: Promotion, verdict: Verdict) -> Promotion:
    """Return the record of a held soak or step, which is judged again after its own time."""
    now, again_at = context.now.isoformat(), (context.now + _duration(context)).isoformat()
    return replace(promotion, message=verdict.message, held_since=promotion.held_since or now, again_at=again_at)


def with_time_since(context: Context, promotion: Promotion, first_read_at: str) -> Promotion:
    """Return the record with another end if the counters at the beginning were read only after the end.

    Nobody could read them before, as of a suspended object, so hardly a request would count.
    """
    if not first_read_at or datetime.fromisoformat(first_read_at) <= due_time(context, promotion):
        return promotion
    return replace(promotion, again_at=(datetime.fromisoformat(first_read_at) + _duration(context)).isoformat())


def due_time(context: Context, promotion: Promotion) -> datetime:
    """Return when a soak or a canary's step is judged next."""
    if promotion.again_at:
        return datetime.fromisoformat(promotion.again_at)
    return datetime.fromisoformat(promotion.at) + _duration(context)


def _duration(context: Context) -> timedelta:
    """Return the time that a soak, or each step of a canary, takes if it is not held."""
    bounds = context.spec.serving.soak
    assert bounds is not None
    return timedelta(seconds=seconds(bounds.duration))


def reading_name(name: str, promotion: Promotion) -> str:
    """Return the name of a reading of the counters. Each time that a held one is judged has a reading of its own."""
    return f"{name} {promotion.again_at}" if promotion.again_at else name


def waived_verdict(context: Context, promotion: Promotion) -> Verdict | None:
    """Return the last verdict on a held revision if the spec no longer asks to hold it; else None."""
    if not promotion.held_since or context.spec.rollout.on_inconclusive == "Hold" or context.spec.suspend:
        return None
    return Verdict(Reason.SOAK_INCONCLUSIVE, promotion.message)


def reason_of(context: Context, promotion: Promotion, usual_reason: Reason) -> Reason:
    """Return the condition's reason: ``usual_reason``, or RolloutHeld once the revision is held for long."""
    return (
        Reason.ROLLOUT_HELD if promotion.held_since and _seconds_until_told(context, promotion) <= 0 else usual_reason
    )


def again_after(context: Context, promotion: Promotion, usual_seconds: float | None) -> float | None:
    """Return the seconds until time alone changes something: ``usual_seconds``, or less if something else comes first.

    That is the end of an outage, or another reason of what is held.
    """
    seconds_until_told = _seconds_until_told(context, promotion) if promotion.held_since else 0.0
    pauses = (usual_seconds, seconds_until_told, LOOK_SECONDS if promotion.down_since else None)
    return min((each for each in pauses if each is not None and each > 0), default=None)


def _seconds_until_told(context: Context, promotion: Promotion) -> float:
    return TOLD_SECONDS - (context.now - datetime.fromisoformat(promotion.held_since)).total_seconds()
