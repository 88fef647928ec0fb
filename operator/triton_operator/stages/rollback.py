"""Roll back: serve the revision that spec.rollout.revision names, from its record, in place of all other steps."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from triton_converters.contract.reasons import Reason
from triton_converters.contract.records import record_name
from triton_operator.api.status import ConditionType
from triton_operator.context import Context
from triton_operator.effects import Effects, Statement
from triton_operator.observed.revision import Revision
from triton_operator.observed.server import ServerView
from triton_operator.observed.trouble import Trouble
from triton_operator.resources.as_built import refusal
from triton_operator.resources.deployment import as_made, from_record
from triton_operator.rollout import active, canary, room, soak
from triton_operator.rollout.available import is_late_name, started
from triton_operator.rollout.decision import Figures, Server
from triton_operator.rollout.measurement import Measured
from triton_operator.stages.progress import Progress
from triton_operator.stages.serve import ObservedTarget, RolledOut, roll_out

RECORDED: tuple[ConditionType, ...] = ("SourceResolved", "Converted", "Verified")
"""Conditions of what was done when the revision was made."""


@dataclass(frozen=True, kw_only=True)
class RolledBack(RolledOut):
    """The revision that the spec names is on its way, or serves."""

    revision: Revision


def roll_back(context: Context, progress: Progress) -> Progress:
    """Return RolledBack if the history has the revision that the spec names; else the active one keeps serving."""
    name, history = context.spec.rollout.revision or "", context.observed.history
    revision = history.revision_named(
        name, history.revision_of_server(context.active_server) or active.recorded_revision(context)
    )
    progress = replace(progress, effects=progress.effects + _ended(context, revision))
    if revision is None or revision.template is None:
        condition = Statement("SourceResolved", False, Reason.REVISION_UNKNOWN, _refusal(context, name))
        return progress.waiting(condition, stalled=True)
    words = refusal(context, revision.server, revision.key, revision.template)
    if words is not None:
        words = f"spec.rollout.revision {name} is not served: {words}; or name another one; the active one stays"
        return progress.waiting(Statement("SourceResolved", False, Reason.NOT_ALLOWED, words), stalled=True)
    rollout = roll_out(context, _observe(context, revision, revision.template))
    needed = Effects(needed=frozenset(history.state(revision).records))
    for condition in (*_recorded(name, revision), rollout.available):
        progress = progress.noting(condition)
    noted = progress.noting(rollout.measured.condition, rollout.effects + needed)
    return noted.reached(RolledBack, stalled=rollout.stalled, rollout=rollout, revision=revision)


def _ended(context: Context, revision: Revision | None) -> Effects:
    """What has ended stays as it is recorded, for the time when the field is cleared.

    A Job whose answer is recorded is not needed for that, and would bring a record back that the history drops. A late
    server that has come all the same is late no more.
    """
    observed = context.observed
    view = observed.servers.get(revision.server) if revision is not None else None
    late = view.name if view is not None and view.answers else ""
    return Effects(
        jobs=frozenset(each.name for each in observed.jobs.values() if not each.active and each.record is None),
        failures={name: each for name, each in observed.failures.items() if not late or not is_late_name(name, late)},
    )


def _observe(context: Context, revision: Revision, template: Mapping[str, Any]) -> ObservedTarget:
    """Return what is observed of the revision. ``template``: that of its pods, as recorded."""
    view, is_active = context.observed.servers.get(revision.server), context.active_server == revision.server
    state, waits = started(context, revision.server, view)
    if state is Server.STARTING and (damage := _damage(context, revision, view)) is not None:
        state, waits = (
            Server.LATE,
            Statement("Available", False, damage.reason, _damaged(context, revision, damage)),
        )
    figures = "; status.performance has its figures" if is_active else ""
    words = f"revision {revision.key} was measured before it served first, so it is not measured again{figures}"
    return ObservedTarget(
        candidate=revision.candidate,
        model=revision.model,
        parts=as_made(from_record(context, revision.server, revision.key, template), view),
        view=view,
        server=state,
        waits=waits,
        is_active=is_active,
        measured=Measured(Figures.PASSED, Statement("PerformanceMeasured", True, Reason.ROLLED_BACK, words), Effects()),
        soak=soak.skipped(context),
        canary=None,
        others_canary=canary.release(context, revision.server),
        undone=None,
        alone=context.active_server is None,
        yields=state is not Server.READY and room.yields(context, view),
        proven=True,
    )


def _damage(context: Context, revision: Revision, view: ServerView | None) -> Trouble | None:
    """What is wrong with its files, so that no server starts on them and none makes way for it; None: nothing is known.

    What was found at an earlier start counts until a retry, unless the revision serves: it has come since.
    """
    if view is not None and view.damage is not None:
        return view.damage
    known = context.observed.damaged.get(revision.key)
    if known is None or known.retry != context.triton_deployment.retry or context.active_server == revision.server:
        return None
    return Trouble(known.reason, known.message)


def _damaged(context: Context, revision: Revision, damage: Trouble) -> str:
    """Words for a revision whose files are damaged."""
    return (
        f"revision {revision.key} cannot be served from the claim: {damage.message}; name another one in"
        " spec.rollout.revision, or remove the field, so that what the rest of the spec asks for is published anew; if"
        f" its files are whole again, type: {context.retry_command}"
    )


def _recorded(name: str, revision: Revision) -> Iterator[Statement]:
    """Yield the conditions of the steps that are not taken."""
    for kind in RECORDED:
        words = (
            f"done when revision {revision.key} was made; nothing is read or made while spec.rollout.revision names it"
        )
        yield Statement(kind, True, Reason.ROLLED_BACK, words)
    words = (
        f"spec.rollout.revision holds revision {name} (candidate {revision.candidate}), which served before;"
        " remove the field to serve what the rest of the spec asks for"
    )
    yield Statement("Selected", True, Reason.ROLLED_BACK, words)


def _refusal(context: Context, name: str) -> str:
    """Words for a revision that cannot be served again."""
    history, key = context.observed.history, name.partition(".")[0]
    what = "is not among the revisions that served and are kept"
    if record_name("convert", key) in history.records:
        what = "has no record of its server: it never served, or an older version of the operator recorded it"
    known = ", ".join(f"{each} ({found.candidate})" for each, found in history.revisions.items())
    return (
        f"spec.rollout.revision {name} {what}; name one of these: {known or 'none is recorded yet'}; or remove the"
        " field; the active revision keeps serving"
    )
