"""Whether what the Service points to answers, and what the target's server waits for. Pure."""

from triton_converters.contract.reasons import Reason, reason_of
from triton_operator.context import Context
from triton_operator.effects import Effects, Statement
from triton_operator.names import WAITS_ANNOTATION, WAS_READY_ANNOTATION
from triton_operator.observed.failures import Failure
from triton_operator.observed.server import ServerView
from triton_operator.resources.claim import shared_by_nodes
from triton_operator.rollout import room
from triton_operator.rollout.decision import Server

STOPPED = Statement("Available", False, Reason.SUSPENDED, "spec.serving.replicas is 0, so no server runs")


def started(context: Context, name: str, view: ServerView | None) -> tuple[Server, Statement | None]:
    """How far the target's server is, and what it waits for; None: nothing.

    One ready pod is enough for the active revision, which an autoscaler may let grow at any time.
    """
    if context.spec.serving.replicas == 0:
        return Server.UNWANTED, STOPPED
    if view is None:
        return Server.STARTING, _rolling_out(f"Deployment {name} is being created")
    if room.is_enough(context, view) or (context.active_server == name and view.answers):
        return Server.READY, None
    if late := _late(context, view):
        return Server.LATE, late
    if view.trouble is not None:
        return Server.STARTING, Statement("Available", False, view.trouble.reason, view.trouble.message)
    return Server.STARTING, _rolling_out(f"Deployment {name} is starting")


def _late(context: Context, view: ServerView) -> Statement | None:
    """Why the target's server is late; None: it is not."""
    known = context.observed.failures.get(late_name(context, view.name))
    if known is not None and (known.uid, known.retry) == (view.uid, context.triton_deployment.retry):
        return Statement("Available", False, known.reason, known.message)
    if room.is_barred(context, view):
        return None
    seconds = context.spec.serving.progress_deadline_seconds
    words = f"Deployment {view.name} was not ready within {seconds} s"
    if view.replicas == 0:
        # With a retry, or a longer deadline, it starts again.
        return _said_by_old_status(context, words) if not context.triton_deployment.retry else None
    if view.was_ready and view.ready_pods:
        # An autoscaler, or a user, asked for more pods than fit.
        return None
    # The active revision was ready once, and only the Deployment controller knows since when it is not.
    is_active = context.active_server == view.name
    if not (view.progress_deadline_exceeded if is_active else view.waiting_seconds(context.now) > seconds):
        return None
    if view.trouble is not None:
        return Statement("Available", False, view.trouble.reason, f"{words}: {view.trouble.message}")
    return Statement("Available", False, Reason.PROGRESS_DEADLINE_EXCEEDED, words)


def remembered(context: Context, name: str, view: ServerView | None, condition: Statement) -> Effects:
    """Record that a server was late, for as long as neither a retry nor another deadline is asked for."""
    if view is None or name == context.active_server:
        return Effects()
    known = Failure(view.uid, condition.reason, condition.message, context.triton_deployment.retry)
    return Effects(failures={late_name(context, name): known})


def late_name(context: Context, name: str) -> str:
    """The name of the record that a Deployment was late."""
    return f"{name}.{context.spec.serving.progress_deadline_seconds}"


def is_late_name(name: str, server: str) -> bool:
    """Whether a name is that of the record that a Deployment was late, by this deadline or a former one."""
    return name.rpartition(".")[0] == server


def notes(context: Context, view: ServerView | None, replicas: int) -> dict[str, str]:
    """The annotations by which a target's Deployment remembers its start; it forgets it with its last pod."""
    if view is None or replicas == 0 or context.active_server == view.name:
        return {}
    starts = view.replicas == 0
    if view.ready or (view.was_ready and view.ready_pods and not starts):
        return {WAS_READY_ANNOTATION: "true"}
    noted = {WAS_READY_ANNOTATION: "true"} if view.was_ready and not starts else {}
    since = context.now.isoformat() if starts or (view.was_ready and not view.waits_note) else view.waits_note
    return noted | ({WAITS_ANNOTATION: since} if since else {})


def _said_by_old_status(context: Context, late: str) -> Statement | None:
    """What the status says of a server that was late. The pass that reads it records it, so none reads it again.

    Version 0.1.0, the last one that needs this, kept it nowhere else. It goes with the old names (api/old_status.py).
    """
    for each in context.triton_deployment.status.conditions:
        if each.type == "Stalled" and each.status == "True" and each.message.startswith(late):
            try:
                return Statement("Available", False, reason_of(each.reason), each.message)
            except KeyError:
                # A newer operator's reason, from before a rollback.
                return None
    return None


def availability(
    context: Context, target: str, view: ServerView | None, waits: Statement | None, *, points: bool
) -> Statement:
    """The condition of what the Service points to, which may not be the target yet.

    ``waits``: what the target's server waits for; None: nothing. ``points``: the Service points to the target from this
    pass on.
    """
    if context.active_server not in (None, target):
        return available(context)
    if waits is not None:
        return waits
    assert view is not None
    if context.active_server is None and not points:
        return _rolling_out(f"Deployment {target} is ready, and Service {context.name} does not point to it yet")
    message = f"Service {context.name} points to {target}{_still_to_come(view)}{_on_one_node(context)}"
    return Statement("Available", True, Reason.AVAILABLE, message)


def _on_one_node(context: Context) -> str:
    """Words about replicas that one lost node takes away; empty if the claim lets them spread, or is the user's."""
    if context.spec.serving.replicas < 2 or shared_by_nodes(context) is not False:
        return ""
    return f"; all its pods run on one node, because claim {context.claim_name} is not ReadWriteMany"


def available(context: Context) -> Statement:
    """The condition of the active revision while another revision is made ready."""
    view = context.observed.servers.get(context.active_server or "")
    if view is None:
        return Statement("Available", None, Reason.WAITING, "no revision is active yet")
    if context.spec.serving.replicas == 0:
        return STOPPED
    if view.answers:
        message = f"Deployment {view.name} stays active until another revision has passed{_still_to_come(view)}"
        return Statement("Available", True, Reason.AVAILABLE, message)
    if view.trouble is not None:
        return Statement("Available", False, view.trouble.reason, view.trouble.message)
    return _rolling_out(f"Deployment {view.name} has no ready pod")


def _still_to_come(view: ServerView) -> str:
    """Words about the pods of an active server that are not ready, and what keeps one of them; empty: all are."""
    if view.ready_pods >= view.replicas:
        return ""
    words = f"; {view.ready_pods} of {view.replicas} pods are ready"
    return f"{words}: {view.trouble.message}" if view.trouble is not None else words


def _rolling_out(message: str) -> Statement:
    return Statement("Available", False, Reason.ROLLING_OUT, message)
