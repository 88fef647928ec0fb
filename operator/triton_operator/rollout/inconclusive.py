"""What becomes of a soak, or of a canary's step, that has no verdict at the end of its time. Pure."""

from dataclasses import replace
from datetime import datetime, timedelta
from enum import Enum, auto

from triton_converters.contract.reasons import Reason
from triton_operator.api.rollout import OnInconclusive
from triton_operator.context import Context
from triton_operator.observed.promotion import Promotion
from triton_operator.rollout.traffic import Verdict

TOLD_SECONDS = 1800.0
"""How long after its own time a soak or step may be held before a person is told: longer than a quiet half hour, and
short enough that whoever rolled out is still there."""


class Course(Enum):
    """What follows from a judgement."""

    GO_ON = auto()
    """The roll-out goes on."""
    UNDO = auto()
    """What served before serves."""
    WAIT = auto()
    """The roll-out stays as it is, and is judged again with the requests that come until then."""
    BEGIN_ANEW = auto()
    """The roll-out stays as it is, and only requests from now on count."""


def next_course(policy: OnInconclusive, found: Verdict) -> Course:
    """Return what follows; the first line that applies decides."""
    if found.reason is Reason.SOAK_PASSED:
        return Course.GO_ON
    if found.reason is Reason.SOAK_FAILED:
        return Course.UNDO
    if policy != "Hold":
        return Course.GO_ON if policy == "Continue" else Course.UNDO
    return Course.BEGIN_ANEW if found.spoiled else Course.WAIT


def held_record(context: Context, promotion: Promotion, found: Verdict, seconds: float) -> Promotion:
    """The record of what is judged again after as many seconds as the first verdict takes."""
    now, again = context.now.isoformat(), (context.now + timedelta(seconds=seconds)).isoformat()
    return replace(promotion, message=found.words, held_since=promotion.held_since or now, again_at=again)


def due_time(promotion: Promotion, seconds: float) -> datetime:
    """When a soak or a canary's step is judged next."""
    return datetime.fromisoformat(promotion.again_at or promotion.at) + timedelta(
        seconds=0 if promotion.again_at else seconds
    )


def reading_name(name: str, promotion: Promotion) -> str:
    """The name of the reading of the counters at that time; each has one of its own."""
    return f"{name} {promotion.again_at}" if promotion.again_at else name


def waived_verdict(context: Context, promotion: Promotion) -> Verdict | None:
    """What was found last of a revision that is held, if the spec does not ask to hold it any more; else None."""
    if not promotion.held_since or context.spec.rollout.on_inconclusive == "Hold" or context.spec.suspend:
        return None
    return Verdict(Reason.SOAK_INCONCLUSIVE, promotion.message)


def reason_of(context: Context, promotion: Promotion, usual: Reason) -> Reason:
    """The condition's reason: the usual one until a person is told that the revision is held."""
    return Reason.ROLLOUT_HELD if promotion.held_since and _seconds_until_told(context, promotion) <= 0 else usual


def again_after(context: Context, promotion: Promotion, left: float | None) -> float | None:
    """Seconds until time alone changes something: the usual ones, or fewer if a person is to be told before."""
    told = _seconds_until_told(context, promotion) if promotion.held_since else 0.0
    return min((each for each in (left, told) if each is not None and each > 0), default=None)


def _seconds_until_told(context: Context, promotion: Promotion) -> float:
    return TOLD_SECONDS - (context.now - datetime.fromisoformat(promotion.held_since)).total_seconds()
