"""From a snapshot to the whole plan: objects, deletions, status, events. Pure; the flow of data is told here."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from triton_converters.contract.reasons import Reason
from triton_operator import names
from triton_operator.api.status import PAUSED, TritonDeploymentStatus
from triton_operator.api.triton_deployment import TritonDeployment
from triton_operator.context import Context
from triton_operator.effects import Effects
from triton_operator.jobs.run import is_unseen
from triton_operator.jobs.source import source_works
from triton_operator.observed.failures import Failure
from triton_operator.observed.snapshot import Observed
from triton_operator.planning import conditions
from triton_operator.planning.always import ALWAYS, Draft, first_draft
from triton_operator.planning.pins import pinned_images
from triton_operator.planning.resolving import with_resolved_spec
from triton_operator.planning.retention import retained
from triton_operator.planning.status import status_of_target
from triton_operator.planning.summary import SummaryFacts
from triton_operator.resources.claim import claim
from triton_operator.resources.network_policy import jobs_policy, opening, server_policies, sources_policy
from triton_operator.resources.results import results_config_map
from triton_operator.rollout import route
from triton_operator.rollout.active import next_active_record
from triton_operator.settings import Settings
from triton_operator.stages import (
    convert,
    fitting,
    framework,
    gate,
    packages,
    permission,
    profile,
    publish,
    reference,
    rollback,
    search,
    selection,
    skipping,
    source,
)
from triton_operator.stages.progress import Progress, step

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
    step(reference.Referred, framework.judge),
    step(reference.Referred, convert.convert),
    step(reference.Referred, profile.profile),
    step(reference.Referred, search.search),
    step(search.Searched, selection.choose),
    step(selection.Chosen, gate.serve_or_let_through),
    step(selection.Chosen, publish.publish),
)
"""The flow. Each step takes what the steps before it have found out, as its type says."""


@dataclass(frozen=True)
class Deletion:
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
    """The condition that the Event tells of; empty: none."""


@dataclass(frozen=True)
class Plan:
    """Everything that a pass does, in this order."""

    objects: tuple[dict[str, Any], ...]
    """All objects as they should be; those that are so already are not written."""
    deletions: tuple[Deletion, ...]
    status: TritonDeploymentStatus
    events: tuple[Event, ...]
    """To be posted once the status is written."""
    requeue_after: float | None
    """Seconds; None: a change wakes the next pass."""
    facts: SummaryFacts
    """What decided the conditions that summarize, so that a pass that cannot carry out the plan decides by the same."""


def plan(triton_deployment: TritonDeployment, observed: Observed, settings: Settings, now: datetime) -> Plan:
    """Compute the whole plan for one TritonDeployment. ``now``: aware, UTC."""
    images = pinned_images(triton_deployment, observed.history, settings)
    context = Context(triton_deployment, observed, settings, now, images)
    context, draft = _draft(context, _newly_missing(context))
    if draft.effects.missing:
        context, draft = _draft(context, draft.effects.missing)
    pauses = [_requeue_after(context, draft.progress), draft.progress.again_after, observed.turn.again_after]
    objects = (*_prerequisites(context, draft), *draft.effects.objects)
    return Plan(
        objects=objects,
        deletions=(*_deletions(context, draft.effects), *_unneeded_policies(context, objects)),
        status=draft.status,
        events=tuple(Event(*each) for each in conditions.event_fields(triton_deployment.status, draft.status)),
        requeue_after=min((*draft.requeue_after, *filter(None, pauses)), default=None),
        facts=draft.outline.facts,
    )


def _draft(context: Context, missing: Mapping[str, Failure]) -> tuple[Context, Draft]:
    """Return the whole draft, without all results if the claim lacks some. ``missing``: the failures that tell so."""
    if missing:
        context = replace(context, observed=context.observed.without_results(missing))
    context = with_resolved_spec(context)
    draft = first_draft(context, _run_steps(context))
    for complete in ALWAYS:
        draft = complete(context, draft)
    return context, draft


def _newly_missing(context: Context) -> Mapping[str, Failure]:
    """Return the failures of Jobs that found for the first time that the claim lacks what an earlier one published.

    Somebody may have emptied it, and all is made again at once. Where that did not help, later tries wait (`run`).
    """
    at, retry, found = context.now.isoformat(), context.triton_deployment.retry, {}
    for name, job in context.observed.jobs.items():
        known = context.observed.failures.get(name)
        if job.failure is None or job.failure.reason is not Reason.INPUT_MISSING:
            continue
        if known is None or not known.since or known.retry != retry:
            found[name] = Failure(job.uid, job.failure.reason, job.failure.message, retry, at, at)
    return found


def _prerequisites(context: Context, draft: Draft) -> Iterator[dict[str, Any]]:
    """Yield what Jobs and servers need to be there first: the claim, the NetworkPolicies, and the records."""
    effects = draft.effects
    yield from (body for body in (claim(context), jobs_policy(context)) if body is not None)
    spec = context.spec
    asks = spec.installs_packages or spec.source.interval is not None or spec.publish is not None
    if asks or any(work.downloads for work in source_works(context)):
        yield sources_policy(context)
    if context.observed.servers or any(each["kind"] == "Deployment" for each in effects.objects):
        yield from server_policies(context)
    target_status = status_of_target(context, draft.progress, effects.active_record)
    active = next_active_record(context, effects.active_record, target_status, complete=draft.is_settled)
    yield results_config_map(context, retained(context, replace(effects, active_record=active), draft.history))


def _run_steps(context: Context) -> Progress:
    """Take the steps in order, as far as they go on; or none of them, if the spec names the revision to serve."""
    if context.spec.rollout.revision is not None:
        permission_progress = permission.permit(context, Progress(attempts=()))
        return permission_progress if permission_progress.waits else rollback.roll_back(context, permission_progress)
    progress = Progress(attempts=skipping.first_attempts(context))
    for run_step in STEPS:
        progress = run_step(context, progress)
        if progress.waits:
            break
    return progress


def _deletions(context: Context, effects: Effects) -> tuple[Deletion, ...]:
    """Return Jobs that the plan does not know, Deployments of old revisions, and others that it does not want."""
    holding = set(jobs_that_hold(context.observed))
    jobs = (name for name in context.observed.jobs if name not in effects.jobs or name in holding)
    deletions = [Deletion("batch/v1", "Job", name) for name in jobs]
    servers = {context.active_server} | {
        each["metadata"]["name"] for each in effects.objects if each["kind"] == "Deployment"
    }
    if context.spec.serving.serves:
        # What the Service points to answers until it points elsewhere, also if somebody led it there by hand.
        servers.add(context.observed.routed_server)
    else:
        deletions += _services(context)
    deletions += [Deletion("apps/v1", "Deployment", name) for name in context.observed.servers if name not in servers]
    http_route = context.observed.http_route
    optional = (
        (names.GATEWAY_API_VERSION, names.HTTP_ROUTE, http_route.name if http_route is not None else None),
        (names.KEDA_API_VERSION, names.SCALED_OBJECT, context.observed.scaled_object),
        (names.POLICY_API_VERSION, names.DISRUPTION_BUDGET, context.observed.disruption_budget),
    )
    desired = {each["kind"] for each in effects.objects}
    if context.spec.serving.serves and route.keeps(context):
        desired.add(names.HTTP_ROUTE)
    deletions += [Deletion(version, kind, name) for version, kind, name in optional if name and kind not in desired]
    return tuple(deletions)


def _services(context: Context) -> Iterator[Deletion]:
    """Yield the Services of an object that served before."""
    observed = context.observed
    found = {context.name: observed.routed_server is not None, names.preview(context.name): observed.has_preview}
    return (Deletion("v1", "Service", name) for name, is_there in found.items() if is_there)


def jobs_that_hold(observed: Observed) -> Iterator[str]:
    """Yield the ended Jobs whose pods hold a claim that is being deleted: a server waits for the one to come."""
    return (name for name, job in observed.jobs.items() if job.ended and observed.claim_terminates)


def _unneeded_policies(context: Context, objects: Iterable[dict[str, Any]]) -> Iterator[Deletion]:
    """Yield the NetworkPolicies that open something to pods that nobody wants any more."""
    desired = {each["metadata"]["name"] for each in objects if each["kind"] == "NetworkPolicy"}
    for name in opening(context.name):
        if name in context.observed.network_policies and name not in desired:
            yield Deletion("networking.k8s.io/v1", "NetworkPolicy", name)


def _requeue_after(context: Context, progress: Progress) -> float | None:
    """Return the pause before the next pass, in seconds; None if only a change can alter the plan.

    Time alone alters it if a server has a deadline, a Job's last pod was not seen yet, or its pod goes on without need.
    """
    rolls_out = progress.is_rolled_out and not (progress.is_complete or progress.stalled)
    if progress.blocking is not None:
        rolls_out &= progress.blocking.reason not in PAUSED
    has_unseen = any(is_unseen(context, job) for job in context.observed.jobs.values())
    is_lingering = any(job.lingers_since is not None for job in context.observed.jobs.values())
    if rolls_out or has_unseen or is_lingering or skipping.is_patient(context):
        return DEADLINE_SECONDS
    # No watch tells of nodes.
    return NODES_AGAIN_SECONDS if context.observed.gpu_product_exists is False else None
