"""The state that serves, as the history keeps it: what it takes to find its results, and to serve it again. Pure."""

from triton_converters.contract.records import record_name
from triton_operator.api.status import TritonDeploymentStatus
from triton_operator.context import Context
from triton_operator.effects import Effects
from triton_operator.observed.history import State
from triton_operator.observed.revision import Revision
from triton_operator.stages.rollback import RolledBack
from triton_operator.stages.serve import RolledOut, TargetRolledOut

TOLD = {"source", "signature", "serving", "accuracy", "performance"}
"""The parts of a status that tell of the active revision."""
OF_NOW = {"serving": {"replicas", "selector"}}
"""What they say of its pods, which come and go."""


def served(context: Context, progress: RolledOut, effects: Effects, status: TritonDeploymentStatus) -> State:
    """Return the state in which the flow ends. ``effects``, ``status``: of this pass."""
    if isinstance(progress, RolledBack):
        return context.observed.history.state(progress.revision)
    assert isinstance(progress, TargetRolledOut)
    images, chosen = (
        each.model_dump(mode="json", by_alias=True, exclude_defaults=True) if each else {}
        for each in (context.pins, context.resolved)
    )
    profiled = record_name("profile", progress.target.profile_key)
    return State(tuple(sorted(effects.needed)), profiled, images, chosen, _revision(context, progress, effects, status))


def _revision(
    context: Context, progress: TargetRolledOut, effects: Effects, status: TritonDeploymentStatus
) -> Revision | None:
    """The revision; None if its Deployment does not say how it was made, as that of an older version may not."""
    active = effects.active or context.observed.active
    if active is None or active.server != progress.rollout.server:
        return None
    told = status.model_dump(
        mode="json", by_alias=True, exclude_none=True, exclude_defaults=True, include=TOLD, exclude=OF_NOW
    )
    return Revision.of(progress.target.key, progress.target.name, active.model, active.server, active.template, told)
