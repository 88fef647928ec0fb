"""The state that serves, as the history keeps it: what it takes to find its results, and to serve it again. Pure."""

from datetime import datetime

from triton_converters.contract.reasons import Reason
from triton_converters.contract.records import record_name
from triton_operator.api.status import TritonDeploymentStatus
from triton_operator.context import Context
from triton_operator.effects import Effects
from triton_operator.observed.history import History, State
from triton_operator.observed.revision import Revision
from triton_operator.rollout.active import recorded_revision, revision
from triton_operator.stages.progress import Progress
from triton_operator.stages.rollback import RolledBack
from triton_operator.stages.serve import RolledOut, TargetRolledOut


def remembered(
    context: Context, progress: Progress, effects: Effects, status: TritonDeploymentStatus, *, settled: bool
) -> History:
    """Return the history as it is from this pass on. ``effects``, ``status``: of this pass.

    A state is in it for good once nothing tries it any more (``settled``), or once the Service has left it for another
    without an undoing. Until then it is on trial, and nothing is dropped for it: what served before may come back.
    """
    limit = context.spec.revision_history_limit
    history = _after_trial(context, context.observed.history, effects)
    if isinstance(progress, RolledOut) and progress.rollout.is_complete:
        state = _served(context, progress, effects, status)
        if not settled:
            return history.with_trial(state)
        return history.with_served(state, limit, anchors=_is_anchor(context, progress))
    lost = _lost(context, history)
    # As the history names its directory, no clean Job of any version takes that from it.
    return history.with_served(State.without_results(lost), limit) if lost is not None else history


def _is_anchor(context: Context, progress: RolledOut) -> bool:
    """Whether the state is one that later ones are held against: a person approved it, or it is better than the anchor.

    Better by chance alone is not better, as `Difference.is_better` says.
    """
    anchor = context.observed.history.anchor
    if not isinstance(progress, TargetRolledOut) or anchor is None or anchor.revision is None:
        return False
    target = progress.target
    is_better = any(each.revision == anchor.revision.key and each.is_better for each in target.compared)
    return is_better or context.spec.selection.approved_revision in (target.key, *target.replaces)


def _lost(context: Context, history: History) -> Revision | None:
    """The active revision, if its results were lost, but not its files; None: they are recorded, or both are lost."""
    name = record_name("convert", context.active_revision)
    claim = context.observed.claim
    view = context.observed.servers.get(context.active_server or "")
    if claim is None or view is None or name in context.observed.records or name in history.records:
        return None
    volumes = view.body["spec"]["template"]["spec"].get("volumes", [])
    mounted = {each.get("persistentVolumeClaim", {}).get("claimName") for each in volumes}
    older = view.created_at < datetime.fromisoformat(claim["metadata"]["creationTimestamp"])
    return None if older or context.claim_name not in mounted else recorded_revision(context)


def _after_trial(context: Context, history: History, effects: Effects) -> History:
    """Return the history; a state that was tried is kept in it, or dropped, once it is no longer the active one."""
    state = history.trial
    if state is None or state.revision is None or state.revision.server == context.active_server:
        return history
    promotions = {**context.observed.promotions, **effects.promotions}.values()
    last = max(
        (each for each in promotions if each.server == state.revision.server), key=lambda each: each.at, default=None
    )
    if last is not None and last.reason is Reason.SOAK_FAILED:
        return history.with_trial(None)
    return history.with_served(state, context.spec.revision_history_limit)


def _served(context: Context, progress: RolledOut, effects: Effects, status: TritonDeploymentStatus) -> State:
    """The state in which the flow ends."""
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
    """The revision; None if its Deployment does not say how it was made."""
    active = effects.active_record or context.observed.active_record
    if active is None or active.server != progress.rollout.server:
        return None
    return revision(active, progress.target.name, status)
