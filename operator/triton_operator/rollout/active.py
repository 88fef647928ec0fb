"""The record of the active revision. It is written before the Service moves. Pure.

If somebody changed the cluster by hand, it says which revision was active, and how its Deployment was made.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from triton_operator import names
from triton_operator.api.status import FAILING, TritonDeploymentStatus
from triton_operator.context import Context
from triton_operator.effects import Effects
from triton_operator.observed.active_record import ActiveRecord
from triton_operator.observed.revision import Revision
from triton_operator.observed.server import ServerView
from triton_operator.resources.as_built import refusal
from triton_operator.resources.deployment import deployment, from_record, scaled

ACTIVE_PARTS = {"source", "signature", "serving", "accuracy", "performance"}
"""The fields of a status that are about the active revision."""
PRESENT_FIELDS = {
    "serving": {"replicas", "selector", "model"},
    "source": {"latest", "last_checked_at", "outdated_since"},
}
"""Fields within these that the history leaves out: those of the pods, which come and go, the name of the model, which
the record has, and what looks found since."""


def record_active(context: Context, name: str, model: str = "") -> Effects:
    """Record that the Service points to a Deployment. A Deployment that is not observed yet is recorded once it is.

    ``model``: the name under which a target serves the model; empty: the spec's.
    """
    view = context.observed.servers.get(name)
    active_record = context.observed.active_record
    if view is None or (active_record is not None and (active_record.server, active_record.uid) == (name, view.uid)):
        return Effects()
    template = _body_to_record(context, view)
    # A revision whose record somebody deleted, or that comes back, keeps its name of the model.
    served_model = context.served_name if name == context.active_server else model or context.spec.served_name
    # A target of a goal that is met already meets it too. After an edit the target still has to show that it does.
    met_digest = context.triton_deployment.goal_digest if is_met(context) else ""
    if template is None:
        return Effects()
    previous_server = context.active_server if context.active_server != name else None
    return Effects(
        active_record=ActiveRecord(
            name, view.uid, view.revision_key, served_model, template, met_digest, previous_server or ""
        )
    )


def is_met(context: Context) -> bool:
    """Whether a revision for this generation of the spec has served, verified, and was not undone since.

    The record of the active revision says so. Without one, as where somebody deleted it, the last status does.
    """
    active_record = context.observed.active_record
    if active_record is not None and (active_record.met or active_record.held):
        return context.triton_deployment.goal_digest in (active_record.met, active_record.held)
    conditions = context.triton_deployment.status.conditions
    generation = context.triton_deployment.generation
    # The reasons for which passes fail say nothing about the active revision.
    by_type = {each.type: each for each in conditions if each.observed_generation == generation}
    status_by_type = {type: "False" if each.reason in FAILING else each.status for type, each in by_type.items()}
    return [status_by_type.get(each) for each in ("Ready", "Reconciling", "Stalled")] == ["True", "False", "False"]


def next_active_record(
    context: Context, active: ActiveRecord | None, status: Mapping[str, Any] | None, *, complete: bool
) -> ActiveRecord | None:
    """Return the record of the active revision from this pass on; None: there is none.

    ``active``: the record that is new in this pass; None: there is none. ``status``: the `parts` of a status that will
    tell of it, for the case that another target is worked on before a status is written; None: one tells of it.
    ``complete``: the target is active, and no soak may undo it.
    """
    record = active or context.observed.active_record
    if record is None:
        return None
    if is_told(context, record.server):
        record = replace(record, status=None)
    elif active is not None:
        record = replace(record, status=status)
    if not (complete or is_met(context)):
        return record
    # While spec.rollout.revision is set, only a revision of before can meet what the rest of the spec asks for.
    if context.spec.rollout.revision is not None:
        return replace(record, held=context.triton_deployment.goal_digest)
    return replace(record, met=context.triton_deployment.goal_digest, held="")


def is_told(context: Context, server: str) -> bool:
    """Whether the last status tells of the Deployment of that name: its selector says of which."""
    serving = context.triton_deployment.status.serving
    return serving is not None and serving.selector == names.selector(context.name, server)


def recorded_revision(context: Context) -> Revision | None:
    """Return the active revision by the record of its Deployment and the last status; None: these do not agree.

    So the user can name it, and it keeps its files, even if the history does not have it: that may be lost, or may not
    have it yet.
    """
    status = context.triton_deployment.status
    server = context.active_server or ""
    active = record_active(context, server).active_record or context.observed.active_record
    if status.active is None or active is None or (active.server, active.revision) != (server, status.active.revision):
        return None
    return revision(active, status.active.candidate, status)


def revision(active: ActiveRecord, candidate: str, status: TritonDeploymentStatus) -> Revision:
    """Return the active revision as the history keeps it. ``status``: one that describes this revision."""
    return Revision.of(active.revision, candidate, active.model, active.server, active.template, parts(status))


def parts(status: TritonDeploymentStatus) -> dict[str, Any]:
    """Return the parts of a status that are about the revision that it describes, as records keep them."""
    return status.model_dump(
        mode="json",
        by_alias=True,
        exclude_none=True,
        exclude_defaults=True,
        include=ACTIVE_PARTS,
        exclude=PRESENT_FIELDS,
    )


def restore_deployment(context: Context) -> Effects:
    """Make the active revision's Deployment again, as its record has it, if somebody deleted it.

    It is not made if the record is not one of the operator's, or has something that the installation does not allow.
    """
    record = context.observed.active_record
    if record is None or not record.has_server:
        return Effects()
    if record.server != context.active_server or record.server in context.observed.servers:
        return Effects()
    if refusal(context, record.server, record.revision, record.template) is not None:
        return Effects()
    return Effects((deployment(context, from_record(context, record.server, record.revision, record.template)),))


def _body_to_record(context: Context, view: ServerView) -> dict[str, Any] | None:
    """Return the Deployment without replicas and annotations; None: no annotation keeps its template."""
    body = scaled(context, view, 0)
    if body is not None:
        del body["metadata"]["annotations"], body["spec"]["replicas"]
    return body
