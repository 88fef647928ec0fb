"""Gate: let the target through where nothing is to serve it. Its record as the active one takes the place of a server.

So what was let through last is kept, compared with and published as what serves is.
"""

from dataclasses import dataclass

from triton_converters.contract.reasons import Reason
from triton_operator import names
from triton_operator.context import Context
from triton_operator.effects import Effects, Statement
from triton_operator.observed.active_record import ActiveRecord
from triton_operator.rollout.active import is_met
from triton_operator.rollout.measurement import profiled
from triton_operator.rollout.trial import Trial
from triton_operator.stages.selection import Chosen
from triton_operator.stages.serve import RevisionRollout, TargetRolledOut, serve


@dataclass(frozen=True, kw_only=True)
class LetThrough(TargetRolledOut):
    """The target passed, and no server is made of it. No Deployment has the name of its rollout's server."""

    @property
    def is_rolled_out(self) -> bool:
        """Whether a server of a revision is rolled out now, or is active."""
        return False

    @property
    def is_complete(self) -> bool:
        """Whether the target is recorded as active and, if the spec asks for an image, published."""
        return self.rollout.is_complete and all(each.status for each in self.conditions if each.type == "Published")


def serve_or_let_through(context: Context, progress: Chosen) -> TargetRolledOut:
    """Serve the target or, where nothing is to serve, record it as the one that passed."""
    if context.spec.serving.serves:
        return serve(context, progress)
    target = progress.target
    name = names.server(context.name, target.key, context.spec.serving.mode)
    is_active = context.active_server == name
    message = f"revision {target.key} is about to be recorded as the one that passed"
    rollout = RevisionRollout(
        available=Statement("Available", False, Reason.PROGRESSING, message),
        measured=profiled(context, target),
        blocking=None if is_active else Statement("Selected", False, Reason.PROGRESSING, message),
        stalled=False,
        effects=Effects() if is_active else Effects(active_record=_record(context, name, target.key)),
        revision=target.key,
        candidate=target.name,
        server=name,
        is_active=is_active,
        soak=Trial(),
        canary=Trial(),
        undone=None,
    )
    return progress.advance_to(LetThrough, effects=progress.effects + rollout.effects, rollout=rollout)


def _record(context: Context, name: str, revision: str) -> ActiveRecord:
    met = context.triton_deployment.goal_digest if is_met(context) else ""
    return ActiveRecord(name, "", revision, context.spec.served_name, {}, met)
