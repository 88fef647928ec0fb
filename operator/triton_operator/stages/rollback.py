"""Roll back: serve the revision that spec.rollout.revision names, from its record, in place of all other steps."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from triton_converters.contract.reasons import Reason
from triton_converters.contract.records import record_name
from triton_operator.api.status import ConditionType
from triton_operator.context import Context
from triton_operator.effects import Effects, Verdict
from triton_operator.observed.revision import Revision
from triton_operator.resources.as_built import refusal
from triton_operator.resources.server import deployment
from triton_operator.rollout import canary, room, soak
from triton_operator.rollout.available import started
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
    # What has ended stays as it is recorded, for the time when the field is cleared.
    ended = frozenset(each.name for each in context.observed.jobs.values() if not each.active)
    progress = replace(progress, effects=progress.effects + Effects(jobs=ended, failures=context.observed.failures))
    key = context.spec.rollout.revision
    revision = context.observed.history.revisions.get(key or "")
    if revision is None or revision.template is None:
        verdict = Verdict("SourceResolved", False, Reason.REVISION_UNKNOWN, _refusal(context, key or ""))
        return progress.waiting(verdict, stalled=True)
    words = refusal(context, revision.server, revision.key, revision.template)
    if words is not None:
        words = (
            f"spec.rollout.revision {revision.key} is not served: {words}; or name another one; the active one stays"
        )
        return progress.waiting(Verdict("SourceResolved", False, Reason.NOT_ALLOWED, words), stalled=True)
    rollout = roll_out(context, _find(context, revision))
    needed = Effects(needed=frozenset(context.observed.history.state(revision).records))
    for verdict in (*_recorded(revision), rollout.available):
        progress = progress.noting(verdict)
    noted = progress.noting(rollout.measured.verdict, rollout.effects + needed)
    return noted.reached(RolledBack, stalled=rollout.stalled, rollout=rollout, revision=revision)


def _find(context: Context, revision: Revision) -> ObservedTarget:
    """What is observed of the revision."""
    view = context.observed.servers.get(revision.server)
    state, waits = started(context, revision.server, view)
    words = f"revision {revision.key} was measured before it served first; status.performance has its figures"
    return ObservedTarget(
        revision=revision.key,
        candidate=revision.candidate,
        model=revision.model,
        body=deployment(context, revision.server, revision.key, revision.template or {}),
        view=view,
        server=state,
        waits=waits,
        serves=context.serving == revision.server,
        measured=Measured(Figures.PASSED, Verdict("PerformanceMeasured", True, Reason.ROLLED_BACK, words), Effects()),
        soak=soak.skipped(context),
        canary=canary.release(context, revision.server),
        undone=None,
        alone=context.serving is None,
        yields=state is not Server.READY and room.yields(context, view),
        proven=True,
    )


def _recorded(revision: Revision) -> Iterator[Verdict]:
    """Yield the conditions of the steps that are not taken."""
    for kind in RECORDED:
        words = (
            f"done when revision {revision.key} was made; nothing is read or made while spec.rollout.revision names it"
        )
        yield Verdict(kind, True, Reason.ROLLED_BACK, words)
    words = (
        f"spec.rollout.revision holds revision {revision.key} (candidate {revision.candidate}), which served before;"
        " remove the field to serve what the rest of the spec asks for"
    )
    yield Verdict("Selected", True, Reason.ROLLED_BACK, words)


def _refusal(context: Context, key: str) -> str:
    """Words for a revision that cannot be served again."""
    history = context.observed.history
    what = "is not among the revisions that served and are kept"
    if any(record_name("convert", key) in state.records for state in history.served):
        what = "has no record of its server: it never served, or an older version of the operator recorded it"
    known = ", ".join(f"{found.key} ({found.candidate})" for found in history.revisions.values())
    return (
        f"spec.rollout.revision {key} {what}; name one of these: {known or 'none is recorded yet'}; or remove the"
        " field; the active revision keeps serving"
    )
