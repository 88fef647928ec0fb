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
"""How long a profile's pod that is ending may still hold its GPU."""
NODE_AFTER_SECONDS = 300.0
"""How long a node that an autoscaler has announced is waited for."""


def makes_way(context: Context, target: ServerView | None) -> bool:
    """Whether the active revision has fewer replicas, or is about to have fewer, because the target needs its GPUs."""
    old = _old(context, target)
    if old is None or target is None or context.spec.serving.replicas == 0:
        return False
    return old.makes_way_for == target.name or _needs_room(context, old, target)


def is_enough(context: Context, target: ServerView) -> bool:
    """Whether the target may be measured and serve: all its pods are ready, or its half, and the others lack a GPU."""
    old = _old(context, target)
    if target.ready or old is None or not makes_way(context, target) or not _lacking(target):
        return target.ready
    given = old.makes_way_pods or context.spec.serving.replicas - _remaining(context, old, target)
    return target.ready_pods >= max(1, given)


def is_spent(context: Context, target: ServerView | None) -> bool:
    """Whether the active revision has made way for as long as a target may take to become ready."""
    old = _old(context, target)
    if old is None or target is None or old.makes_way_for != target.name:
        return False
    deadline = context.spec.serving.progress_deadline_seconds
    if old.makes_way_since is None:
        return target.waiting_seconds(context.now) > deadline
    return (context.now - old.makes_way_since).total_seconds() > deadline


def yields(context: Context, target: ServerView | None) -> bool:
    """Whether nothing may go on with the target that other servers made way for, so that these come back."""
    old = _old(context, target)
    if not context.spec.suspend or old is None or target is None:
        return False
    stopped = target.replicas == 0 and not target.ready_pods
    return old.makes_way_for == target.name or stopped or is_barred(context, target)


def is_barred(context: Context, target: ServerView) -> bool:
    """Whether the target's deadline has passed only because the active revision makes no way while it is suspended.

    The target has no replicas then until the suspension ends, and its deadline begins anew with them.
    """
    old = _old(context, target)
    if not context.spec.suspend or old is None or not _frees(old, target):
        return False
    return target.waiting_seconds(context.now) > context.spec.serving.progress_deadline_seconds


def replicas(context: Context, target: ServerView | None, *, failed: bool, done: bool) -> int:
    """The target's number of replicas.

    ``failed``: it failed; it has none if the active revision needs its GPU, or it is gone. ``done``: it needs none in
    any case, unless it is active.
    """
    old = _old(context, target)
    if old is None:
        return context.spec.serving.replicas
    gone = target is None or old.makes_way_for == target.name or target.replicas == 0
    return 0 if done or (failed and gone) else context.spec.serving.replicas


def old_server(context: Context, target: ServerView | None, failed: bool) -> Effects:
    """The active revision's Deployment, if its number of replicas, or for whom it makes way, has to change."""
    old = _old(context, target)
    if old is None:
        return Effects()
    desired, makes_way_for, notes = context.spec.serving.replicas, "", {}
    if target is not None and not failed and makes_way(context, target):
        remaining = _remaining(context, old, target)
        desired, makes_way_for, notes = remaining, target.name, _notes(context, old, target, remaining)
    if (desired, makes_way_for) == (old.replicas, old.makes_way_for):
        return Effects()
    body = scaled(context, old, desired, notes)
    return Effects() if body is None else Effects((body,))


def made_way(context: Context, target: ServerView | None, available: Statement) -> Statement:
    """The condition of the active revision, with what it gave up for the target.

    ``available``: the condition without that.
    """
    old = _old(context, target)
    if old is None or target is None or not makes_way(context, target):
        return available
    resource = min(_lacking(target) or _gpus(target), default="GPU")
    remaining, desired = _remaining(context, old, target), context.spec.serving.replicas
    cause = f"no node has a free {resource} for the target revision, so Deployment {old.name} was scaled to {remaining}"
    back = "comes back if the target revision fails"
    if remaining == 0:
        return Statement("Available", False, Reason.NO_SPARE_GPU, f"{cause} and answers no request; it {back}")
    return replace(available, message=f"{available.message}; {cause} of {desired} replicas; the rest {back}")


def _needs_room(context: Context, old: ServerView, target: ServerView) -> bool:
    """Whether GPUs of the active revision would help the target, and it has waited for others.

    A target that was ready needs no more room: an autoscaler asked for another pod, and that must stop no server.
    """
    if target.was_ready or context.spec.suspend or not _frees(old, target):
        return False
    patience = NODE_AFTER_SECONDS if target.node_is_coming else ROOM_AFTER_SECONDS
    return target.waiting_seconds(context.now) >= min(patience, context.spec.serving.progress_deadline_seconds / 2)


def _frees(old: ServerView, target: ServerView) -> bool:
    """Whether the active revision has GPUs of the kind that the target lacks, on nodes where it may run."""
    ours, theirs = _selector(target), _selector(old)
    helps = any(_gpus(old).get(each, 0) > 0 for each in _lacking(target))
    return helps and all(theirs.get(key, ours[key]) == ours[key] for key in ours)


def _remaining(context: Context, old: ServerView, target: ServerView) -> int:
    """Return how many replicas the active revision keeps: half, or none where their GPUs are too few for a new pod.

    That is decided once, by the pods that run: there may be fewer GPUs than desired replicas.
    """
    desired = context.spec.serving.replicas
    if old.makes_way_for == target.name:
        return min(old.replicas, desired)
    held, given = min(old.ready_pods, desired), _gpus(old)
    return held // 2 if all(given.get(each, 0) >= count for each, count in _gpus(target).items()) else 0


def _notes(context: Context, old: ServerView, target: ServerView, remaining: int) -> dict[str, str]:
    if old.makes_way_for == target.name:
        since, pods = old.makes_way_since, old.makes_way_pods
    else:
        since, pods = context.now, max(1, min(old.ready_pods, context.spec.serving.replicas) - remaining)
    noted = {
        names.MAKES_WAY_SINCE_ANNOTATION: since and since.isoformat(),
        names.MAKES_WAY_PODS_ANNOTATION: pods and str(pods),
    }
    return {names.MAKES_WAY_ANNOTATION: target.name} | {name: note for name, note in noted.items() if note}


def _gpus(server: ServerView) -> dict[str, Decimal]:
    """Return how many GPUs, or other devices, each of a Deployment's pods has, by the name of the extended resource.

    The template says that: what the spec asks for by now may be something else.
    """
    for container in server.body["spec"]["template"]["spec"]["containers"]:
        if container["name"] == SERVER:
            limits = container.get("resources", {}).get("limits", {})
            return {name: amount(count) or Decimal() for name, count in limits.items() if "/" in name}
    return {}


def _selector(server: ServerView) -> Mapping[str, Any]:
    """Return the labels of the nodes where a Deployment's pods may run, as far as it names any."""
    selector: Mapping[str, Any] = server.body["spec"]["template"]["spec"].get("nodeSelector") or {}
    return selector


def _old(context: Context, target: ServerView | None) -> ServerView | None:
    if context.active_server is None or (target is not None and target.name == context.active_server):
        return None
    return context.observed.servers.get(context.active_server)


def _lacking(target: ServerView) -> set[str]:
    """Return the names of the GPUs of which the target finds too few."""
    return _gpus(target).keys() & target.trouble.lacks if target.trouble is not None else set()
