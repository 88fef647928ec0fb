"""The record of what is active: written before the Service moves, and read where somebody changed the cluster. Pure."""

from dataclasses import replace
from typing import Any

from triton_operator.context import Context
from triton_operator.effects import Effects
from triton_operator.observed.active import Active
from triton_operator.observed.server import ServerView
from triton_operator.resources.as_built import refusal
from triton_operator.resources.as_made import as_made, scaled
from triton_operator.resources.server import deployment


def pointed(context: Context, name: str, model: str = "") -> Effects:
    """Record that the Service points to a Deployment; one that is not seen yet is recorded once it is.

    ``model``: the name under which a target serves the model; empty: the spec's.
    """
    view, known = context.observed.servers.get(name), context.observed.active
    if view is None or (known is not None and (known.server, known.uid) == (name, view.uid)):
        return Effects()
    made = _as_made(view)
    # What was active before there were records, or comes back, has the name that is known of it.
    called = context.served_name if name == context.serving else model or context.spec.served_name
    # A newer revision of the spec that is met meets it too; what an edit asks for still has to show that it does.
    met = context.deployment.asked if is_met(context) else ""
    if made is None:
        return Effects()
    previous = context.serving if context.serving != name else None
    return Effects(active=Active(name, view.uid, view.revision_key, called, made, met, previous or ""))


def is_met(context: Context) -> bool:
    """Whether what this generation of the spec asks for has served, verified, and was not undone since.

    Where no record tells, as after an older version, the last status does.
    """
    known = context.observed.active
    if known is not None and known.met:
        return known.met == context.deployment.asked
    last, generation = context.deployment.status.conditions, context.deployment.generation
    held = {each.type: each.status for each in last if each.observed_generation == generation}
    return [held.get(each) for each in ("Ready", "Reconciling", "Stalled")] == ["True", "False", "False"]


def recorded(context: Context, active: Active | None, *, complete: bool) -> Active | None:
    """The record as it is from this pass on; None: nothing changes.

    ``active``: the one that is new in this pass, if there is one. ``complete``: what the spec asks for serves, and no
    soak may undo it.
    """
    known = active or context.observed.active
    if known is None or not (complete or is_met(context)):
        return active
    return replace(known, met=context.deployment.asked)


def restored(context: Context) -> Effects:
    """The active revision's Deployment as it was made, if somebody deleted it; empty otherwise.

    Empty too if the record is not one of the operator's, or has what the installation no longer allows.
    """
    known = context.observed.active
    if known is None or known.server != context.serving or known.server in context.observed.servers:
        return Effects()
    if refusal(context, known.server, known.revision, known.template) is not None:
        return Effects()
    return Effects((as_made(deployment(context, known.server, known.revision, known.template), None),))


def _as_made(view: ServerView) -> dict[str, Any] | None:
    """The Deployment without replicas and annotations; None if no annotation keeps its template."""
    body = scaled(view, 0)
    if body is None:
        return None
    metadata, spec = body["metadata"], body["spec"]
    return {
        **body,
        "metadata": {name: value for name, value in metadata.items() if name != "annotations"},
        "spec": {name: value for name, value in spec.items() if name != "replicas"},
    }
