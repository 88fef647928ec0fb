"""Room for a target revision when every GPU is taken: the facts, and the table that decides. Pure.

The active revision makes way, and comes back if the target revision fails, or if its measurement does not begin in
time. Of several servers half make way, so that the other half answers until the target has as many: the Service points
to one revision at any time, and no client gets answers of two. Annotations of the active Deployment say for which
target it makes way, since when, and with how many pods.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import Enum, auto
from typing import Any

from triton_converters.contract.reasons import Reason
from triton_operator import names
from triton_operator.api.quantity import amount
from triton_operator.context import Context
from triton_operator.effects import Effects, Statement
from triton_operator.observed.pod import SERVER
from triton_operator.observed.server import ServerView
from triton_operator.resources.deployment import scaled

ROOM_AFTER_SECONDS = 30.0
"""Seconds for which a target waits for a GPU before it needs room: so long may a profile's pod that ends hold one."""
NODE_AFTER_SECONDS = 300.0
"""Seconds for which a target waits for a node that an autoscaler has announced: clouds take some minutes for one."""


class Room(Enum):
    """The room that the active revision makes for a target."""

    NONE = auto()
    """The active revision has all of its replicas."""
    BARRED = auto()
    """The active revision keeps its replicas until the suspension ends. The target gets some then, and time anew."""
    BEGINS = auto()
    """The active revision is about to have fewer replicas."""
    MADE = auto()
    SPENT = auto()
    """The active revision has made way for as long as a target may take to become ready."""


MAKES_WAY = frozenset({Room.BEGINS, Room.MADE, Room.SPENT})
"""The rooms with which the active revision has fewer replicas, or is about to."""
HAS_TIME = frozenset({Room.BARRED, Room.BEGINS, Room.MADE})
"""The rooms with which the target is not late, however long the operator was away: it had no GPU before."""


@dataclass(frozen=True)
class RoomFacts:
    """Everything that decides which room a target has beside the active revision."""

    wanted: bool
    """Whether the spec wants replicas."""
    makes_way: bool
    """Whether the active Deployment is noted to make way for the target."""
    overdue: bool
    """Whether the deadline has passed since then, or else since the target's pods are waited for."""
    suspended: bool
    stopped: bool
    """Whether the target's Deployment has neither replicas nor ready pods."""
    helps: bool
    """Whether the active revision has GPUs of the kind that the target lacks, on nodes where the target may run."""
    waited: bool
    """Whether the target has waited long enough for other GPUs."""
    was_ready: bool
    """Whether the target was ready: an autoscaler asked for another pod then, and that must stop no server."""


def next_room(facts: RoomFacts) -> Room:
    """Return the target's room; the first line that applies decides."""
    if not facts.wanted:
        return Room.NONE
    if facts.makes_way:
        return Room.SPENT if facts.overdue else Room.MADE
    if facts.suspended:
        return Room.BARRED if facts.stopped or (facts.helps and facts.overdue) else Room.NONE
    return Room.BEGINS if facts.helps and facts.waited and not facts.was_ready else Room.NONE


def room_for(context: Context, target: ServerView | None) -> Room:
    """Return the room that the target has beside the active revision."""
    active = _active_server(context, target)
    deadline = context.spec.serving.progress_deadline_seconds
    if active is None or target is None:
        return Room.NONE
    waited = overdue = target.waiting_seconds(context.now)
    if (makes_way := active.makes_way_for == target.name) and active.makes_way_since is not None:
        overdue = (context.now - active.makes_way_since).total_seconds()
    patience = NODE_AFTER_SECONDS if target.node_is_coming else ROOM_AFTER_SECONDS
    facts = RoomFacts(
        wanted=context.spec.serving.replicas > 0,
        makes_way=makes_way,
        overdue=overdue > deadline,
        suspended=context.spec.suspend,
        stopped=target.replicas == 0 and not target.ready_pods,
        helps=_has_lacking_gpus(active, target),
        waited=waited >= min(patience, deadline / 2),
        was_ready=target.was_ready,
    )
    return next_room(facts)


def makes_way(context: Context, target: ServerView | None) -> bool:
    """Whether the active revision has fewer replicas, or is about to have fewer, because the target needs its GPUs."""
    return room_for(context, target) in MAKES_WAY


def is_enough(context: Context, target: ServerView) -> bool:
    """Whether enough pods of the target are ready to measure it and to move the Service to it.

    Those are all, or as many as the active revision made room for, while the others lack a GPU.
    """
    active = _active_server(context, target)
    if target.ready or active is None or not makes_way(context, target) or not _lacking_gpus(target):
        return target.ready
    return target.ready_pods >= _given_pods(context, active, target)


def yields(context: Context, target: ServerView | None) -> bool:
    """Whether the servers that made way for the target come back, because the spec is suspended."""
    return context.spec.suspend and room_for(context, target) is not Room.NONE


def replicas(context: Context, target: ServerView | None, *, failed: bool, done: bool) -> int:
    """Return the target's number of replicas.

    ``failed``: whether the target failed; then it has none if the active revision needs its GPUs, or if its pods are
    gone already. ``done``: whether it needs none in any case, unless it is active.
    """
    active = _active_server(context, target)
    if active is None:
        return context.spec.serving.replicas
    is_gone = target is None or active.makes_way_for == target.name or target.replicas == 0
    return 0 if done or (failed and is_gone) else context.spec.serving.replicas


def scale_active(context: Context, target: ServerView | None, failed: bool) -> Effects:
    """Scale the active revision's Deployment, if its replicas, or the target that it makes way for, have to change."""
    active = _active_server(context, target)
    if active is None:
        return Effects()
    replicas, annotations = context.spec.serving.replicas, {}
    if target is not None and not failed and makes_way(context, target):
        since = active.makes_way_since if active.makes_way_for == target.name else None
        replicas = _remaining_replicas(context, active, target)
        annotations = {
            names.MAKES_WAY_ANNOTATION: target.name,
            names.MAKES_WAY_SINCE_ANNOTATION: (since or context.now).isoformat(),
            names.MAKES_WAY_PODS_ANNOTATION: str(_given_pods(context, active, target)),
        }
    if (replicas, annotations.get(names.MAKES_WAY_ANNOTATION, "")) == (active.replicas, active.makes_way_for):
        return Effects()
    body = scaled(context, active, replicas, annotations)
    return Effects() if body is None else Effects((body,))


def with_room_made(context: Context, target: ServerView | None, available: Statement) -> Statement:
    """Return the condition of the active revision, with the replicas that it gave up for the target.

    ``available``: the condition without that.
    """
    active = _active_server(context, target)
    if active is None or target is None or not makes_way(context, target):
        return available
    resource = min(_lacking_gpus(target) or _gpus(target), default="GPU")
    remaining = _remaining_replicas(context, active, target)
    desired = context.spec.serving.replicas
    cause = (
        f"no node has a free {resource} for the target revision, so Deployment {active.name} was scaled to {remaining}"
    )
    return_words = "comes back if the target revision fails"
    if remaining == 0:
        return Statement("Available", False, Reason.NO_SPARE_GPU, f"{cause} and answers no request; it {return_words}")
    return replace(available, message=f"{available.message}; {cause} of {desired} replicas; the rest {return_words}")


def _has_lacking_gpus(active: ServerView, target: ServerView) -> bool:
    """Whether the active revision has GPUs of the kind that the target lacks, on nodes where it may run."""
    target_selector, active_selector = _node_selector(target), _node_selector(active)
    has_gpus = any(_gpus(active).get(each, 0) > 0 for each in _lacking_gpus(target))
    return has_gpus and all(
        active_selector.get(key, target_selector[key]) == target_selector[key] for key in target_selector
    )


def _remaining_replicas(context: Context, active: ServerView, target: ServerView) -> int:
    """Return how many replicas the active revision keeps: half, or none if their GPUs are too few for a new pod.

    It is decided once, by the number of pods that have GPUs, because there may be fewer GPUs than desired replicas.
    Those that are not ready count: they make way before those that answer.
    """
    desired = context.spec.serving.replicas
    if active.makes_way_for == target.name:
        return min(active.replicas, desired)
    gpus_per_pod = _gpus(active)
    return (
        _placed_pods(context, active) // 2
        if all(gpus_per_pod.get(each, 0) >= count for each, count in _gpus(target).items())
        else 0
    )


def _given_pods(context: Context, active: ServerView, target: ServerView) -> int:
    """Return how many pods the active revision gives up for the target, as noted once it has done so."""
    noted = active.makes_way_pods if active.makes_way_for == target.name else None
    return max(1, noted or _placed_pods(context, active) - _remaining_replicas(context, active, target))


def _placed_pods(context: Context, active: ServerView) -> int:
    """Return how many pods of the active revision have GPUs that it may keep.

    The watch of pods may lack some of those that the Deployment says are ready.
    """
    return min(max(active.placed_pods, active.ready_pods), context.spec.serving.replicas)


def _gpus(server: ServerView) -> dict[str, Decimal]:
    """Return how many GPUs, or other devices, each of a Deployment's pods has, by the name of the extended resource.

    The template says that: what the spec asks for by now may be something else.
    """
    for container in server.body["spec"]["template"]["spec"]["containers"]:
        if container["name"] == SERVER:
            limits = container.get("resources", {}).get("limits", {})
            return {name: amount(count) or Decimal() for name, count in limits.items() if "/" in name}
    return {}


def _node_selector(server: ServerView) -> Mapping[str, Any]:
    """Return the labels of the nodes where a Deployment's pods may run, as far as it names any."""
    selector: Mapping[str, Any] = server.body["spec"]["template"]["spec"].get("nodeSelector") or {}
    return selector


def _active_server(context: Context, target: ServerView | None) -> ServerView | None:
    if context.active_server is None or (target is not None and target.name == context.active_server):
        return None
    return context.observed.servers.get(context.active_server)


def _lacking_gpus(target: ServerView) -> set[str]:
    """Return the names of the GPUs of which the target finds too few."""
    return _gpus(target).keys() & target.trouble.lacks if target.trouble is not None else set()
