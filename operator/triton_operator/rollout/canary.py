"""Canary: a measured revision gets a share of the route's requests, step by step, before it becomes active. Pure.

A canary is recorded before its first request, by the uid of the new revision's Deployment, and each step as it ends. A
step is judged by what both revisions answered between two readings of their counters, so in the same time. When a
canary ends without the Service's move, the share ends first; its pods, and the preview Service that points to them,
stay until no gateway can send them a request any more.
"""

from dataclasses import dataclass, field, replace
from datetime import datetime

from triton_converters.contract.reasons import Reason
from triton_operator.api.duration import seconds
from triton_operator.api.gateway import Route
from triton_operator.api.serving import Soak
from triton_operator.context import Context
from triton_operator.effects import Effects, Verdict
from triton_operator.jobs.snapshot import counters, read
from triton_operator.observed.flips import Flip
from triton_operator.observed.server import ServerView
from triton_operator.rollout.counting import restarted, unread
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
from triton_operator.rollout.soak import intent, kept
from triton_operator.rollout.traffic import Judgement, between, judge, total

RELEASE_SECONDS = 15.0
"""How long the pods of a canary that ended stay at least: a gateway may say that it knows a route before that works."""
LONGEST_RELEASE_SECONDS = 120.0
"""How long they stay at most, if a Gateway says nothing of the route without the share."""


@dataclass(frozen=True)
class Canary:
    """What becomes of the share of the route's requests that a revision gets before it is active."""

    verdict: Verdict | None = None
    """The condition; None: there is no canary, or it is over and the Service may move."""
    effects: Effects = field(default_factory=Effects)
    share: int = 0
    """Percent of the route's requests for the preview Service."""
    goes_on: bool = False
    """Whether the Service has to wait for it."""
    holds: str | None = None
    """Name of the Deployment that the preview Service still has to point to, because the canary ended just now."""
    again_after: float | None = None
    """Seconds until time alone changes it."""


def advance(context: Context, target: ServerView, is_ready: bool) -> Canary:
    """Go on with the canary of the target revision, which was measured.

    ``is_ready``: whether it may begin.
    """
    serving, observed = context.spec.serving, context.observed.http_route
    route, soak, active = serving.route, serving.soak, context.observed.servers.get(context.serving or "")
    if route is None or soak is None or not _is_possible(context, route):
        return Canary()
    if active is None or not active.answers or makes_way(context, target):
        # Nothing answers with which it could be compared, so the Service moves. Until then the share stays.
        return Canary(share=observed.share if observed is not None and target.answers else 0)
    known = context.observed.flips.get(target.uid)
    flip = known if known is not None and (known.previous_uid, known.reason) == (active.uid, None) else None
    if flip is not None and len(flip.steps) >= len(route.canary):
        # The record may say already that the Service moves, before it does.
        return Canary(share=route.canary[-1] if target.answers else 0)
    if flip is None or not flip.canary_since:
        if not is_ready:
            return Canary()
        now = context.now.isoformat()
        begun = Flip(target.revision_key, target.name, active.name, active.uid, at=now, canary_since=now)
        # The record comes first, alone: a Job that is made before it would be another one's in the next pass, and a
        # share without it would end with no pod held.
        return replace(_going_on(context, route, soak, target, begun, Effects(flips={target.uid: begun})), share=0)
    return _followed(context, route, soak, target, active, flip)


def _followed(context: Context, route: Route, soak: Soak, target: ServerView, active: ServerView, flip: Flip) -> Canary:
    """Go on with a canary that has begun, by what its step shows."""
    found, effects = _judged(context, soak, target, active, flip)
    if found is None:
        return _going_on(context, route, soak, target, flip, effects)
    share, then = route.canary[len(flip.steps)], course(context.spec.rollout.on_inconclusive, found)
    if then is Course.UNDO:
        return _undone(context, target, _failed(context, flip, share, unjudged(found)), effects)
    flip = (
        _passed(context, flip, share, found)
        if then is Course.GO_ON
        else held(context, flip, found, seconds(soak.duration))
    )
    if then is Course.BEGIN_ANEW:
        flip = replace(flip, canary_since=context.now.isoformat())
    return _going_on(context, route, soak, target, flip, effects + Effects(flips={target.uid: flip}))


def _is_possible(context: Context, route: Route) -> bool:
    """Whether the route has steps, and the cluster what leads requests to a pod."""
    return bool(route.canary) and context.observed.has_gateway_api and context.spec.serving.replicas > 0


def release(context: Context, target: str = "") -> Canary:
    """End the canary of a revision that is no longer wanted, and keep its pods until no request can come.

    ``target``: name of the Deployment whose canary goes on, or may begin.
    """
    for uid, flip in context.observed.flips.items():
        server = context.observed.servers.get(flip.server)
        if not flip.canary_since or server is None or server.uid != uid or server.name in (target, context.serving):
            continue
        ended = flip if flip.reason is not None else _abandoned(context, flip)
        left = _left(context, ended)
        if left > 0:
            effects = kept(context, server) + Effects(flips={uid: ended} if ended != flip else {})
            return Canary(effects=effects, holds=server.name, again_after=left)
    return Canary()


def _judged(
    context: Context, soak: Soak, target: ServerView, active: ServerView, flip: Flip
) -> tuple[Judgement | None, Effects]:
    """The verdict on the present step, and what it takes to reach it; None: there is none yet."""
    step, since = len(flip.steps), flip.canary_since
    first = counters(context, target, f"canary {step}", since, active)
    found = restarted(target, active, datetime.fromisoformat(since), "the canary began")
    found, end = found or waived(context, flip), due(flip, seconds(soak.duration))
    if found is not None or context.now < end or context.spec.suspend:
        return found, first.effects
    found = unread(context, first, "at the start of the step", end, spoiled=True)
    if first.record is None:
        return found, first.effects
    last = counters(context, target, moment(f"canary {step + 1}", flip), since, active)
    found = unread(context, last, "at the end of the step", end)
    if last.record is not None:
        start, stop = read(first.record), read(last.record)
        previous = total(between(start.previous, stop.previous).values())
        found = judge(soak, between(start.active, stop.active), previous, at="at the same time")
    return found, first.effects + last.effects


def _going_on(context: Context, route: Route, soak: Soak, target: ServerView, flip: Flip, effects: Effects) -> Canary:
    """The canary at its present step. The last one's share stays until the Service has moved."""
    step = min(len(flip.steps), len(route.canary) - 1)
    share, end = route.canary[step], due(flip, seconds(soak.duration))
    if context.spec.suspend:
        until = "it waits, because spec.suspend is true"
    elif not target.answers:
        until = "none of its pods is ready, so it gets no request for now"
    else:
        until = f"it is judged at {end:%H:%M:%S} UTC" if context.now < end else "its counters are read"
    words = (
        f"step {step + 1} of {len(route.canary)}: Deployment {target.name} gets {share} % of the requests to HTTPRoute"
        f" {context.name}; {until}{''.join(f'; {each}' for each in flip.steps)}{why(flip)}"
    )
    left = (end - context.now).total_seconds()
    return Canary(
        verdict=Verdict("Soaked", None, reason(context, flip, Reason.CANARY), words),
        effects=effects,
        # Without a pod that is ready, its requests would fail.
        share=share if target.answers else 0,
        goes_on=True,
        again_after=again_after(context, flip, left),
    )


def _passed(context: Context, flip: Flip, share: int, found: Judgement) -> Flip:
    """The record of a canary at its next step, which begins with the counters at the end of this one."""
    words, now = (
        "passed" if found.reason is Reason.SOAK_PASSED else f"inconclusive, {found.words}",
        context.now.isoformat(),
    )
    passed = replace(flip, at=now, steps=(*flip.steps, f"{share} %: {words}"))
    # What came since the last reading of a step that was held came with that step's share.
    return replace(passed, canary_since=now, message="", held_since="", again_at="") if flip.held_since else passed


def _undone(context: Context, target: ServerView, failed: Flip, effects: Effects) -> Canary:
    return Canary(
        verdict=Verdict("Soaked", False, Reason.SOAK_FAILED, failed.message),
        effects=effects + kept(context, target) + Effects(flips={target.uid: failed}),
        holds=target.name,
        again_after=RELEASE_SECONDS,
    )


def _failed(context: Context, flip: Flip, share: int, found: Judgement) -> Flip:
    """The record of a revision that is undone."""
    words = (
        f"revision {flip.revision} in Deployment {flip.server}, with {share} % of the requests to HTTPRoute"
        f" {context.name}: {found.words}; Deployment {flip.previous} stays active; this revision gets no more of them,"
        f" and is not tried again until the spec or the source changes, or you type: {context.retry_command}"
    )
    return replace(flip, at=context.now.isoformat(), reason=Reason.SOAK_FAILED, message=words, intent=intent(context))


def _abandoned(context: Context, flip: Flip) -> Flip:
    """The record of a canary whose revision is not the target any more."""
    words = f"the canary of Deployment {flip.server} ended, because its revision is no longer the target"
    return replace(flip, at=context.now.isoformat(), reason=Reason.SOAK_INCONCLUSIVE, message=words)


def _left(context: Context, ended: Flip) -> float:
    """Seconds for which the pods of a canary that ended have to stay; a Gateway's word may end them earlier."""
    route = context.observed.http_route
    if context.spec.serving.replicas == 0:
        return 0.0
    if route is not None and route.share > 0:
        # The share is about to end, or the API server refuses that it ends.
        return LONGEST_RELEASE_SECONDS
    since = (context.now - datetime.fromisoformat(ended.at)).total_seconds()
    return (RELEASE_SECONDS if route is None or route.is_seen else LONGEST_RELEASE_SECONDS) - since
