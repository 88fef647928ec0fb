"""From a snapshot to the whole intent: objects, deletions, status, events. Pure; the flow of data is told here."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from triton_operator import names
from triton_operator.api.deployment import TritonDeployment
from triton_operator.api.status import TritonDeploymentStatus
from triton_operator.context import Context
from triton_operator.effects import Effects
from triton_operator.jobs.run import is_unseen
from triton_operator.jobs.source import works as source_works
from triton_operator.observed.snapshot import Observed
from triton_operator.planning import conditions
from triton_operator.planning.always import ALWAYS, Intent, begun
from triton_operator.planning.pins import pinned
from triton_operator.planning.resolving import resolved
from triton_operator.resources.claim import claim
from triton_operator.resources.network_policy import jobs_policy, server_policies, sources_policy
from triton_operator.resources.results import results
from triton_operator.rollout.active import recorded
from triton_operator.settings import Settings
from triton_operator.stages import (
    convert,
    fitting,
    packages,
    permission,
    profile,
    reference,
    rollback,
    search,
    selection,
    serve,
    skipping,
    source,
)
from triton_operator.stages.progress import Progress, step
from triton_operator.stages.serve import RolledOut

DEADLINE_SECONDS = 5.0
"""The pause, in seconds, before the next pass while a deadline runs; its reason is due within 10 s."""

NODES_AGAIN_SECONDS = 60.0
"""The pause, in seconds, before the next pass while no node has the GPU product; nodes are not watched."""


STEPS: tuple[Callable[[Context, Progress], Progress], ...] = (
    permission.permit,
    source.resolve,
    step(source.Sourced, fitting.check),
    step(source.Sourced, skipping.refuse),
    step(source.Sourced, packages.install),
    step(source.Sourced, reference.refer),
    step(reference.Referred, convert.convert),
    step(reference.Referred, profile.profile),
    step(reference.Referred, search.search),
    step(search.Searched, selection.choose),
    step(selection.Chosen, serve.serve),
)
"""The flow. Each step takes what the steps before it have found out, as its type says."""


@dataclass(frozen=True)
class Reference:
    """An object to delete."""

    api_version: str
    kind: str
    name: str


@dataclass(frozen=True)
class Event:
    """A Kubernetes Event about the TritonDeployment."""

    type: str
    """Normal or Warning."""
    reason: str
    message: str
    condition: str = ""
    """The condition that it tells of; empty: none."""


@dataclass(frozen=True)
class Plan:
    """Everything that a pass does, in this order."""

    objects: tuple[dict[str, Any], ...]
    """All objects as they should be; those that are so already are not written."""
    deletions: tuple[Reference, ...]
    status: TritonDeploymentStatus
    events: tuple[Event, ...]
    """To be posted once the status is written."""
    requeue_after: float | None
    """Seconds; None: a change wakes the next pass."""


def plan(deployment: TritonDeployment, observed: Observed, settings: Settings, now: datetime) -> Plan:
    """Compute the whole intent for one TritonDeployment. ``now``: aware, UTC."""
    context = resolved(Context(deployment, observed, settings, now, pinned(deployment, observed.history, settings)))
    intent = begun(context, _walk(context))
    for do in ALWAYS:
        intent = do(context, intent)
    own = _requeue(context, intent.progress, intent.status)
    return Plan(
        objects=(*_surroundings(context, intent), *intent.effects.objects),
        deletions=_deletions(context, intent.effects),
        status=intent.status,
        events=tuple(Event(*each) for each in conditions.transitions(deployment.status, intent.status)),
        requeue_after=min((*intent.again, *filter(None, [own])), default=None),
    )


def _surroundings(context: Context, intent: Intent) -> Iterator[dict[str, Any]]:
    """Yield what Jobs and servers need to be there first: the claim, the NetworkPolicies, and the records."""
    effects = intent.effects
    yield from (body for body in (claim(context), jobs_policy(context)) if body is not None)
    if context.spec.conversion.requirements or any(work.downloads for work in source_works(context).values()):
        yield sources_policy(context)
    if context.observed.servers or any(each["kind"] == "Deployment" for each in effects.objects):
        yield from server_policies(context)
    active = recorded(context, effects.active, complete=intent.is_settled)
    noted = (effects.failures, effects.damaged, effects.flips, active)
    yield results(context, set(effects.needed), *noted, intent.history)


def _walk(context: Context) -> Progress:
    """Take the steps in order, as far as they go on; or none of them, if the spec names the revision to serve."""
    if context.spec.rollout.revision is not None:
        permitted = permission.permit(context, Progress(attempts=()))
        return permitted if permitted.waits else rollback.roll_back(context, permitted)
    progress = Progress(attempts=skipping.first_attempts(context))
    for take in STEPS:
        progress = take(context, progress)
        if progress.waits:
            break
    return progress


def _deletions(context: Context, effects: Effects) -> tuple[Reference, ...]:
    """Return Jobs that the plan does not know, Deployments of old revisions, and others that it does not want."""
    gone = [Reference("batch/v1", "Job", name) for name in context.observed.jobs if name not in effects.jobs]
    kept = {context.serving} | {each["metadata"]["name"] for each in effects.objects if each["kind"] == "Deployment"}
    gone += [Reference("apps/v1", "Deployment", name) for name in context.observed.servers if name not in kept]
    routed = context.observed.http_route
    optional = (
        (names.GATEWAY_API_VERSION, names.HTTP_ROUTE, routed.name if routed is not None else None),
        (names.KEDA_API_VERSION, names.SCALED_OBJECT, context.observed.scaled_object),
        (names.POLICY_API_VERSION, names.DISRUPTION_BUDGET, context.observed.disruption_budget),
    )
    wanted = {each["kind"] for each in effects.objects}
    gone += [Reference(version, kind, name) for version, kind, name in optional if name and kind not in wanted]
    return tuple(gone)


def _requeue(context: Context, progress: Progress, status: TritonDeploymentStatus) -> float | None:
    """Return the pause before the next pass, in seconds; None if only a change can alter the plan.

    Time alone alters it if a source does not come, a server has a deadline, a Job's last pod was not seen yet, or its
    pod goes on without need.
    """
    found = {condition.type: condition for condition in status.conditions}
    missing = found["SourceResolved"].reason in source.PASSING
    rolling = isinstance(progress, RolledOut) and not (progress.rollout.is_complete or progress.stalled)
    if isinstance(progress, RolledOut) and (waits := progress.rollout.blocking) is not None:
        rolling &= waits.reason not in conditions.PAUSED
    unseen = any(is_unseen(context, job) for job in context.observed.jobs.values())
    lingers = any(job.lingers_since is not None for job in context.observed.jobs.values())
    if missing or rolling or unseen or lingers or skipping.is_patient(context):
        return DEADLINE_SECONDS
    # No watch tells of nodes.
    return NODES_AGAIN_SECONDS if context.observed.gpu_product_exists is False else None
