"""Soak: judge a revision by its first requests, and go back to the previous one if it does worse. Pure.

The move of the Service is recorded before it is made, with what the verdict needs later: nothing else tells afterwards
which revision was active before. A Job reads the counters of both revisions after the move, another one those of the
new revision at the end. A revision's first counters are also the start of its own time as the previous one: what they
hold by then is the load of its measurement.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from triton_converters.contract.reasons import Reason
from triton_converters.contract.records import record_name
from triton_converters.contract.results import SnapshotResult
from triton_operator.api.duration import seconds
from triton_operator.api.serving import Soak
from triton_operator.context import Context
from triton_operator.effects import Effects, Statement
from triton_operator.jobs import snapshot
from triton_operator.jobs.run import Run
from triton_operator.observed.promotion import Promotion
from triton_operator.observed.server import ServerView
from triton_operator.rollout import wording
from triton_operator.rollout.counting import PATIENCE_SECONDS, restart_verdict, unread_verdict
from triton_operator.rollout.inconclusive import (
    again_after,
    due_time,
    held_record,
    next_course,
    reading_name,
    reason_of,
    waived_verdict,
)
from triton_operator.rollout.judging import judge
from triton_operator.rollout.moves import keep_deployment, spec_digest
from triton_operator.rollout.soak_decision import Beginning, SoakFacts, SoakMove, next_soak
from triton_operator.rollout.traffic import Verdict, total, traffic_between

FIRST, LAST = "first", "last"
"""The two moments at which a revision's counters are read."""


@dataclass(frozen=True)
class Soaking:
    """What becomes of the active revision's soak."""

    condition: Statement | None = None
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
    seen = _observe(context, successor)
    return _ACTIONS[next_soak(seen.facts)](context, seen)


@dataclass(frozen=True)
class _ObservedSoak:
    """A soak and all that is observed of it."""

    facts: SoakFacts
    active: ServerView | None = None
    move: Promotion | None = None
    """The record of the Service's move to the active revision."""
    previous: ServerView | None = None
    """The Deployment that was active before; None if it is gone."""
    found: Verdict | None = None
    """What the requests and the crashes say; None: nothing yet."""
    effects: Effects = field(default_factory=Effects)
    """What it takes to observe the soak."""

    @property
    def promotion(self) -> Promotion:
        """The record of the move, of a soak that has begun."""
        assert self.move is not None
        return self.move

    @property
    def uid(self) -> str:
        """The uid of the active revision's Deployment, under which its move is recorded."""
        assert self.active is not None
        return self.active.uid

    @property
    def verdict(self) -> Verdict:
        """What was found, of a soak of which something was."""
        assert self.found is not None
        return self.found


def _observe(context: Context, successor: str) -> _ObservedSoak:
    """Return what is observed of the soak, as far as it has come."""
    bounds, active = context.spec.serving.soak, context.observed.servers.get(context.active_server or "")
    if bounds is None or active is None:
        return _ObservedSoak(SoakFacts(bounds is not None, Beginning.NO_REVISION))
    promotion = _move_record(context, active.uid)
    if promotion is None or promotion.reason is not None:
        first = _counters(context, active, FIRST, promotion)
        beginning = Beginning.NOTHING if promotion is None else Beginning.JUDGED
        previous = _previous(context, promotion) if promotion is not None else None
        return _ObservedSoak(SoakFacts(True, beginning), active, promotion, previous, None, first.effects)
    previous = _previous(context, promotion)
    first = _counters(context, active, FIRST, promotion, previous)
    early = _early_end(context, previous, promotion, successor)
    since = datetime.fromisoformat(promotion.window_since or promotion.at)
    crash = restart_verdict(active, previous, since, "the revision became active")
    found, effects = crash or waived_verdict(context, promotion), first.effects
    if found is None and early is None:
        found, effects = _verdict(context, bounds, active, previous, promotion, first)
    has_crashed = crash is not None and crash.reason is Reason.SOAK_FAILED
    follows = next_course(context.spec.rollout.on_inconclusive, found) if found is not None else None
    facts = SoakFacts(True, Beginning.OPEN, early is not None, has_crashed, follows)
    # A crash says more than that the soak cannot go on.
    return _ObservedSoak(facts, active, promotion, previous, found if has_crashed else early or found, effects)


def _none(context: Context, seen: _ObservedSoak) -> Soaking:
    return Soaking()


def _await_revision(context: Context, seen: _ObservedSoak) -> Soaking:
    return Soaking(wording.no_revision())


def _await_next(context: Context, seen: _ObservedSoak) -> Soaking:
    return Soaking(wording.not_recorded(), seen.effects)


def _judge(context: Context, seen: _ObservedSoak) -> Soaking:
    return _end(context, seen, seen.verdict)


def _undo(context: Context, seen: _ObservedSoak) -> Soaking:
    return _end(context, seen, wording.unjudged(seen.verdict))


def _hold(context: Context, seen: _ObservedSoak) -> Soaking:
    return _go_on(context, _with_record(seen, held_record(context, seen.promotion, seen.verdict, _duration(context))))


def _begin_anew(context: Context, seen: _ObservedSoak) -> Soaking:
    promotion = held_record(context, seen.promotion, seen.verdict, _duration(context))
    return _go_on(context, _with_record(seen, replace(promotion, window_since=context.now.isoformat())))


def _with_record(seen: _ObservedSoak, promotion: Promotion) -> _ObservedSoak:
    """Return the soak with another record from this pass on, and the wish to write it."""
    return replace(seen, move=promotion, effects=seen.effects + Effects(promotions={seen.uid: promotion}))


def _duration(context: Context) -> float:
    """Return how long the spec's soak takes, in seconds."""
    bounds = context.spec.serving.soak
    assert bounds is not None
    return seconds(bounds.duration)


def _verdict(
    context: Context,
    bounds: Soak,
    active: ServerView,
    previous: ServerView | None,
    promotion: Promotion,
    first: Run[SnapshotResult],
) -> tuple[Verdict | None, Effects]:
    """The verdict by what was counted, and what it takes to reach it; None: there is none yet.

    ``first``: the reading of the counters when the Service moved.
    """
    before = record_name(
        snapshot.STAGE, _counters_key(promotion.previous_uid, FIRST, _move_record(context, promotion.previous_uid))
    )
    begun, effects = first, first.effects + Effects(needed=frozenset({before}))
    if promotion.window_since:
        begun = _counters(context, active, f"{FIRST} {promotion.window_since}", promotion, previous)
        effects += begun.effects
    end = due_time(promotion, seconds(bounds.duration))
    if context.now < end:
        return None, effects
    if begun.record is None:
        return unread_verdict(context, begun, "when the revision became active", end, spoiled=True), effects
    last = _counters(context, active, reading_name(LAST, promotion), promotion)
    effects += last.effects
    if last.record is None:
        return unread_verdict(context, last, "at the end of the soak", end), effects
    new = traffic_between(
        snapshot.recorded_counters(begun.record).active, snapshot.recorded_counters(last.record).active
    )
    # The previous revision gets no requests any more, so the earlier reading of its counters is as good, and survives
    # its restart.
    own, stop = context.observed.records.get(before), snapshot.recorded_counters(first.record or begun.record)
    old = (
        total(traffic_between(snapshot.recorded_counters(own).active, stop.previous).values())
        if own is not None
        else None
    )
    return judge(bounds, new, old), effects


def _go_on(context: Context, seen: _ObservedSoak) -> Soaking:
    """The soak without a verdict yet; the previous revision keeps its pods."""
    promotion, end = seen.promotion, due_time(seen.promotion, _duration(context))
    condition = wording.soaking(context, reason_of(context, promotion, Reason.SOAKING), promotion, end)
    left = (end - context.now).total_seconds()
    # An edit, or the queue, wakes the next pass after that.
    waits = left > -PATIENCE_SECONDS and not context.spec.suspend
    again = left if left > 0 else max(1.0, left + PATIENCE_SECONDS) if waits else None
    effects = seen.effects + keep_deployment(context, seen.previous)
    return Soaking(condition, effects, goes_on=True, again_after=again_after(context, promotion, again))


def _end(context: Context, seen: _ObservedSoak, found: Verdict) -> Soaking:
    """The soak that gets its verdict in this pass."""
    return _stand(context, _with_record(seen, _record_with_verdict(context, seen.promotion, found, seen.previous)))


def _stand(context: Context, seen: _ObservedSoak) -> Soaking:
    """The soak with its verdict. If the pass that judged ended before the Service went back, this one lets it."""
    promotion, previous, effects = seen.promotion, seen.previous, seen.effects
    assert promotion.reason is not None
    status = {Reason.SOAK_PASSED: True, Reason.SOAK_INCONCLUSIVE: None}.get(promotion.reason, False)
    condition = Statement("Soaked", status, promotion.reason, promotion.message)
    if promotion.reason is not Reason.SOAK_FAILED or previous is None or not previous.answers:
        return Soaking(condition, effects)
    return Soaking(condition, effects + keep_deployment(context, previous), back_to=promotion.previous)


_ACTIONS: Mapping[SoakMove, Callable[[Context, _ObservedSoak], Soaking]] = {
    SoakMove.NONE: _none,
    SoakMove.AWAIT_REVISION: _await_revision,
    SoakMove.AWAIT_NEXT: _await_next,
    SoakMove.STAND: _stand,
    SoakMove.END_EARLY: _judge,
    SoakMove.GO_ON: _go_on,
    SoakMove.JUDGE: _judge,
    SoakMove.UNDO: _undo,
    SoakMove.HOLD: _hold,
    SoakMove.BEGIN_ANEW: _begin_anew,
}
"""What each move says, and asks of the cluster."""


def skip(context: Context) -> Soaking:
    """No soak of a revision that the spec names; its counters are read for the comparison with what comes after it."""
    active = context.observed.servers.get(context.active_server or "")
    if context.spec.serving.soak is None:
        return Soaking()
    promotion = _move_record(context, active.uid) if active is not None else None
    effects = _counters(context, active, FIRST, promotion).effects if active is not None else Effects()
    return Soaking(wording.served_before(), effects)


def _move_record(context: Context, uid: str) -> Promotion | None:
    """The record of the Deployment's becoming active; None if it was not recorded, or is no more than a canary yet."""
    promotion = context.observed.promotions.get(uid)
    return promotion if promotion is not None and not promotion.canary_since else None


def _previous(context: Context, promotion: Promotion) -> ServerView | None:
    """The Deployment that was active before; None if it is gone."""
    view = context.observed.servers.get(promotion.previous)
    return view if view is not None and view.uid == promotion.previous_uid else None


def _early_end(context: Context, previous: ServerView | None, promotion: Promotion, successor: str) -> Verdict | None:
    """Why the soak ends before its time; None: it does not."""
    if successor:
        return wording.superseded(successor)
    if previous is None:
        return wording.previous_gone(promotion)
    return wording.no_replicas() if context.spec.serving.replicas == 0 else None


def _record_with_verdict(
    context: Context, promotion: Promotion, found: Verdict, previous: ServerView | None
) -> Promotion:
    """The record with the verdict in words."""
    if found.reason is Reason.SOAK_PASSED:
        return replace(promotion, before=None, reason=found.reason, message=wording.soak_passed(promotion, found))
    if found.reason is Reason.SOAK_FAILED and previous is not None and previous.answers:
        words = wording.soak_failed(context, promotion, found)
        return replace(promotion, reason=found.reason, message=words, intent=spec_digest(context))
    words = wording.soak_inconclusive(promotion, found)
    return replace(promotion, before=None, reason=Reason.SOAK_INCONCLUSIVE, message=words)


def _counters(
    context: Context, server: ServerView, name: str, promotion: Promotion | None, previous: ServerView | None = None
) -> Run[SnapshotResult]:
    """The Job that reads the counters of a revision, and of the previous one if that is given.

    ``name``: the moment at which they are read.
    """
    return snapshot.counters(context, server, name, promotion.at if promotion is not None else "", previous)


def _counters_key(uid: str, name: str, promotion: Promotion | None) -> str:
    return snapshot.key(uid, name, promotion.at if promotion is not None else "")
