"""When a trial is judged, and since when the active revision is down, as the record of the trial says. Pure."""

from dataclasses import replace
from datetime import datetime, timedelta

from triton_converters.contract.reasons import Reason
from triton_operator.api.duration import seconds
from triton_operator.context import Context
from triton_operator.observed.promotion import Promotion

TOLD_SECONDS = 1800.0
"""Seconds for which a soak or a step may be held after its own time before the condition's reason says so.

Half an hour is longer than most pauses between requests, and the person who began the rollout is still at work.
"""

RELEASE_SECONDS = 15.0
"""Seconds for which the pods of a canary that ended stay at least.

A gateway may report that it has a route some seconds before it works by it.
"""
LONGEST_RELEASE_SECONDS = 120.0
"""Seconds for which the pods of a canary that ended stay if no Gateway reports that it has the later route.

Gateways take up a route within seconds. One that is silent for so long will not report at all.
"""
LOOK_SECONDS = 20.0
"""Seconds between two looks at an active revision that does not answer: time alone ends an outage's patience."""

LONGEST_GAP_SECONDS = 60.0
"""Most seconds between two looks at a revision that is down, which are three pauses.

After more, the operator was away, and nobody knows whether a pod was ready meanwhile.
"""


def due_time(context: Context, record: Promotion) -> datetime:
    """Return when a soak or a canary's step is judged next."""
    return datetime.fromisoformat(record.again_at or _later(context, record.at))


def held(context: Context, record: Promotion, message: str) -> Promotion:
    """Return the record of a held soak or step, which is judged again after its own time. ``message``: why."""
    now = context.now.isoformat()
    return replace(record, message=message, held_since=record.held_since or now, again_at=_later(context, now))


def begun_anew(context: Context, record: Promotion) -> Promotion:
    """Return the record of a soak or step of which only requests from now on count."""
    now = context.now.isoformat()
    return replace(record, since=now, again_at=_later(context, now))


def with_present_clock(context: Context, record: Promotion) -> Promotion:
    """Return the record with times from now on if its end is further ahead than a soak or a step takes.

    The clock was ahead when they were written, or the spec asked for more.
    """
    now = context.now.isoformat()
    if due_time(context, record) <= datetime.fromisoformat(_later(context, now)):
        return record
    return replace(record, since=min(record.since, now, key=datetime.fromisoformat), again_at=_later(context, now))


def with_first_reading(context: Context, record: Promotion, first_read_at: str) -> Promotion:
    """Return the record with another end if the counters at the beginning were read only after the end.

    Nobody could read them before, as of a suspended object, so hardly a request would count.
    """
    if not first_read_at or datetime.fromisoformat(first_read_at) <= due_time(context, record):
        return record
    return replace(record, again_at=_later(context, first_read_at))


def _later(context: Context, time: str) -> str:
    """Return a time of RFC 3339, later by what a soak, or each step of a canary, takes if it is not held."""
    bounds = context.spec.serving.soak
    assert bounds is not None
    return (datetime.fromisoformat(time) + timedelta(seconds=seconds(bounds.duration))).isoformat()


def with_outage(context: Context, record: Promotion, *, answers: bool) -> Promotion:
    """Return the record with since when no pod of the active revision answers.

    It is written only once a pause, because each write of it wakes the next pass. ``answers``: whether one does now.
    """
    if answers:
        return replace(record, down_since="", down_seen="")
    now = context.now.isoformat()
    unseen = (
        _seconds_since(context, record.down_seen) if record.down_since and record.down_seen else LONGEST_GAP_SECONDS + 1
    )
    # A clock that was ahead wrote a time that is yet to come.
    if not 0 <= unseen <= LONGEST_GAP_SECONDS:
        return replace(record, down_since=now, down_seen=now)
    return replace(record, down_seen=now) if unseen >= LOOK_SECONDS else record


def is_down_for_long(context: Context, record: Promotion) -> bool:
    """Whether the active revision has been down for so long that another one that answers is better."""
    deadline = context.spec.serving.progress_deadline_seconds
    return bool(record.down_since) and _seconds_since(context, record.down_since) > deadline


def reason_of(context: Context, record: Promotion) -> Reason:
    """Return the condition's reason: RolloutHeld once the revision is held for long."""
    if record.held_since and _seconds_since(context, record.held_since) >= TOLD_SECONDS:
        return Reason.ROLLOUT_HELD
    return Reason.CANARY if record.by_route else Reason.SOAKING


def again_after(context: Context, record: Promotion, patience: float) -> float | None:
    """Return the seconds until time alone changes something; None: it does not.

    That is the trial's end or, after that, the end of ``patience``, the end of an outage, or another reason of what is
    held. ``patience``: seconds for which counters are still waited for; infinite: for no Job that runs.
    """
    seconds_left = (due_time(context, record) - context.now).total_seconds()
    until_told = TOLD_SECONDS - _seconds_since(context, record.held_since) if record.held_since else 0.0
    pauses = (seconds_left if seconds_left > 0 else patience, until_told, LOOK_SECONDS if record.down_since else 0.0)
    # Until a Job that reads the counters may run, only an edit or an event changes a trial.
    return min((each for each in pauses if 0 < each < float("inf")), default=None)


def _seconds_since(context: Context, time: str) -> float:
    return (context.now - datetime.fromisoformat(time)).total_seconds()
