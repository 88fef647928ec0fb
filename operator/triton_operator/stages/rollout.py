"""Room for a target revision when every GPU is taken. Pure.

The active revision makes way, and comes back if the target revision fails. Only the Deployments' replicas record this:
an active Deployment with 0 replicas made way; a target Deployment with 0 replicas, though some are wanted, failed.
"""

from triton_converters.contract.reasons import Reason
from triton_operator.context import Context
from triton_operator.observed.snapshot import ServerView
from triton_operator.resources.as_made import scaled
from triton_operator.stages.step import Effects, Verdict

ROOM_AFTER_SECONDS = 30.0
"""How long a profile's pod that is ending may still hold its GPU."""


def makes_way(context: Context, target: ServerView | None) -> bool:
    """Whether the active revision has no replicas, or is about to have none, because the target needs its GPU.

    A target that was ready needs no more room: an autoscaler asked for another pod, and that must stop no server.
    """
    old = _old(context, target)
    if old is None or target is None or context.spec.serving.replicas == 0:
        return False
    lacks_room = not target.was_ready and _lacks_gpu(context, target) and target.age(context.now) >= ROOM_AFTER_SECONDS
    return old.replicas == 0 or lacks_room


def replicas(context: Context, target: ServerView | None, failed: bool) -> int:
    """The target's number of replicas: 0 once it failed and the active revision needs its GPU, or it is gone."""
    old = _old(context, target)
    if failed and old is not None and (target is None or old.replicas == 0 or target.replicas == 0):
        return 0
    return context.spec.serving.replicas


def old_server(context: Context, target: ServerView | None, failed: bool) -> Effects:
    """The active revision's Deployment, if its number of replicas has to change."""
    old = _old(context, target)
    if old is None:
        return Effects()
    wanted = 0 if not failed and makes_way(context, target) else context.spec.serving.replicas
    body = scaled(old, wanted) if wanted != old.replicas else None
    return Effects() if body is None else Effects((body,))


def made_way(context: Context, target: ServerView | None) -> Verdict | None:
    """The condition while the active revision is scaled to 0."""
    if not makes_way(context, target):
        return None
    resource = context.spec.gpu.resource_name if context.spec.gpu is not None else "GPU"
    message = (
        f"no node has a free {resource} for the target revision, so Deployment {context.serving} was scaled to 0 and"
        " answers no request; it comes back if the target revision fails"
    )
    return Verdict("Available", False, Reason.NO_SPARE_GPU, message)


def _old(context: Context, target: ServerView | None) -> ServerView | None:
    if context.serving is None or (target is not None and target.name == context.serving):
        return None
    return context.observed.servers.get(context.serving)


def _lacks_gpu(context: Context, target: ServerView) -> bool:
    gpu, trouble = context.spec.gpu, target.trouble
    if gpu is None or trouble is None or trouble.reason is not Reason.UNSCHEDULABLE:
        return False
    return f"Insufficient {gpu.resource_name}" in trouble.message
