"""Room for a target revision when every GPU is taken. Pure.

The active revision makes way, and comes back if the target revision fails, or if its measurement does not begin in
time. Of several servers half make way, so that the other half answers until the target has as many: the Service points
to one revision at any time, and no client gets answers of two. Annotations of the active Deployment say for which
target it makes way, since when, and with how many pods.
"""

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
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


def makes_way(context: Context, target: ServerView | None) -> bool:
    """Whether the active revision has fewer replicas, or is about to have fewer, because the target needs its GPUs."""
    active = _active_server(context, target)
    if active is None or target is None or context.spec.serving.replicas == 0:
        return False
    return active.makes_way_for == target.name or _needs_room(context, active, target)


def is_enough(context: Context, target: ServerView) -> bool:
    """Whether enough pods of the target are ready to measure it and to move the Service to it.

    Those are all, or as many as the active revision made room for, while the others lack a GPU.
    """
    active = _active_server(context, target)
    if target.ready or active is None or not makes_way(context, target) or not _lacking_gpus(target):
        return target.ready
    needed_pods = active.makes_way_pods or context.spec.serving.replicas - _remaining_replicas(context, active, target)
    return target.ready_pods >= max(1, needed_pods)


def is_spent(context: Context, target: ServerView | None) -> bool:
    """Whether the active revision has made way for as long as a target may take to become ready."""
    active = _active_server(context, target)
    if active is None or target is None or active.makes_way_for != target.name:
        return False
    deadline = context.spec.serving.progress_deadline_seconds
    if active.makes_way_since is None:
        return target.waiting_seconds(context.now) > deadline
    return (context.now - active.makes_way_since).total_seconds() > deadline


def has_time(context: Context, target: ServerView) -> bool:
    """Whether the target's time to become ready goes on, or has yet to begin, because the active revision makes way.

    Before that it has no GPU, however long the operator was away.
    """
    return makes_way(context, target) and not is_spent(context, target)


def yields(context: Context, target: ServerView | None) -> bool:
    """Whether the servers that made way for the target come back, because the spec is suspended."""
    active = _active_server(context, target)
    if not context.spec.suspend or active is None or target is None:
        return False
    is_stopped = target.replicas == 0 and not target.ready_pods
    return active.makes_way_for == target.name or is_stopped or is_barred(context, target)


def is_barred(context: Context, target: ServerView) -> bool:
    """Whether the target's deadline has passed only because the active revision makes no way while it is suspended.

    The target has no replicas then until the suspension ends, and its deadline begins anew with them.
    """
    active = _active_server(context, target)
    if not context.spec.suspend or active is None or not _has_lacking_gpus(active, target):
        return False
    return target.waiting_seconds(context.now) > context.spec.serving.progress_deadline_seconds


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
    replicas, makes_way_for, annotations = context.spec.serving.replicas, "", {}
    if target is not None and not failed and makes_way(context, target):
        remaining = _remaining_replicas(context, active, target)
        replicas, makes_way_for, annotations = (
            remaining,
            target.name,
            _room_annotations(context, active, target, remaining),
        )
    if (replicas, makes_way_for) == (active.replicas, active.makes_way_for):
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
    remaining, desired = _remaining_replicas(context, active, target), context.spec.serving.replicas
    cause = (
        f"no node has a free {resource} for the target revision, so Deployment {active.name} was scaled to {remaining}"
    )
    return_words = "comes back if the target revision fails"
    if remaining == 0:
        return Statement("Available", False, Reason.NO_SPARE_GPU, f"{cause} and answers no request; it {return_words}")
    return replace(available, message=f"{available.message}; {cause} of {desired} replicas; the rest {return_words}")


def _needs_room(context: Context, active: ServerView, target: ServerView) -> bool:
    """Whether GPUs of the active revision would help the target, and it has waited long enough for other ones.

    A target that was ready needs no more room: an autoscaler asked for another pod, and that must stop no server.
    """
    if target.was_ready or context.spec.suspend or not _has_lacking_gpus(active, target):
        return False
    patience = NODE_AFTER_SECONDS if target.node_is_coming else ROOM_AFTER_SECONDS
    return target.waiting_seconds(context.now) >= min(patience, context.spec.serving.progress_deadline_seconds / 2)


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


def _placed_pods(context: Context, active: ServerView) -> int:
    """Return how many pods of the active revision have GPUs that it may keep.

    The watch of pods may lack some of those that the Deployment says are ready.
    """
    return min(max(active.placed_pods, active.ready_pods), context.spec.serving.replicas)


def _room_annotations(context: Context, active: ServerView, target: ServerView, remaining: int) -> dict[str, str]:
    if active.makes_way_for == target.name:
        since, pods = active.makes_way_since, active.makes_way_pods
    else:
        since, pods = context.now, max(1, _placed_pods(context, active) - remaining)
    annotations = {
        names.MAKES_WAY_SINCE_ANNOTATION: since and since.isoformat(),
        names.MAKES_WAY_PODS_ANNOTATION: pods and str(pods),
    }
    return {names.MAKES_WAY_ANNOTATION: target.name} | {name: note for name, note in annotations.items() if note}


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
