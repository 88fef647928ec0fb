"""The condition Available: whether the active revision answers, and what the target's server waits for. Pure."""

from triton_converters.contract.reasons import Reason
from triton_operator.context import Context
from triton_operator.effects import Effects, Statement
from triton_operator.names import WAITS_ANNOTATION, WAS_READY_ANNOTATION
from triton_operator.observed.failures import Failure
from triton_operator.observed.server import ServerView
from triton_operator.resources.claim import shared_by_nodes
from triton_operator.rollout import room
from triton_operator.rollout.decision import Server
from triton_operator.rollout.wording import no_revision_condition

STOPPED = Statement("Available", False, Reason.SUSPENDED, "spec.serving.replicas is 0, so no server runs")


def server_state(context: Context, name: str, view: ServerView | None) -> tuple[Server, Statement | None]:
    """Return the state of the target's server, and the condition that says what it waits for; None: it is ready.

    One ready pod is enough for the active revision, which an autoscaler may let grow at any time.
    """
    if context.spec.serving.replicas == 0:
        return Server.UNWANTED, STOPPED
    if view is None:
        return Server.STARTING, _rolling_out_condition(f"Deployment {name} is being created")
    if room.is_enough(context, view) or (context.active_server == name and view.answers):
        return Server.READY, None
    if late := _late_condition(context, view):
        return Server.LATE, late
    if view.trouble is not None:
        return Server.STARTING, Statement("Available", False, view.trouble.reason, view.trouble.message)
    return Server.STARTING, _rolling_out_condition(f"Deployment {name} is starting")


def _late_condition(context: Context, view: ServerView) -> Statement | None:
    """Return the condition of a target's server that is late; None: it is not late."""
    record = context.observed.failures.get(late_name(context, view.name))
    if record is not None and (record.uid, record.retry) == (view.uid, context.triton_deployment.retry):
        return Statement("Available", False, record.reason, record.message)
    if room.room_for(context, view) in room.HAS_TIME:
        return None
    seconds = context.spec.serving.progress_deadline_seconds
    message = f"Deployment {view.name} was not ready within {seconds} s"
    if view.replicas == 0:
        # After a retry, or with another deadline, the server starts again.
        return None
    if view.was_ready and view.ready_pods:
        # The server was ready, so an autoscaler or a user has asked for more pods than there is room for.
        return None
    if view.was_ready and view.replicas and not view.waits_note:
        # Since when it is not ready any more is noted in this pass.
        return None
    # The active revision was ready once. Only the Deployment controller knows since when it is not any more.
    is_active = context.active_server == view.name
    if not (view.progress_deadline_exceeded if is_active else view.waiting_seconds(context.now) > seconds):
        return None
    if view.trouble is not None:
        return Statement("Available", False, view.trouble.reason, f"{message}: {view.trouble.message}")
    return Statement("Available", False, Reason.PROGRESS_DEADLINE_EXCEEDED, message)


def record_late(context: Context, name: str, view: ServerView | None, condition: Statement) -> Effects:
    """Record that a server was late. The record counts until a retry, or until the deadline is another one."""
    if view is None or name == context.active_server:
        return Effects()
    failure = Failure(view.uid, condition.reason, condition.message, context.triton_deployment.retry)
    return Effects(failures={late_name(context, name): failure})


def late_name(context: Context, name: str) -> str:
    """Return the name of the record that a Deployment was late. It covers the deadline."""
    return f"{name}.{context.spec.serving.progress_deadline_seconds}"


def is_late_name(name: str, server: str) -> bool:
    """Whether a name is that of a record that the Deployment was late, by the present deadline or an earlier one."""
    return name.rpartition(".")[0] == server


def start_annotations(context: Context, view: ServerView | None, replicas: int) -> dict[str, str]:
    """Return the annotations that keep how a target's Deployment started. Without pods it keeps none."""
    if view is None or replicas == 0 or context.active_server == view.name:
        return {}
    starts_anew = view.replicas == 0
    if view.ready or (view.was_ready and view.ready_pods and not starts_anew):
        return {WAS_READY_ANNOTATION: "true"}
    annotations = {WAS_READY_ANNOTATION: "true"} if view.was_ready and not starts_anew else {}
    waits_since = (
        context.now.isoformat() if starts_anew or (view.was_ready and not view.waits_note) else view.waits_note
    )
    return annotations | ({WAITS_ANNOTATION: waits_since} if waits_since else {})


def availability(context: Context, target: str, view: ServerView | None, waits: Statement | None) -> Statement:
    """Return the condition of the revision that the Service points to, which may not be the target yet.

    ``waits``: the condition of a target's server that is not ready; None: it is ready.
    """
    if context.active_server not in (None, target):
        return active_availability(context)
    if waits is not None:
        return waits
    assert view is not None
    message = f"Service {context.name} points to {target}{_unready_words(view)}{_one_node_words(context)}"
    return _unreached_condition(context, view) or Statement("Available", True, Reason.AVAILABLE, message)


def _one_node_words(context: Context) -> str:
    """Warn that the loss of one node stops all replicas; empty: the claim lets them spread, or is the user's."""
    if context.spec.serving.replicas < 2 or shared_by_nodes(context) is not False:
        return ""
    return f"; all its pods run on one node, because claim {context.claim_name} is not ReadWriteMany"


def active_availability(context: Context) -> Statement:
    """Return the condition of the active revision while another revision is made ready."""
    view = context.observed.servers.get(context.active_server or "")
    if view is None and context.active_server is not None:
        message = f"Deployment {context.active_server}, to which Service {context.name} points, is gone"
        return _rolling_out_condition(f"{message}: no server answers until it, or another revision, is made again")
    if view is None:
        return no_revision_condition("Available")
    if context.spec.serving.replicas == 0:
        return STOPPED
    if view.answers:
        message = f"Deployment {view.name} stays active until another revision has passed{_unready_words(view)}"
        return _unreached_condition(context, view) or Statement("Available", True, Reason.AVAILABLE, message)
    if view.trouble is not None:
        return Statement("Available", False, view.trouble.reason, view.trouble.message)
    return _rolling_out_condition(f"Deployment {view.name} has no ready pod")


def _unreached_condition(context: Context, view: ServerView) -> Statement | None:
    """Return why no client reaches a server that is ready; None: the Service points to it, as observed.

    That a pass is about to write the Service makes no difference: the write may fail.
    """
    if context.observed.routed_server == view.name:
        return None
    return _rolling_out_condition(
        f"Deployment {view.name} is ready, and Service {context.name} does not point to it yet"
    )


def _unready_words(view: ServerView) -> str:
    """Return how many pods of an active server are ready, and what keeps the others; empty: all are ready."""
    if view.ready_pods >= view.replicas:
        return ""
    message = f"; {view.ready_pods} of {view.replicas} pods are ready"
    return f"{message}: {view.trouble.message}" if view.trouble is not None else message


def _rolling_out_condition(message: str) -> Statement:
    return Statement("Available", False, Reason.ROLLING_OUT, message)
