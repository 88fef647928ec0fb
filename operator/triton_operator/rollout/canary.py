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
from triton_operator.api.duration import seconds
from triton_operator.api.serving import Soak
from triton_operator.context import Context
from triton_operator.effects import Effects, Statement
from triton_operator.jobs.snapshot import counters, recorded_counters
from triton_operator.observed.promotion import Promotion
from triton_operator.observed.server import ServerView
from triton_operator.rollout import wording
from triton_operator.rollout.canary_decision import TRIALS, CanaryFacts, CanaryMove, CanaryStage, next_step
from triton_operator.rollout.counting import restart_verdict, unread_verdict
from triton_operator.rollout.decision import Trial
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
from triton_operator.rollout.room import makes_way
from triton_operator.rollout.traffic import Verdict, total, traffic_between

RELEASE_SECONDS = 15.0
"""How long the pods of a canary that ended stay at least: a gateway may say that it knows a route before that works."""
LONGEST_RELEASE_SECONDS = 120.0
"""The longest that the pods of a canary that ended stay, in seconds, if a Gateway is silent about the later route."""


@dataclass(frozen=True)
class Canary:
    """What becomes of the share of the route's requests that a revision gets before it is active."""

    condition: Statement | None = None
    """The condition; None: there is no canary, or it is over and the Service may move."""
    effects: Effects = field(default_factory=Effects)
    share: int = 0
    """Percent of the route's requests for the preview Service."""
    holds: str | None = None
    """Name of the Deployment that the preview Service still has to point to, because the canary ended just now."""
    again_after: float | None = None
    """Seconds until time alone changes it."""


@dataclass(frozen=True)
class ObservedCanary:
    """The canary of a target that was measured, and all that is observed of it."""

    facts: CanaryFacts
    target: ServerView
    active: ServerView | None = None
    """The Deployment that the target is compared with; None: there is none that answers."""
    record: Promotion | None = None
    """What is recorded of the canary; None: nothing."""
    found: Verdict | None = None
    """What the present step of the canary shows; None: nothing yet."""
    effects: Effects = field(default_factory=Effects)
    """What it takes to observe the canary."""

    @property
    def trial(self) -> Trial:
        """What comes next of the canary, if the target may share requests."""
        return TRIALS[next_step(self.facts)]

    @property
    def promotion(self) -> Promotion:
        """The record of a canary that has begun."""
        assert self.record is not None
        return self.record

    @property
    def verdict(self) -> Verdict:
        """What was found, of a step of which something was."""
        assert self.found is not None
        return self.found


def observe(context: Context, target: ServerView, is_ready: bool) -> ObservedCanary:
    """Return what is observed of the target's canary, as far as it has come.

    ``is_ready``: whether the target's server is, so that the canary may begin.
    """
    active, possible = context.observed.servers.get(context.active_server or ""), _is_possible(context)
    compared = active is not None and active.answers and not makes_way(context, target)
    facts = CanaryFacts(possible, compared, CanaryStage.BEFORE, is_ready, None)
    if not possible or not compared or active is None:
        return ObservedCanary(facts, target)
    known = context.observed.promotions.get(target.uid)
    promotion = known if known is not None and (known.previous_uid, known.reason) == (active.uid, None) else None
    seen = ObservedCanary(facts, target, active, promotion)
    if promotion is not None and len(promotion.steps) >= len(_steps(context)):
        # The record may say already that the Service moves, before it does.
        return replace(seen, facts=replace(facts, stage=CanaryStage.PASSED))
    if promotion is None or not promotion.canary_since:
        return seen
    found, effects = _verdict(context, target, active, promotion)
    follows = next_course(context.spec.rollout.on_inconclusive, found) if found is not None else None
    return replace(seen, facts=replace(facts, stage=CanaryStage.RUNS, course=follows), found=found, effects=effects)


def advance(context: Context, seen: ObservedCanary) -> Canary:
    """Go on with the canary of a target that may share requests."""
    return _ACTIONS[next_step(seen.facts)](context, seen)


def _none(context: Context, seen: ObservedCanary) -> Canary:
    return Canary()


def _keep(context: Context, seen: ObservedCanary) -> Canary:
    observed = context.observed.http_route
    return Canary(share=observed.share if observed is not None and seen.target.answers else 0)


def _hand_over(context: Context, seen: ObservedCanary) -> Canary:
    return Canary(share=_steps(context)[-1] if seen.target.answers else 0)


def _begin(context: Context, seen: ObservedCanary) -> Canary:
    target, active, now = seen.target, seen.active, context.now.isoformat()
    assert active is not None
    begun = Promotion(target.revision_key, target.name, active.name, active.uid, at=now, canary_since=now)
    # The record comes first, alone: a Job that is made before it would be another one's in the next pass, and a share
    # without it would end with no pod held.
    return replace(_go_on(context, _with_record(seen, begun)), share=0)


def _go_on(context: Context, seen: ObservedCanary) -> Canary:
    """The canary at its present step."""
    promotion, answers = seen.promotion, seen.target.answers
    end = due_time(promotion, _duration(context))
    told = reason_of(context, promotion, Reason.CANARY)
    return Canary(
        condition=wording.canary(context, told, promotion, _steps(context), end, answers),
        effects=seen.effects,
        # Without a pod that is ready, its requests would fail.
        share=_share(context, promotion) if answers else 0,
        again_after=again_after(context, promotion, (end - context.now).total_seconds()),
    )


def _pass(context: Context, seen: ObservedCanary) -> Canary:
    return _go_on(context, _with_record(seen, _next_step_record(context, seen.promotion, seen.verdict)))


def _undo(context: Context, seen: ObservedCanary) -> Canary:
    found = wording.unjudged(seen.verdict)
    return _end_failed(context, seen, _failed_record(context, seen.promotion, _share(context, seen.promotion), found))


def _hold(context: Context, seen: ObservedCanary) -> Canary:
    return _go_on(context, _with_record(seen, held_record(context, seen.promotion, seen.verdict, _duration(context))))


def _begin_anew(context: Context, seen: ObservedCanary) -> Canary:
    promotion = held_record(context, seen.promotion, seen.verdict, _duration(context))
    return _go_on(context, _with_record(seen, replace(promotion, canary_since=context.now.isoformat())))


def _with_record(seen: ObservedCanary, promotion: Promotion) -> ObservedCanary:
    """Return the canary with another record from this pass on, and the wish to write it."""
    return replace(seen, record=promotion, effects=seen.effects + Effects(promotions={seen.target.uid: promotion}))


def _steps(context: Context) -> Sequence[int]:
    """Return the shares of the spec's steps, in percent; none if it has no route."""
    route = context.spec.serving.route
    return route.canary if route is not None else ()


def _share(context: Context, promotion: Promotion) -> int:
    """Return the percent of the requests that the present step gives; the last one's stays until the Service moves."""
    steps = _steps(context)
    return steps[min(len(promotion.steps), len(steps) - 1)]


def _duration(context: Context) -> float:
    """Return how long a step takes, in seconds."""
    return seconds(_soak(context).duration)


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
"""What each move says, and asks of the cluster."""


def release(context: Context, target: str = "") -> Canary:
    """End the canary of a revision that is no longer desired, and keep its pods until no request can come.

    ``target``: name of the Deployment whose canary goes on, or may begin.
    """
    for uid, promotion in context.observed.promotions.items():
        server = context.observed.servers.get(promotion.server)
        if (
            not promotion.canary_since
            or server is None
            or server.uid != uid
            or server.name in (target, context.active_server)
        ):
            continue
        ended = promotion if promotion.reason is not None else _abandoned_record(context, promotion)
        left = _release_seconds(context, ended)
        if left > 0:
            effects = keep_deployment(context, server) + Effects(promotions={uid: ended} if ended != promotion else {})
            return Canary(effects=effects, holds=server.name, again_after=left)
    return Canary()


def _verdict(
    context: Context, target: ServerView, active: ServerView, promotion: Promotion
) -> tuple[Verdict | None, Effects]:
    """The verdict on the present step, and what it takes to reach it; None: there is none yet."""
    step, since = len(promotion.steps), promotion.canary_since
    first = counters(context, target, f"canary {step}", since, active)
    found = restart_verdict(target, active, datetime.fromisoformat(since), "the canary began")
    found, end = found or waived_verdict(context, promotion), due_time(promotion, _duration(context))
    if found is not None or context.now < end or context.spec.suspend:
        return found, first.effects
    found = unread_verdict(context, first, "at the start of the step", end, spoiled=True)
    if first.record is None:
        return found, first.effects
    last = counters(context, target, reading_name(f"canary {step + 1}", promotion), since, active)
    found = unread_verdict(context, last, "at the end of the step", end)
    if last.record is not None:
        start, stop = recorded_counters(first.record), recorded_counters(last.record)
        previous = total(traffic_between(start.previous, stop.previous).values())
        found = judge(_soak(context), traffic_between(start.active, stop.active), previous, at="at the same time")
    return found, first.effects + last.effects


def _next_step_record(context: Context, promotion: Promotion, found: Verdict) -> Promotion:
    """The record of a canary at its next step, which begins with the counters at the end of this one."""
    now, words = context.now.isoformat(), wording.step_passed(_share(context, promotion), found)
    passed = replace(promotion, at=now, steps=(*promotion.steps, words))
    # What came since the last reading of a step that was held came with that step's share.
    return replace(passed, canary_since=now, message="", held_since="", again_at="") if promotion.held_since else passed


def _end_failed(context: Context, seen: ObservedCanary, failed: Promotion) -> Canary:
    return Canary(
        condition=Statement("Soaked", False, Reason.SOAK_FAILED, failed.message),
        effects=seen.effects + keep_deployment(context, seen.target) + Effects(promotions={seen.target.uid: failed}),
        holds=seen.target.name,
        again_after=RELEASE_SECONDS,
    )


def _failed_record(context: Context, promotion: Promotion, share: int, found: Verdict) -> Promotion:
    """The record of a revision that is undone."""
    words, digest = wording.canary_failed(context, promotion, share, found), spec_digest(context)
    return replace(promotion, at=context.now.isoformat(), reason=Reason.SOAK_FAILED, message=words, intent=digest)


def _abandoned_record(context: Context, promotion: Promotion) -> Promotion:
    """The record of a canary whose revision is not the target any more."""
    words = wording.canary_abandoned(promotion)
    return replace(promotion, at=context.now.isoformat(), reason=Reason.SOAK_INCONCLUSIVE, message=words)


def _release_seconds(context: Context, ended: Promotion) -> float:
    """Seconds for which the pods of a canary that ended have to stay; a Gateway's word may end them earlier."""
    route = context.observed.http_route
    if context.spec.serving.replicas == 0:
        return 0.0
    if route is not None and route.share > 0:
        # The share is about to end, or the API server refuses that it ends.
        return LONGEST_RELEASE_SECONDS
    since = (context.now - datetime.fromisoformat(ended.at)).total_seconds()
    return (RELEASE_SECONDS if route is None or route.is_seen else LONGEST_RELEASE_SECONDS) - since
