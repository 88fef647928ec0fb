"""Roll back: serve the revision that spec.rollout.revision names, from its record, in place of all other steps."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from triton_converters.contract.reasons import Reason
from triton_converters.contract.records import HISTORY, record_name
from triton_operator import names
from triton_operator.api.status import ConditionType
from triton_operator.context import Context
from triton_operator.effects import Effects, Statement
from triton_operator.observed.revision import Revision
from triton_operator.observed.server import ServerView
from triton_operator.observed.trouble import Trouble
from triton_operator.resources.as_built import refusal
from triton_operator.resources.deployment import as_made, from_record
from triton_operator.rollout import active, room, trial
from triton_operator.rollout.available import is_late_name, server_state
from triton_operator.rollout.decision import Figures, Server
from triton_operator.rollout.measurement import Measured
from triton_operator.rollout.release import release
from triton_operator.stages.progress import Progress
from triton_operator.stages.serve import ObservedTarget, RolledOut, roll_out

SKIPPED_CONDITIONS: tuple[ConditionType, ...] = ("SourceResolved", "Converted", "Verified")
"""The conditions of the steps that were taken when the revision was made, and are not taken again."""


@dataclass(frozen=True, kw_only=True)
class RolledBack(RolledOut):
    """The revision that the spec names is being rolled out, or is active."""

    revision: Revision


def roll_back(context: Context, progress: Progress) -> Progress:
    """Return RolledBack if the history has the revision that the spec names; else the active one keeps serving."""
    name = context.spec.rollout.revision or ""
    history = context.observed.history
    active_revision = history.revision_of_server(context.active_server) or active.recorded_revision(context)
    revision = history.revision_named(name, active_revision)
    progress = replace(progress, effects=progress.effects + _keep_ended_work(context, revision))
    if revision is None or revision.template is None:
        condition = Statement("SourceResolved", False, Reason.REVISION_UNKNOWN, _unknown_message(context, name))
        return progress.wait_with(condition, stalled=True)
    message = refusal(context, revision.server, revision.key, revision.template)
    if message is not None:
        message = f"spec.rollout.revision {name} is not served: {message}; or name another one; the active one stays"
        return progress.wait_with(Statement("SourceResolved", False, Reason.NOT_ALLOWED, message), stalled=True)
    rollout = roll_out(context, _observe(context, revision, revision.template))
    record_effects = Effects(needed=frozenset(history.state(revision).records))
    for condition in (*_skipped_conditions(name, revision), rollout.available):
        progress = progress.with_condition(condition)
    progress = progress.with_condition(rollout.measured.condition, rollout.effects + record_effects)
    return progress.advance_to(RolledBack, stalled=rollout.stalled, rollout=rollout, revision=revision)


def _keep_ended_work(context: Context, revision: Revision | None) -> Effects:
    """Keep Jobs that ended and recorded failures, so that they still count once the field is cleared.

    A Job whose answer is recorded is not kept: it would bring back a record that the history drops. Nor is the record
    that the revision's server was late, once that server answers.
    """
    observed = context.observed
    view = observed.servers.get(revision.server) if revision is not None else None
    answering_server = view.name if view is not None and view.answers else ""
    return Effects(
        jobs=frozenset(each.name for each in observed.jobs.values() if not each.active and each.record is None),
        failures={
            name: each
            for name, each in observed.failures.items()
            if not answering_server or not is_late_name(name, answering_server)
        },
    )


def _observe(context: Context, revision: Revision, template: Mapping[str, Any]) -> ObservedTarget:
    """Return what is observed of the revision. ``template``: the recorded template of its Deployment."""
    view = context.observed.servers.get(revision.server)
    is_active = context.active_server == revision.server
    state, waits = server_state(context, revision.server, view)
    if state is Server.STARTING and (damage := _known_damage(context, revision, view)) is not None:
        state = Server.LATE
        waits = Statement("Available", False, damage.reason, _damage_message(context, revision, damage))
    figures = "; status.performance has its figures" if is_active else ""
    message = f"revision {revision.key} was measured before it served first, so it is not measured again{figures}"
    return ObservedTarget(
        candidate=revision.candidate,
        model=revision.model,
        parts=as_made(from_record(context, revision.server, revision.key, template), view),
        view=view,
        server=state,
        waits=waits,
        is_active=is_active,
        measured=Measured(
            Figures.PASSED, Statement("PerformanceMeasured", True, Reason.ROLLED_BACK, message), Effects()
        ),
        soak=trial.skip(context),
        canary=None,
        others_canary=release(context, revision.server),
        undone=None,
        alone=context.active_server is None,
        yields=state is not Server.READY and room.yields(context, view),
        proven=True,
    )


def _known_damage(context: Context, revision: Revision, view: ServerView | None) -> Trouble | None:
    """Return what is wrong with the revision's files, so that no server starts on them; None: no damage is known.

    A damage that an earlier start found counts until a retry, unless the revision is active: then it started since.
    """
    if view is not None and view.damage is not None:
        return view.damage
    damage = context.observed.damaged.get(revision.key)
    if damage is None or damage.retry != context.triton_deployment.retry or context.active_server == revision.server:
        return None
    return Trouble(damage.reason, damage.message)


def _damage_message(context: Context, revision: Revision, damage: Trouble) -> str:
    """Return the message about a revision whose files are damaged."""
    return (
        f"revision {revision.key} cannot be served from the claim: {damage.message}; name another one in"
        " spec.rollout.revision, or remove the field, so that what the rest of the spec asks for is published anew; if"
        f" its files are whole again, type: {context.retry_command}"
    )


def _skipped_conditions(name: str, revision: Revision) -> Iterator[Statement]:
    """Yield the conditions of the steps that are not taken while the spec names a revision."""
    for kind in SKIPPED_CONDITIONS:
        message = (
            f"done when revision {revision.key} was made; nothing is read or made while spec.rollout.revision names it"
        )
        yield Statement(kind, True, Reason.ROLLED_BACK, message)
    message = (
        f"spec.rollout.revision holds revision {name} (candidate {revision.candidate}), which served before;"
        " remove the field to serve what the rest of the spec asks for"
    )
    yield Statement("Selected", True, Reason.ROLLED_BACK, message)


def _unknown_message(context: Context, name: str) -> str:
    """Return the message about a name that no kept revision has."""
    history = context.observed.history
    key = name.partition(".")[0]
    fault = "is not among the revisions that served and are kept"
    if record_name("convert", key) in history.records:
        fault = "has no record of its server: it never served"
    kept_names = ", ".join(f"{each} ({revision.candidate})" for each, revision in history.revisions.items())
    if HISTORY in context.observed.unreadable:
        kept_names = f"entry {HISTORY} of ConfigMap {names.results(context.name)}, which has them, cannot be read"
    return (
        f"spec.rollout.revision {name} {fault}; name one of these: {kept_names or 'none is recorded yet'}; or remove"
        " the field; the active revision keeps serving"
    )
