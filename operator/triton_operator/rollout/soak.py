"""Soak: judge a revision by its first requests, and go back to the previous one if it does worse. Pure.

The move of the Service is recorded before it is made, with what the verdict needs later: nothing else tells afterwards
which revision was active before. A Job reads the counters of both revisions after the move, another one those of the
new revision at the end. A revision's first counters are also the start of its own time as the previous one: what they
hold by then is the load of its measurement.
"""

from dataclasses import dataclass, field, replace
from datetime import datetime

from triton_converters.contract.reasons import Reason
from triton_converters.contract.records import record_name
from triton_converters.contract.results import SnapshotResult
from triton_operator import names
from triton_operator.api import renamed
from triton_operator.api.duration import seconds
from triton_operator.api.rollout import Rollout
from triton_operator.api.serving import Soak
from triton_operator.candidates.attempt import Attempt
from triton_operator.context import Context
from triton_operator.effects import Effects, Verdict
from triton_operator.jobs import snapshot
from triton_operator.jobs.run import Run
from triton_operator.observed.flips import Flip
from triton_operator.observed.server import ServerView
from triton_operator.resources.as_made import scaled
from triton_operator.rollout.counting import PATIENCE_SECONDS, restarted, unread
from triton_operator.rollout.inconclusive import (
    Course,
    again_after,
    course,
    due,
    held,
    moment,
    reason,
    unjudged,
    waived,
    why,
)
from triton_operator.rollout.room import makes_way
from triton_operator.rollout.traffic import Judgement, between, judge, total

FIRST, LAST = "first", "last"
"""The two moments at which a revision's counters are read."""


@dataclass(frozen=True)
class Soaking:
    """What becomes of the active revision's soak."""

    verdict: Verdict | None = None
    """The condition; None: the spec asks for no soak."""
    effects: Effects = field(default_factory=Effects)
    goes_on: bool = False
    back_to: str | None = None
    """Name of the Deployment that the Service goes back to; None: it stays."""
    again_after: float | None = None
    """Seconds until time alone changes it."""


def soak(context: Context, successor: str = "") -> Soaking:
    """Go on with the soak of the active revision.

    ``successor``: name of the Deployment of a third revision that starts, which ends it; empty: there is none.
    """
    asked, active = context.spec.serving.soak, context.observed.servers.get(context.serving or "")
    if asked is None:
        return Soaking()
    if active is None:
        return Soaking(Verdict("Soaked", None, Reason.WAITING, "no revision is active yet"))
    flip = _move(context, active.uid)
    previous = _previous(context, flip) if flip is not None else None
    first = _counters(context, active, FIRST, flip, previous if flip is not None and flip.reason is None else None)
    if flip is None:
        words = "no other revision was active before, or spec.serving.soak was not set then; the next one is soaked"
        return Soaking(Verdict("Soaked", None, Reason.WAITING, words), first.effects)
    if flip.reason is not None:
        return _over(context, flip, previous, first.effects)
    early = _early(context, previous, flip, successor)
    found = restarted(
        active, previous, datetime.fromisoformat(flip.window_since or flip.at), "the revision became active"
    )
    if early and (found is None or found.reason is not Reason.SOAK_FAILED):
        # No later requests could decide anything.
        return _judged(context, flip, active, Judgement(Reason.SOAK_INCONCLUSIVE, early), previous, first.effects)
    found, effects = found or waived(context, flip), first.effects
    if found is None:
        found, effects = _verdict(context, asked, active, previous, flip, first)
    if found is None:
        return _going_on(context, asked, flip, previous, effects)
    then = course(context.spec.rollout.on_inconclusive, found)
    if then in (Course.GO_ON, Course.UNDO):
        verdict = unjudged(found) if then is Course.UNDO else found
        return _judged(context, flip, active, verdict, previous, effects)
    flip = held(context, flip, found, seconds(asked.duration))
    if then is Course.BEGIN_ANEW:
        flip = replace(flip, window_since=context.now.isoformat())
    return _going_on(context, asked, flip, previous, effects + Effects(flips={active.uid: flip}))


def _verdict(
    context: Context,
    asked: Soak,
    active: ServerView,
    previous: ServerView | None,
    flip: Flip,
    first: Run[SnapshotResult],
) -> tuple[Judgement | None, Effects]:
    """The verdict by what was counted, and what it takes to reach it; None: there is none yet.

    ``first``: the reading of the counters when the Service moved.
    """
    before = record_name(snapshot.STAGE, _key(flip.previous_uid, FIRST, _move(context, flip.previous_uid)))
    begun, effects = first, first.effects + Effects(needed=frozenset({before}))
    if flip.window_since:
        begun = _counters(context, active, f"{FIRST} {flip.window_since}", flip, previous)
        effects += begun.effects
    end = due(flip, seconds(asked.duration))
    if context.now < end:
        return None, effects
    if begun.record is None:
        return unread(context, begun, "when the revision became active", end, spoiled=True), effects
    last = _counters(context, active, moment(LAST, flip), flip)
    effects += last.effects
    if last.record is None:
        return unread(context, last, "at the end of the soak", end), effects
    new = between(snapshot.read(begun.record).active, snapshot.read(last.record).active)
    # The previous revision gets no requests any more, so the earlier reading of its counters is as good, and survives
    # its restart.
    own, stop = context.observed.records.get(before), snapshot.read(first.record or begun.record)
    old = total(between(snapshot.read(own).active, stop.previous).values()) if own is not None else None
    return judge(asked, new, old), effects


def _going_on(context: Context, asked: Soak, flip: Flip, previous: ServerView | None, effects: Effects) -> Soaking:
    """The soak without a verdict yet; the previous revision keeps its pods."""
    end = due(flip, seconds(asked.duration))
    verdict = Verdict("Soaked", None, reason(context, flip, Reason.SOAKING), _progress(context, flip, end))
    left = (end - context.now).total_seconds()
    # An edit, or the queue, wakes the next pass after that.
    waits = left > -PATIENCE_SECONDS and not context.spec.suspend
    again = left if left > 0 else max(1.0, left + PATIENCE_SECONDS) if waits else None
    return Soaking(
        verdict, effects + kept(context, previous), goes_on=True, again_after=again_after(context, flip, again)
    )


def _judged(
    context: Context,
    flip: Flip,
    active: ServerView,
    found: Judgement,
    previous: ServerView | None,
    effects: Effects,
) -> Soaking:
    """The soak that gets its verdict in this pass."""
    decided = _decided(context, flip, found, previous)
    return _over(context, decided, previous, effects + Effects(flips={active.uid: decided}))


def skipped(context: Context) -> Soaking:
    """No soak of a revision that the spec names; its counters are read for the comparison with what comes after it."""
    active = context.observed.servers.get(context.serving or "")
    if context.spec.serving.soak is None:
        return Soaking()
    words = "spec.rollout.revision names a revision that served before, so it is not soaked"
    flip = _move(context, active.uid) if active is not None else None
    effects = _counters(context, active, FIRST, flip).effects if active is not None else Effects()
    return Soaking(Verdict("Soaked", None, Reason.WAITING, words), effects)


def moved(context: Context, target: ServerView) -> Effects:
    """Record that the Service is about to move from the active revision to the target."""
    active = context.observed.servers.get(context.serving or "")
    if context.spec.serving.soak is None or active is None:
        return Effects()
    flip = Flip(
        revision=target.revision_key,
        server=target.name,
        previous=active.name,
        previous_uid=active.uid,
        at=context.now.isoformat(),
        steps=known.steps if (known := context.observed.flips.get(target.uid)) else (),
        before=context.deployment.status.model_dump(
            mode="json",
            by_alias=True,
            exclude_none=True,
            exclude_defaults=True,
            include={"serving", "accuracy", "performance"},
        ),
    )
    if makes_way(context, target):
        words = (
            f"Deployment {active.name} had to make room for {target.name}, so nothing could come back at once; the new"
            " revision stays without a soak"
        )
        flip = replace(flip, before=None, reason=Reason.NO_SPARE_GPU, message=words)
    return Effects(flips={target.uid: flip})


def excluded(context: Context, target: Attempt) -> Verdict | None:
    """Why a revision is not tried again; None: it is, because it did not fail, or the spec has changed since."""
    keys = (target.key, *target.replaces)
    for flip in context.observed.flips.values():
        # The intent last: it is a digest of the whole spec, and most passes know no revision that failed.
        if flip.reason is Reason.SOAK_FAILED and flip.revision in keys and flip.intent == intent(context):
            return Verdict("Soaked", False, Reason.SOAK_FAILED, flip.message)
    return None


def _move(context: Context, uid: str) -> Flip | None:
    """The record of the Deployment's becoming active; None if it was not recorded, or is no more than a canary yet."""
    flip = context.observed.flips.get(uid)
    return flip if flip is not None and not flip.canary_since else None


def _previous(context: Context, flip: Flip) -> ServerView | None:
    """The Deployment that was active before; None if it is gone."""
    view = context.observed.servers.get(flip.previous)
    return view if view is not None and view.uid == flip.previous_uid else None


def kept(context: Context, previous: ServerView | None) -> Effects:
    """A Deployment that is neither active nor the target, with its replicas, or fewer if the object wants fewer."""
    body = scaled(previous, min(previous.replicas, context.spec.serving.replicas)) if previous is not None else None
    return Effects((body,)) if body is not None else Effects()


def _over(context: Context, flip: Flip, previous: ServerView | None, effects: Effects) -> Soaking:
    """The soak with its verdict. If the pass that judged ended before the Service went back, this one lets it."""
    assert flip.reason is not None
    status = {Reason.SOAK_PASSED: True, Reason.SOAK_INCONCLUSIVE: None}.get(flip.reason, False)
    verdict = Verdict("Soaked", status, flip.reason, flip.message)
    if flip.reason is not Reason.SOAK_FAILED or previous is None or not previous.answers:
        return Soaking(verdict, effects)
    return Soaking(verdict, effects + kept(context, previous), back_to=flip.previous)


def _early(context: Context, previous: ServerView | None, flip: Flip, successor: str) -> str:
    """Why the soak ends before its time, in words; empty: it does not."""
    if successor:
        why = f"Deployment {successor} starts with another revision"
    elif previous is None:
        why = f"Deployment {flip.previous}, which was active before, is gone"
    elif context.spec.serving.replicas == 0:
        why = "spec.serving.replicas is 0"
    else:
        return ""
    return f"the soak ended early, because {why}"


def _decided(context: Context, flip: Flip, found: Judgement, previous: ServerView | None) -> Flip:
    """The record with the verdict in words."""
    words, reason = f"revision {flip.revision} in Deployment {flip.server}: {found.words}{_canary(flip)}", found.reason
    if reason is Reason.SOAK_PASSED:
        return replace(flip, before=None, reason=reason, message=words)
    if reason is Reason.SOAK_FAILED and previous is not None and previous.answers:
        words = (
            f"{words}; Deployment {flip.previous} is active again, and this revision is not tried again until the spec"
            f" or the source changes, or you type: {context.retry_command}"
        )
        return replace(flip, reason=reason, message=words, intent=intent(context))
    words += "; it stays without a verdict"
    if reason is Reason.SOAK_FAILED:
        words = f"{words}, because Deployment {flip.previous} does not answer"
    return replace(flip, before=None, reason=Reason.SOAK_INCONCLUSIVE, message=words)


def _canary(flip: Flip) -> str:
    """Words about the canary before the move; empty if there was none."""
    return f"; its canary before that: {', '.join(flip.steps)}" if flip.steps else ""


def _progress(context: Context, flip: Flip, end: datetime) -> str:
    if context.now >= end and context.spec.suspend:
        return f"the soak of Deployment {flip.server} is over, and is judged once spec.suspend is false{why(flip)}"
    if context.now >= end:
        words = f"the counters of Deployment {flip.server} at the end of the soak are read; {flip.previous} still runs"
        return words + why(flip)
    words = f"Deployment {flip.server} is soaked until {end:%H:%M:%S} UTC; until then {flip.previous} runs too"
    return words + _canary(flip) + why(flip)


def _counters(
    context: Context, server: ServerView, moment: str, flip: Flip | None, previous: ServerView | None = None
) -> Run[SnapshotResult]:
    """The Job that reads the counters of a revision, and of the previous one if that is given."""
    return snapshot.counters(context, server, moment, flip.at if flip is not None else "", previous)


def _key(uid: str, moment: str, flip: Flip | None) -> str:
    return snapshot.key(uid, moment, flip.at if flip is not None else "")


def intent(context: Context) -> str:
    """A digest of what the user asks for, without what changes no target.

    That is the replicas, which an autoscaler sets, and how a target takes over: the choice that ended a roll-out, taken
    back, is no wish to begin it anew.
    """
    spec = context.spec
    serving = spec.serving.model_copy(update={"replicas": 1})
    asked = spec.model_copy(update={"serving": serving, "suspend": False, "rollout": Rollout()})
    before = renamed.as_before(asked.model_dump(mode="json", by_alias=True, exclude_defaults=True))
    return names.digest([before, context.deployment.retry], 16)
