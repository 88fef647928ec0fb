"""The record of what is active: written before the Service moves, and read where somebody changed the cluster. Pure."""

from dataclasses import replace
from typing import Any

from triton_operator.api.status import FAILING, TritonDeploymentStatus
from triton_operator.context import Context
from triton_operator.effects import Effects
from triton_operator.observed.active_record import ActiveRecord
from triton_operator.observed.revision import Revision
from triton_operator.observed.server import ServerView
from triton_operator.resources.as_built import refusal
from triton_operator.resources.deployment import deployment, from_record, scaled

ACTIVE_PARTS = {"source", "signature", "serving", "accuracy", "performance"}
"""The parts of a status that tell of the active revision."""
PRESENT_FIELDS = {"serving": {"replicas", "selector", "model"}}
"""Fields of these parts that tell of the present: of the pods, which come and go, and of the name, which the record
has."""


def record_active(context: Context, name: str, model: str = "") -> Effects:
    """Record that the Service points to a Deployment; one that is not seen yet is recorded once it is.

    ``model``: the name under which a target serves the model; empty: the spec's.
    """
    view, known = context.observed.servers.get(name), context.observed.active_record
    if view is None or (known is not None and (known.server, known.uid) == (name, view.uid)):
        return Effects()
    made = _body_to_record(context, view)
    # What was active before there were records, or comes back, has the name that is known of it.
    called = context.served_name if name == context.active_server else model or context.spec.served_name
    # A newer revision of the spec that is met meets it too; what an edit asks for still has to show that it does.
    met = context.triton_deployment.goal_digest if is_met(context) else ""
    if made is None:
        return Effects()
    previous = context.active_server if context.active_server != name else None
    return Effects(active_record=ActiveRecord(name, view.uid, view.revision_key, called, made, met, previous or ""))


def is_met(context: Context) -> bool:
    """Whether what this generation of the spec asks for has served, verified, and was not undone since.

    Where no record tells, as after an older version, the last status does.
    """
    known = context.observed.active_record
    if known is not None and (known.met or known.held):
        return context.triton_deployment.goal_digest in (known.met, known.held)
    last, generation = context.triton_deployment.status.conditions, context.triton_deployment.generation
    # What passes failed for says nothing of what serves.
    known_by = {each.type: each for each in last if each.observed_generation == generation}
    held = {type: "False" if each.reason in FAILING else each.status for type, each in known_by.items()}
    return [held.get(each) for each in ("Ready", "Reconciling", "Stalled")] == ["True", "False", "False"]


def next_active_record(context: Context, active: ActiveRecord | None, *, complete: bool) -> ActiveRecord | None:
    """The record as it is from this pass on; None: nothing changes.

    ``active``: the one that is new in this pass, if there is one. ``complete``: what the spec asks for serves, and no
    soak may undo it.
    """
    known = active or context.observed.active_record
    if known is None or not (complete or is_met(context)):
        return active
    # Until somebody clears the field, what the rest of the spec asks for is met by what served before, if by anything.
    if context.spec.rollout.revision is not None:
        return replace(known, held=context.triton_deployment.goal_digest)
    return replace(known, met=context.triton_deployment.goal_digest, held="")


def recorded_revision(context: Context) -> Revision | None:
    """The active revision by the record of its Deployment and the last status; None: these do not tell.

    So it can be named, and keeps its files, although it is in no history: that may be lost, or not reach so far yet.
    """
    told, server = context.triton_deployment.status, context.active_server or ""
    active = record_active(context, server).active_record or context.observed.active_record
    if told.active is None or active is None or (active.server, active.revision) != (server, told.active.revision):
        return None
    return revision(active, told.active.candidate, told)


def revision(active: ActiveRecord, candidate: str, status: TritonDeploymentStatus) -> Revision:
    """What the history keeps of the active revision. ``candidate``: its name. ``status``: the one that tells of it."""
    told = status.model_dump(
        mode="json",
        by_alias=True,
        exclude_none=True,
        exclude_defaults=True,
        include=ACTIVE_PARTS,
        exclude=PRESENT_FIELDS,
    )
    return Revision.of(active.revision, candidate, active.model, active.server, active.template, told)


def restore_deployment(context: Context) -> Effects:
    """The active revision's Deployment as it was made, if somebody deleted it; empty otherwise.

    Empty too if the record is not one of the operator's, or has what the installation no longer allows.
    """
    known = context.observed.active_record
    if known is None or known.server != context.active_server or known.server in context.observed.servers:
        return Effects()
    if refusal(context, known.server, known.revision, known.template) is not None:
        return Effects()
    return Effects((deployment(context, from_record(context, known.server, known.revision, known.template)),))


def _body_to_record(context: Context, view: ServerView) -> dict[str, Any] | None:
    """The Deployment without replicas and annotations; None if no annotation keeps its template."""
    body = scaled(context, view, 0)
    if body is not None:
        del body["metadata"]["annotations"], body["spec"]["replicas"]
    return body
