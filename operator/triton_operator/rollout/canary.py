"""Canary: a measured revision gets a share of the route's requests, step by step, before it becomes active. Pure.

A canary is recorded before its first request, by the uid of the new revision's Deployment, and each step as it ends. A
step is judged by what both revisions answered between two readings of their counters, so in the same time. When a
canary ends without the Service's move, the share ends first; its pods, and the preview Service that points to them,
stay until no gateway can send them a request any more.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import SnapshotResult
from triton_operator.api.serving import Soak
from triton_operator.context import Context
from triton_operator.effects import Effects, Statement
from triton_operator.jobs.run import Run
from triton_operator.jobs.snapshot import counters, recorded_counters
from triton_operator.observed.promotion import Promotion
from triton_operator.observed.server import ServerView
from triton_operator.rollout import wording
from triton_operator.rollout.canary_decision import TRIALS, CanaryFacts, CanaryMove, CanaryStage, next_step
from triton_operator.rollout.counting import is_down_for_long, restart_verdict, unread_verdict, with_outage
from triton_operator.rollout.decision import Trial
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
from triton_operator.rollout.room import makes_way
from triton_operator.rollout.traffic import Verdict, total, traffic_between

RELEASE_SECONDS = 15.0
"""Seconds for which the pods of a canary that ended stay at least.

A gateway may report that it has a route some seconds before it works by it.
"""
LONGEST_RELEASE_SECONDS = 120.0
"""Seconds for which the pods of a canary that ended stay if no Gateway reports that it has the later route.

Gateways take up a route within seconds. One that is silent for so long will not report at all.
"""


@dataclass(frozen=True)
class Canary:
    """The canary after this pass: the share of the route's requests that a revision gets before it is active."""

    condition: Statement | None = None
    """The condition Soaked; None: there is no canary, or it is over and the Service may move."""
    effects: Effects = field(default_factory=Effects)
    share: int = 0
    """Percent of the route's requests for the preview Service."""
    holds: str | None = None
    """Name of the Deployment to which the preview Service still has to point, because its canary ended a moment ago."""
    again_after: float | None = None
    """Seconds until time alone changes the canary; None: time alone does not."""


@dataclass(frozen=True)
class ObservedCanary:
    """The canary of a target that was measured, with everything observed about it."""

    facts: CanaryFacts
    target: ServerView
    active: ServerView | None = None
    """The active Deployment, with which the target is compared; None: there is none."""
    record: Promotion | None = None
    """The record of the canary; None: the canary has not begun."""
    verdict_so_far: Verdict | None = None
    """The verdict on the present step; None: there is none yet."""
    effects: Effects = field(default_factory=Effects)
    """What is asked of the cluster: Jobs that read counters, and records to write."""

    @property
    def trial(self) -> Trial:
        """What comes next for the canary, if the target may share requests."""
        return TRIALS[next_step(self.facts)]

    @property
    def promotion(self) -> Promotion:
        """The record of a canary that has begun."""
        assert self.record is not None
        return self.record

    @property
    def verdict(self) -> Verdict:
        """The verdict on a step that has one."""
        assert self.verdict_so_far is not None
        return self.verdict_so_far


def observe(context: Context, target: ServerView, is_ready: bool) -> ObservedCanary:
    """Return what is observed of the target's canary.

    ``is_ready``: whether the target's server is ready, so that the canary may begin.
    """
    active, is_possible = context.observed.servers.get(context.active_server or ""), _is_possible(context)
    is_compared = active is not None and not makes_way(context, target)
    facts = CanaryFacts(is_possible, is_compared, CanaryStage.BEFORE, is_ready, None)
    if not is_possible or not is_compared or active is None:
        return ObservedCanary(facts, target)
    record = context.observed.promotions.get(target.uid)
    promotion = record if record is not None and (record.previous_uid, record.reason) == (active.uid, None) else None
    canary = ObservedCanary(facts, target, active, promotion)
    if promotion is None:
        return canary
    if not promotion.canary_since or len(promotion.steps) >= len(_steps(context)):
        # The record may say already that the Service moves, before it does.
        return replace(canary, facts=replace(facts, stage=CanaryStage.PASSED))
    renewed = with_outage(context, promotion, active)
    if is_down_for_long(context, renewed):
        return replace(_with_record(canary, renewed), facts=replace(facts, compared=False))
    first_reading = counters(context, target, f"canary {len(promotion.steps)}", promotion.canary_since, active)
    renewed = with_time_since(context, renewed, first_reading.finished_at)
    if renewed != promotion:
        canary = _with_record(canary, renewed)
    verdict, effects = _verdict(context, target, active, renewed, first_reading)
    course = next_course(context.spec.rollout.on_inconclusive, verdict) if verdict is not None else None
    return replace(
        canary,
        facts=replace(facts, stage=CanaryStage.RUNS, course=course),
        verdict_so_far=verdict,
        effects=canary.effects + effects,
    )


def advance(context: Context, canary: ObservedCanary) -> Canary:
    """Go on with the canary of a target that may share requests."""
    return _ACTIONS[next_step(canary.facts)](context, canary)


def _none(context: Context, canary: ObservedCanary) -> Canary:
    return Canary()


def _keep(context: Context, canary: ObservedCanary) -> Canary:
    observed = context.observed.http_route
    return Canary(
        effects=canary.effects,
        share=observed.share if observed is not None and canary.target.answers else 0,
        again_after=again_after(context, canary.record, None) if canary.record is not None else None,
    )


def _hand_over(context: Context, canary: ObservedCanary) -> Canary:
    return Canary(share=_steps(context)[-1] if canary.target.answers else 0)


def _begin(context: Context, canary: ObservedCanary) -> Canary:
    target, active, now = canary.target, canary.active, context.now.isoformat()
    assert active is not None
    promotion = Promotion(target.revision_key, target.name, active.name, active.uid, at=now, canary_since=now)
    # In this pass only the record is written. A Job that is made before it would have another key in the next pass, and
    # a share without a record would end without its pods being kept for the last requests.
    return replace(_go_on(context, _with_record(canary, promotion)), share=0)


def _go_on(context: Context, canary: ObservedCanary) -> Canary:
    """Return the canary at its present step, with its share."""
    promotion, answers = canary.promotion, canary.target.answers
    end = due_time(context, promotion)
    reason = reason_of(context, promotion, Reason.CANARY)
    return Canary(
        condition=wording.canary_condition(context, reason, promotion, _steps(context), end, answers),
        effects=canary.effects,
        # Without a pod that is ready, its requests would fail.
        share=_share(context, promotion) if answers else 0,
        again_after=again_after(context, promotion, (end - context.now).total_seconds()),
    )


def _pass(context: Context, canary: ObservedCanary) -> Canary:
    return _go_on(context, _with_record(canary, _next_step_record(context, canary.promotion, canary.verdict)))


def _undo(context: Context, canary: ObservedCanary) -> Canary:
    verdict = wording.undo_verdict(canary.verdict)
    return _end_failed(
        context, canary, _failed_record(context, canary.promotion, _share(context, canary.promotion), verdict)
    )


def _hold(context: Context, canary: ObservedCanary) -> Canary:
    return _go_on(context, _with_record(canary, held_record(context, canary.promotion, canary.verdict)))


def _begin_anew(context: Context, canary: ObservedCanary) -> Canary:
    promotion = held_record(context, canary.promotion, canary.verdict)
    return _go_on(context, _with_record(canary, replace(promotion, canary_since=context.now.isoformat())))


def _with_record(canary: ObservedCanary, promotion: Promotion) -> ObservedCanary:
    """Return the canary with another record, which is to be written."""
    return replace(
        canary, record=promotion, effects=canary.effects + Effects(promotions={canary.target.uid: promotion})
    )


def _steps(context: Context) -> Sequence[int]:
    """Return the shares of the spec's steps, in percent; none if it has no route."""
    route = context.spec.serving.route
    return route.canary if route is not None else ()


def _share(context: Context, promotion: Promotion) -> int:
    """Return the percent of the requests that the present step gives. That of the last step stays until the move."""
    steps = _steps(context)
    return steps[min(len(promotion.steps), len(steps) - 1)]


def _soak(context: Context) -> Soak:
    """Return the bounds by which a step is judged: those of the soak."""
    bounds = context.spec.serving.soak
    assert bounds is not None
    return bounds


def _is_possible(context: Context) -> bool:
    """Whether the spec asks for steps and for what judges them, and the cluster leads requests to a pod."""
    is_asked_for = bool(_steps(context)) and context.spec.serving.soak is not None
    return is_asked_for and context.observed.has_gateway_api and context.spec.serving.replicas > 0


_ACTIONS: Mapping[CanaryMove, Callable[[Context, ObservedCanary], Canary]] = {
    CanaryMove.NONE: _none,
    CanaryMove.KEEP: _keep,
    CanaryMove.HAND_OVER: _hand_over,
    CanaryMove.BEGIN: _begin,
    CanaryMove.GO_ON: _go_on,
    CanaryMove.PASS: _pass,
    CanaryMove.UNDO: _undo,
    CanaryMove.HOLD: _hold,
    CanaryMove.BEGIN_ANEW: _begin_anew,
}
"""The function that carries out each move: what it asks of the cluster, and what it reports."""


def release(context: Context, target: str = "") -> Canary:
    """End the canary of a revision that is no longer desired, and keep its pods until no request can come.

    The share of a canary that passed ends after the Service's move, so its revision may be active. ``target``: name of
    the Deployment whose canary goes on, or may begin.
    """
    begun_canaries = [
        (promotion, server)
        for uid, promotion in context.observed.promotions.items()
        if (server := context.observed.servers.get(promotion.server)) is not None and server.uid == uid
        if promotion.canary_since or promotion.steps
    ]
    # The share is that of the newest one, because no canary begins before the one before has ended.
    newest = max(begun_canaries, key=lambda each: datetime.fromisoformat(each[0].at), default=None)
    if newest is None or newest[1].name == target:
        return Canary()
    promotion, server = newest
    is_active = server.name == context.active_server
    is_over = is_active or promotion.reason is not None
    ended_canary = promotion if is_over else _abandoned_record(context, promotion)
    seconds_left = _release_seconds(context, ended_canary)
    if seconds_left <= 0:
        return Canary()
    effects = Effects() if is_active else keep_deployment(context, server)
    effects += Effects(promotions={} if is_over else {server.uid: ended_canary})
    return Canary(effects=effects, holds=server.name, again_after=seconds_left)


def _verdict(
    context: Context, target: ServerView, active: ServerView, promotion: Promotion, first_reading: Run[SnapshotResult]
) -> tuple[Verdict | None, Effects]:
    """Return the verdict on the present step, and the Jobs that it needs; None: there is no verdict yet.

    ``first_reading``: the reading of the counters at the beginning of the step.
    """
    step, since = len(promotion.steps), promotion.canary_since
    verdict = restart_verdict(target, active, datetime.fromisoformat(since), "the canary began")
    verdict, end = verdict or waived_verdict(context, promotion), due_time(context, promotion)
    if verdict is not None or context.now < end or context.spec.suspend:
        return verdict, first_reading.effects
    verdict = unread_verdict(context, first_reading, "at the start of the step", spoiled=True)
    if first_reading.record is None:
        return verdict, first_reading.effects
    last_reading = counters(context, target, reading_name(f"canary {step + 1}", promotion), since, active)
    verdict = unread_verdict(context, last_reading, "at the end of the step")
    if last_reading.record is not None:
        start_counters, end_counters = recorded_counters(first_reading.record), recorded_counters(last_reading.record)
        previous = total(traffic_between(start_counters.previous, end_counters.previous).values())
        verdict = judge(
            _soak(context),
            traffic_between(start_counters.active, end_counters.active),
            previous,
            when="at the same time",
        )
    return verdict, first_reading.effects + last_reading.effects


def _next_step_record(context: Context, promotion: Promotion, verdict: Verdict) -> Promotion:
    """Return the record of a canary at its next step, which begins with the counters at the end of this one."""
    now, step_words = context.now.isoformat(), wording.step_message(_share(context, promotion), verdict)
    next_record = replace(promotion, at=now, steps=(*promotion.steps, step_words))
    # The requests since the last reading of such a step came with that step's share, so they do not count for the next.
    return (
        replace(next_record, canary_since=now, message="", held_since="", again_at="")
        if promotion.again_at
        else next_record
    )


def _end_failed(context: Context, canary: ObservedCanary, promotion: Promotion) -> Canary:
    return Canary(
        condition=Statement("Soaked", False, Reason.SOAK_FAILED, promotion.message),
        effects=canary.effects
        + keep_deployment(context, canary.target)
        + Effects(promotions={canary.target.uid: promotion}),
        holds=canary.target.name,
        again_after=RELEASE_SECONDS,
    )


def _failed_record(context: Context, promotion: Promotion, share: int, verdict: Verdict) -> Promotion:
    """Return the record of a canary that failed."""
    message, digest = wording.canary_failed_message(context, promotion, share, verdict), spec_digest(context)
    return replace(promotion, at=context.now.isoformat(), reason=Reason.SOAK_FAILED, message=message, intent=digest)


def _abandoned_record(context: Context, promotion: Promotion) -> Promotion:
    """Return the record of a canary whose revision is not the target any more."""
    message = wording.canary_abandoned_message(promotion)
    return replace(promotion, at=context.now.isoformat(), reason=Reason.SOAK_INCONCLUSIVE, message=message)


def _release_seconds(context: Context, ended_canary: Promotion) -> float:
    """Return the seconds for which the pods of a canary that ended still have to stay.

    A Gateway that reports the later route makes them fewer.
    """
    route = context.observed.http_route
    if context.spec.serving.replicas == 0:
        return 0.0
    if route is not None and route.share > 0:
        # The share is about to end, or the API server refuses that it ends.
        return LONGEST_RELEASE_SECONDS
    ended_for = (context.now - datetime.fromisoformat(ended_canary.at)).total_seconds()
    return (RELEASE_SECONDS if route is None or route.is_seen else LONGEST_RELEASE_SECONDS) - ended_for
