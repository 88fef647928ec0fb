"""Room for a target revision when every GPU is taken. Pure.

The active revision makes way, and comes back if the target revision fails. Of several servers half make way, so that
the other half answers until the target has as many: the Service points to one revision at any time, and no client gets
answers of two. An annotation of the active Deployment names the target that it makes way for; a target Deployment with
0 replicas, though some are wanted, failed.
"""

from dataclasses import replace
from decimal import Decimal

from triton_converters.contract.reasons import Reason
from triton_operator.api.pod import Gpu
from triton_operator.api.quantity import amount
from triton_operator.context import Context
from triton_operator.effects import Effects, Verdict
from triton_operator.observed.pod import SERVER
from triton_operator.observed.snapshot import ServerView
from triton_operator.resources.as_made import scaled

ROOM_AFTER_SECONDS = 30.0
"""How long a profile's pod that is ending may still hold its GPU."""


def makes_way(context: Context, target: ServerView | None) -> bool:
    """Whether the active revision has fewer replicas, or is about to have fewer, because the target needs its GPUs.

    A target that was ready needs no more room: an autoscaler asked for another pod, and that must stop no server.
    """
    old = _old(context, target)
    if old is None or target is None or context.spec.serving.replicas == 0:
        return False
    lacks_room = not target.was_ready and _lacks_gpu(context, target) and target.age(context.now) >= ROOM_AFTER_SECONDS
    return old.makes_way_for == target.name or lacks_room


def is_enough(context: Context, target: ServerView) -> bool:
    """Whether the target may be measured and serve: all its pods are ready, or its half, and the others lack a GPU."""
    old = _old(context, target)
    if target.ready or old is None or not makes_way(context, target) or not _lacks_gpu(context, target):
        return target.ready
    return target.ready_pods >= context.spec.serving.replicas - _remaining(context, old)


def replicas(context: Context, target: ServerView | None, failed: bool) -> int:
    """The target's number of replicas: 0 once it failed and the active revision needs its GPU, or it is gone."""
    old = _old(context, target)
    if failed and old is not None and (target is None or old.makes_way_for == target.name or target.replicas == 0):
        return 0
    return context.spec.serving.replicas


def old_server(context: Context, target: ServerView | None, failed: bool) -> Effects:
    """The active revision's Deployment, if its number of replicas, or for whom it makes way, has to change."""
    old = _old(context, target)
    if old is None:
        return Effects()
    wanted, makes_way_for = context.spec.serving.replicas, ""
    if target is not None and not failed and makes_way(context, target):
        wanted, makes_way_for = _remaining(context, old), target.name
    if (wanted, makes_way_for) == (old.replicas, old.makes_way_for):
        return Effects()
    body = scaled(old, wanted, makes_way_for)
    return Effects() if body is None else Effects((body,))


def made_way(context: Context, target: ServerView | None, available: Verdict) -> Verdict:
    """The condition of the active revision, with what it gave up for the target.

    ``available``: the condition without that.
    """
    old = _old(context, target)
    if old is None or not makes_way(context, target):
        return available
    resource = context.spec.gpu.resource_name if context.spec.gpu is not None else "GPU"
    remaining, wanted = _remaining(context, old), context.spec.serving.replicas
    cause = f"no node has a free {resource} for the target revision, so Deployment {old.name} was scaled to {remaining}"
    back = "comes back if the target revision fails"
    if remaining == 0:
        return Verdict("Available", False, Reason.NO_SPARE_GPU, f"{cause} and answers no request; it {back}")
    return replace(available, message=f"{available.message}; {cause} of {wanted} replicas; the rest {back}")


def _remaining(context: Context, old: ServerView) -> int:
    """Return how many replicas the active revision keeps: half, or none where their GPUs are too few for a new pod."""
    gpu = context.spec.gpu
    return context.spec.serving.replicas // 2 if gpu is not None and _gpus(old, gpu) >= gpu.count else 0


def _gpus(server: ServerView, gpu: Gpu) -> Decimal:
    """Return the GPUs of each of a Deployment's pods."""
    for container in server.body["spec"]["template"]["spec"]["containers"]:
        if container["name"] == SERVER:
            return amount(container.get("resources", {}).get("limits", {}).get(gpu.resource_name)) or Decimal()
    return Decimal()


def _old(context: Context, target: ServerView | None) -> ServerView | None:
    if context.serving is None or (target is not None and target.name == context.serving):
        return None
    return context.observed.servers.get(context.serving)


def _lacks_gpu(context: Context, target: ServerView) -> bool:
    gpu, trouble = context.spec.gpu, target.trouble
    if gpu is None or trouble is None or trouble.reason is not Reason.UNSCHEDULABLE:
        return False
    return f"Insufficient {gpu.resource_name}" in trouble.message
