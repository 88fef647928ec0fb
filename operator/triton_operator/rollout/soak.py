"""Soak: judge a revision by its first requests, and go back to the previous one if it does worse. Pure.

The move of the Service is recorded before it is made, because nothing else shows afterwards which revision was active
before. A Job reads the counters of both revisions after the move, and another one those of the new revision at the end
of the soak. A revision's first counters are needed again when it is the previous one: they are subtracted from its last
ones, because they hold the requests of its measurement.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from math import inf

from triton_converters.contract.reasons import Reason
from triton_converters.contract.records import record_name
from triton_converters.contract.results import SnapshotResult
from triton_operator.api.serving import Soak
from triton_operator.context import Context
from triton_operator.effects import Effects, Statement
from triton_operator.jobs import snapshot
from triton_operator.jobs.run import Run
from triton_operator.observed.promotion import Promotion
from triton_operator.observed.server import ServerView
from triton_operator.resources.deployment import scaled
from triton_operator.rollout import wording
from triton_operator.rollout.counting import (
    outage_verdict,
    patience_seconds,
    restart_verdict,
    unread_verdict,
    with_outage,
)
from triton_operator.rollout.inconclusive import (
    again_after,
    due_time,
    held_record,
    next_course,
    reading_name,
    reason_of,
    waived_verdict,
    with_time_since,
)
from triton_operator.rollout.judging import judge
from triton_operator.rollout.moves import keep_deployment, spec_digest
from triton_operator.rollout.soak_decision import Beginning, SoakFacts, SoakMove, next_soak
from triton_operator.rollout.traffic import Verdict, total, traffic_between

FIRST, LAST = "first", "last"
"""Names of the two moments at which a revision's counters are read: after the move, and at the end of the soak."""


@dataclass(frozen=True)
class Soaking:
    """The active revision's soak after this pass."""

    condition: Statement | None = None
    """The condition Soaked; None: the spec asks for no soak."""
    effects: Effects = field(default_factory=Effects)
    goes_on: bool = False
    undoes: bool = False
    """Whether the active revision failed, so that the Service moves back once the previous one answers."""
    back_to: str | None = None
    """Name of the Deployment that the Service moves back to; None: it does not move yet, or not at all."""
    again_after: float | None = None
    """Seconds until time alone changes the soak; None: time alone does not."""


def soak(context: Context, successor: str = "") -> Soaking:
    """Go on with the soak of the active revision.

    ``successor``: name of the Deployment of a third revision that starts, which ends the soak; empty: none starts.
    """
    observed = _observe(context, successor)
    return _ACTIONS[next_soak(observed.facts)](context, observed)


@dataclass(frozen=True)
class _ObservedSoak:
    """A soak with everything observed about it."""

    facts: SoakFacts
    active: ServerView | None = None
    move_record: Promotion | None = None
    """The record of the Service's move to the active revision."""
    previous: ServerView | None = None
    """The Deployment that was active before; None: it is gone."""
    verdict_so_far: Verdict | None = None
    """The verdict by the requests and the restarts so far; None: there is none yet."""
    effects: Effects = field(default_factory=Effects)
    """What is asked of the cluster: Jobs that read counters, and records to write."""
    patience: float = inf
    """Seconds for which counters are still waited for; infinite: for no Job that runs."""

    @property
    def promotion(self) -> Promotion:
        """The record of the move, for a soak that has begun."""
        assert self.move_record is not None
        return self.move_record

    @property
    def uid(self) -> str:
        """The uid of the active revision's Deployment, under which its move is recorded."""
        assert self.active is not None
        return self.active.uid

    @property
    def verdict(self) -> Verdict:
        """The verdict on a soak that has one."""
        assert self.verdict_so_far is not None
        return self.verdict_so_far


def _observe(context: Context, successor: str) -> _ObservedSoak:
    """Return what is observed of the soak."""
    bounds, active = context.spec.serving.soak, context.observed.servers.get(context.active_server or "")
    if bounds is None or active is None:
        return _ObservedSoak(SoakFacts(bounds is not None, Beginning.NO_REVISION))
    promotion = _move_record(context, active.uid)
    if promotion is None or promotion.reason is not None:
        first_reading = _counters(context, active, FIRST, promotion)
        beginning = Beginning.NOTHING if promotion is None else Beginning.JUDGED
        previous = _previous(context, promotion) if promotion is not None else None
        return _ObservedSoak(SoakFacts(True, beginning), active, promotion, previous, None, first_reading.effects)
    previous = _previous(context, promotion)
    first_reading = _counters(context, active, FIRST, promotion, previous)
    start_reading, effects = first_reading, first_reading.effects
    if promotion.window_since:
        start_reading = _counters(context, active, f"{FIRST} {promotion.window_since}", promotion, previous)
        effects += start_reading.effects
    renewed = with_time_since(context, with_outage(context, promotion, active), start_reading.finished_at)
    if renewed != promotion:
        promotion, effects = renewed, effects + Effects(promotions={active.uid: renewed})
    early_end = _early_end(context, active, previous, promotion, successor)
    window_start = datetime.fromisoformat(promotion.window_since or promotion.at)
    restart = restart_verdict(active, previous, window_start, "the revision became active")
    outage = outage_verdict(context, promotion, active, previous)
    verdict, patience = outage or restart or waived_verdict(context, promotion), inf
    if verdict is None and early_end is None:
        verdict, more, patience = _verdict(context, bounds, active, promotion, first_reading, start_reading)
        effects += more
    has_crashed = restart is not None and restart.reason is Reason.SOAK_FAILED
    course = next_course(context.spec.rollout.on_inconclusive, verdict) if verdict is not None else None
    facts = SoakFacts(True, Beginning.OPEN, early_end is not None, has_crashed, course, active.answers)
    # A crash decides the soak, also where it could not go on.
    verdict = verdict if has_crashed else early_end or verdict
    return _ObservedSoak(facts, active, promotion, previous, verdict, effects, patience)


def _none(context: Context, observed: _ObservedSoak) -> Soaking:
    return Soaking()


def _await_revision(context: Context, observed: _ObservedSoak) -> Soaking:
    return Soaking(wording.no_revision_condition("Soaked"))


def _await_next(context: Context, observed: _ObservedSoak) -> Soaking:
    return Soaking(wording.not_recorded_condition(), observed.effects)


def _judge(context: Context, observed: _ObservedSoak) -> Soaking:
    return _end(context, observed, observed.verdict)


def _undo(context: Context, observed: _ObservedSoak) -> Soaking:
    return _end(context, observed, wording.undo_verdict(observed.verdict))


def _hold(context: Context, observed: _ObservedSoak) -> Soaking:
    return _go_on(context, _with_record(observed, held_record(context, observed.promotion, observed.verdict)))


def _begin_anew(context: Context, observed: _ObservedSoak) -> Soaking:
    promotion = held_record(context, observed.promotion, observed.verdict)
    return _go_on(context, _with_record(observed, replace(promotion, window_since=context.now.isoformat())))


def _with_record(observed: _ObservedSoak, promotion: Promotion) -> _ObservedSoak:
    """Return the soak with another record of the move, which is to be written."""
    return replace(
        observed, move_record=promotion, effects=observed.effects + Effects(promotions={observed.uid: promotion})
    )


def _verdict(
    context: Context,
    bounds: Soak,
    active: ServerView,
    promotion: Promotion,
    first_reading: Run[SnapshotResult],
    start_reading: Run[SnapshotResult],
) -> tuple[Verdict | None, Effects, float]:
    """Return the verdict by the counters, the Jobs that it needs, and `_ObservedSoak.patience`; None: no verdict yet.

    ``first_reading``: the reading of the counters when the Service moved. ``start_reading``: from which requests count.
    """
    previous_record = record_name(
        snapshot.STAGE, _counters_key(promotion.previous_uid, FIRST, _move_record(context, promotion.previous_uid))
    )
    effects = Effects(needed=frozenset({previous_record}))
    if context.now < due_time(context, promotion):
        return None, effects, inf
    if start_reading.record is None:
        moment = "when the revision became active"
        verdict = unread_verdict(context, start_reading, moment, spoiled=True)
        return verdict, effects, patience_seconds(context, start_reading)
    last_reading = _counters(context, active, reading_name(LAST, promotion), promotion)
    effects += last_reading.effects
    if last_reading.record is None:
        verdict = unread_verdict(context, last_reading, "at the end of the soak")
        return verdict, effects, patience_seconds(context, last_reading)
    new_traffic = traffic_between(
        snapshot.recorded_counters(start_reading.record).active, snapshot.recorded_counters(last_reading.record).active
    )
    # The previous revision gets no requests since the move, so its counters of then are its last ones. A later reading
    # would be lost with a restart of its servers.
    own_start, end_counters = (
        context.observed.records.get(previous_record),
        snapshot.recorded_counters(first_reading.record or start_reading.record),
    )
    previous_traffic = (
        total(traffic_between(snapshot.recorded_counters(own_start).active, end_counters.previous).values())
        if own_start is not None
        else None
    )
    return judge(bounds, new_traffic, previous_traffic), effects, inf


def _go_on(context: Context, observed: _ObservedSoak) -> Soaking:
    """Return a soak that goes on. The previous revision keeps its pods."""
    promotion, end = observed.promotion, due_time(context, observed.promotion)
    condition = wording.soaking_condition(context, reason_of(context, promotion, Reason.SOAKING), promotion, end)
    seconds_left = (end - context.now).total_seconds()
    # Until a Job that reads the counters may run, only an edit or an event changes the soak.
    wait_seconds = seconds_left if seconds_left > 0 else None if observed.patience == inf else observed.patience
    effects = observed.effects + keep_deployment(context, observed.previous)
    return Soaking(condition, effects, goes_on=True, again_after=again_after(context, promotion, wait_seconds))


def _end(context: Context, observed: _ObservedSoak, verdict: Verdict) -> Soaking:
    """Return the soak with the verdict that it gets in this pass."""
    return _stand(
        context, _with_record(observed, _record_with_verdict(context, observed.promotion, verdict, observed.previous))
    )


def _stand(context: Context, observed: _ObservedSoak) -> Soaking:
    """Return the soak by its recorded verdict.

    If that failed, the Service moves back, also if the pass that judged ended before it could move it. The previous
    revision is kept until it answers, with as many replicas as it then needs.
    """
    promotion, previous, effects = observed.promotion, observed.previous, observed.effects
    assert promotion.reason is not None
    status = {Reason.SOAK_PASSED: True, Reason.SOAK_INCONCLUSIVE: None}.get(promotion.reason, False)
    if promotion.reason is not Reason.SOAK_FAILED:
        return Soaking(Statement("Soaked", status, promotion.reason, promotion.message), effects)
    if previous is None:
        return Soaking(wording.not_undone_condition(promotion, None), effects)
    body = scaled(context, previous, context.spec.serving.replicas)
    effects += Effects((body,)) if body is not None else Effects()
    if not previous.answers:
        return Soaking(wording.not_undone_condition(promotion, previous), effects, undoes=True)
    return Soaking(wording.undone_condition(promotion), effects, undoes=True, back_to=promotion.previous)


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
"""The function that carries out each move: what it asks of the cluster, and what it reports."""


def skip(context: Context) -> Soaking:
    """Soak no revision that the spec names. Its counters are read, for the comparison with the revision after it."""
    active = context.observed.servers.get(context.active_server or "")
    if context.spec.serving.soak is None:
        return Soaking()
    promotion = _move_record(context, active.uid) if active is not None else None
    effects = _counters(context, active, FIRST, promotion).effects if active is not None else Effects()
    return Soaking(wording.served_before_condition(), effects)


def _move_record(context: Context, uid: str) -> Promotion | None:
    """Return the record of the Service's move to the Deployment; None: there is none, or it is a canary's record."""
    promotion = context.observed.promotions.get(uid)
    return promotion if promotion is not None and not promotion.canary_since else None


def _previous(context: Context, promotion: Promotion) -> ServerView | None:
    """Return the Deployment that was active before; None: it is gone."""
    view = context.observed.servers.get(promotion.previous)
    return view if view is not None and view.uid == promotion.previous_uid else None


def _early_end(
    context: Context, active: ServerView, previous: ServerView | None, promotion: Promotion, successor: str
) -> Verdict | None:
    """Return the verdict on a soak that ends before its time; None: it does not."""
    # A third revision takes minutes to start, and nothing but the previous one answers until then.
    if successor and (active.answers or previous is None or not previous.answers):
        return wording.superseded_verdict(successor)
    if previous is None:
        return wording.previous_gone_verdict(promotion)
    return wording.no_replicas_verdict() if context.spec.serving.replicas == 0 else None


def _record_with_verdict(
    context: Context, promotion: Promotion, verdict: Verdict, previous: ServerView | None
) -> Promotion:
    """Return the record of the move with the verdict."""
    if verdict.reason is Reason.SOAK_PASSED:
        return replace(
            promotion, before=None, reason=verdict.reason, message=wording.soak_passed_message(promotion, verdict)
        )
    if verdict.reason is Reason.SOAK_FAILED and previous is not None:
        message = wording.soak_failed_message(context, promotion, verdict)
        return replace(promotion, reason=verdict.reason, message=message, intent=spec_digest(context))
    message = wording.soak_inconclusive_message(promotion, verdict)
    return replace(promotion, before=None, reason=Reason.SOAK_INCONCLUSIVE, message=message)


def _counters(
    context: Context, server: ServerView, moment: str, promotion: Promotion | None, previous: ServerView | None = None
) -> Run[SnapshotResult]:
    """Run the Job that reads the counters of a revision, and of the previous one if that is given.

    ``moment``: name of the moment at which they are read.
    """
    return snapshot.counters(context, server, moment, promotion.at if promotion is not None else "", previous)


def _counters_key(uid: str, moment: str, promotion: Promotion | None) -> str:
    return snapshot.key(uid, moment, promotion.at if promotion is not None else "")
