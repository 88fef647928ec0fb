"""Whether what the Service points to answers, and what the target's server waits for. Pure."""

from triton_converters.contract.reasons import Reason, reason_of
from triton_operator.context import Context
from triton_operator.effects import Verdict
from triton_operator.observed.snapshot import ServerView
from triton_operator.resources.claim import shared_by_nodes
from triton_operator.rollout import room
from triton_operator.rollout.decision import Server

STOPPED = Verdict("Available", False, Reason.SUSPENDED, "spec.serving.replicas is 0, so no server runs")


def started(context: Context, name: str, view: ServerView | None) -> tuple[Server, Verdict | None]:
    """How far the target's server is, and what it waits for; None: nothing.

    One ready pod is enough for the active revision, which an autoscaler may let grow at any time.
    """
    if context.spec.serving.replicas == 0:
        return Server.UNWANTED, STOPPED
    if view is None:
        return Server.STARTING, _rolling_out(f"Deployment {name} is being created")
    if room.is_enough(context, view) or (context.serving == name and view.answers):
        return Server.READY, None
    if view.progress_deadline_exceeded or _age(context, view) > context.spec.serving.progress_deadline_seconds:
        seconds = context.spec.serving.progress_deadline_seconds
        late = f"Deployment {name} was not ready within {seconds} s"
        if view.trouble is not None:
            return Server.LATE, Verdict("Available", False, view.trouble.reason, f"{late}: {view.trouble.message}")
        exceeded = Verdict("Available", False, Reason.PROGRESS_DEADLINE_EXCEEDED, late)
        return Server.LATE, _said_before(context, late) or exceeded
    if view.trouble is not None:
        return Server.STARTING, Verdict("Available", False, view.trouble.reason, view.trouble.message)
    return Server.STARTING, _rolling_out(f"Deployment {name} is starting")


def _said_before(context: Context, late: str) -> Verdict | None:
    """The status's own explanation of a late server: once scaled to 0, it has no pod left to explain the delay."""
    for each in context.deployment.status.conditions:
        if each.type == "Stalled" and each.status == "True" and each.message.startswith(late):
            try:
                return Verdict("Available", False, reason_of(each.reason), each.message)
            except KeyError:
                # A newer operator's reason, from before a rollback.
                return None
    return None


def _age(context: Context, view: ServerView) -> float:
    """Seconds since the Deployment was made; 0 for one that was ready once, as the active one was: it is not late."""
    if context.serving == view.name or view.was_ready:
        return 0.0
    return view.age(context.now)


def availability(context: Context, target: str, view: ServerView | None, waits: Verdict | None) -> Verdict:
    """The condition of what the Service points to, which may not be the target yet.

    ``waits``: what the target's server waits for; None: nothing.
    """
    if context.serving not in (None, target):
        return available(context)
    if waits is not None:
        return waits
    assert view is not None
    message = f"Service {context.name} points to {target}{_still_to_come(view)}{_on_one_node(context)}"
    return Verdict("Available", True, Reason.AVAILABLE, message)


def _on_one_node(context: Context) -> str:
    """Words about replicas that one lost node takes away; empty if the claim lets them spread, or is the user's."""
    if context.spec.serving.replicas < 2 or shared_by_nodes(context) is not False:
        return ""
    return f"; all its pods run on one node, because claim {context.claim_name} is not ReadWriteMany"


def available(context: Context) -> Verdict:
    """The condition of the active revision while another revision is made ready."""
    view = context.observed.servers.get(context.serving or "")
    if view is None:
        return Verdict("Available", None, Reason.WAITING, "no revision is active yet")
    if context.spec.serving.replicas == 0:
        return STOPPED
    if view.answers:
        message = f"Deployment {view.name} stays active until another revision has passed{_still_to_come(view)}"
        return Verdict("Available", True, Reason.AVAILABLE, message)
    if view.trouble is not None:
        return Verdict("Available", False, view.trouble.reason, view.trouble.message)
    return _rolling_out(f"Deployment {view.name} has no ready pod")


def _still_to_come(view: ServerView) -> str:
    """Words about the pods of an active server that are not ready, and what keeps one of them; empty: all are."""
    if view.ready_pods >= view.replicas:
        return ""
    words = f"; {view.ready_pods} of {view.replicas} pods are ready"
    return f"{words}: {view.trouble.message}" if view.trouble is not None else words


def _rolling_out(message: str) -> Verdict:
    return Verdict("Available", False, Reason.ROLLING_OUT, message)
