"""What a pass does for a spec that is refused: it reports that, and keeps what serves. Pure.

Of what answers requests, that which somebody deleted is made again as the records have it: the Deployment, the Service,
and the NetworkPolicy that closes its servers. What a rollout took from the active revision comes back: the GPUs for
which it makes way, and the share of a canary, which ends. It has the replicas that the spec asks for, as an autoscaler
sets them, unless these are what is refused, or 0. A soak goes on, and undoes what fails. An object that never served
gets an empty record of results: the Jobs that clean a claim mount those of all objects that name it. Ended Jobs that
hold a claim which is being deleted are deleted. Nothing else is started, changed or deleted, because nobody knows what
the user wants.
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any

from triton_operator import names
from triton_operator.api.status import COMMANDS_VERSION, Images
from triton_operator.api.triton_deployment import InvalidSpecError, parse_kept
from triton_operator.context import Context
from triton_operator.effects import Effects, Statement
from triton_operator.observed.entries import Entries
from triton_operator.observed.snapshot import Observed
from triton_operator.planning import setbacks
from triton_operator.planning.plan import Deletion, Plan, jobs_that_hold
from triton_operator.planning.retention import retained
from triton_operator.planning.risks import terminating_notice
from triton_operator.resources.deployment import scaled
from triton_operator.resources.network_policy import server_policies
from triton_operator.resources.results import results_config_map
from triton_operator.resources.services import preview_service, service
from triton_operator.rollout import room
from triton_operator.rollout.active import record_active, restore_deployment
from triton_operator.rollout.available import active_availability
from triton_operator.rollout.release import release
from triton_operator.rollout.trial import Trial, soak
from triton_operator.settings import Settings


def keep(owner: dict[str, Any], error: InvalidSpecError, observed: Observed, settings: Settings, now: datetime) -> Plan:
    """Return the plan for an object whose spec is refused.

    ``owner``: the TritonDeployment as it is stored. ``now``: aware, UTC.
    """
    triton_deployment = parse_kept(owner)
    stored = triton_deployment.status
    images = stored.images or Images(
        converter=settings.converter_image, commands_version=COMMANDS_VERSION, server=settings.server_image
    )
    context = Context(triton_deployment, observed, settings, now, images)
    recorded = observed.active_record
    active = recorded if recorded is not None and recorded.server == context.active_server else None
    # Without the record nobody knows under which name it serves the model, whose counters are read.
    trial = soak(context) if active is not None else Trial()
    seen = (*availability(context), *((trial.condition,) if trial.goes_on or trial.undoes else ()))
    if active is not None and active.status is not None:
        # The Service moved back, and no status tells of that yet.
        owner = owner | {"status": owner.get("status", {}) | dict(active.status)}
    seen += (terminates := tuple(terminating_notice(context)))
    report = setbacks.report(owner, setbacks.invalid(error.reason, str(error)), None, now, seen)
    lasting = [each for each in report.status.conditions if terminates or each.type != "ClaimTerminating"]
    return Plan(
        objects=(*_judged(context, trial), *_missing(context), *_given_back(context)),
        deletions=tuple(Deletion("batch/v1", "Job", name) for name in jobs_that_hold(observed)),
        status=report.status.model_copy(update={"conditions": lasting}),
        events=report.events,
        requeue_after=trial.again_after if trial.goes_on else None,
        facts=setbacks.stored_facts(owner, stored),
    )


def availability(context: Context) -> Iterator[Statement]:
    """Yield the condition Available as observed, if a revision is active."""
    if context.active_server in context.observed.servers:
        yield active_availability(context)


def _judged(context: Context, trial: Trial) -> Iterator[dict[str, Any]]:
    """Yield what a soak and the end of a canary need, their records first."""
    observed = context.observed
    effects = release(context).effects
    if trial.goes_on or trial.undoes:
        effects += trial.effects
    # What failed is what the spec asked for before it was refused.
    known = observed.promotions
    promotions = {name: replace(each, intent=known[name].intent) for name, each in effects.promotions.items()}
    effects = replace(effects, promotions=promotions)
    if trial.back_to is not None:
        previous = observed.history.revision_of_server(trial.back_to)
        model = previous.model if previous is not None else context.served_name
        effects += Effects((service(context, trial.back_to),)) + record_active(context, trial.back_to, model)
        if effects.active_record is not None:
            # The verdict may be older than this pass, which has waited for the previous revision to answer.
            told = {**known, **promotions}[context.active_server or ""].before
            effects = replace(effects, active_record=replace(effects.active_record, status=told))
    if effects != Effects():
        # Nobody knows what else the user wants to keep.
        kept = effects + Effects(needed=frozenset(observed.records), failures=observed.failures)
        entries = retained(context, kept, observed.history)
        yield results_config_map(context, replace(entries, recorded_claim=observed.recorded_claim))
    yield from effects.objects


def _given_back(context: Context) -> Iterator[dict[str, Any]]:
    """Yield what gives the active revision the replicas that it needs, and the requests that a canary had."""
    observed = context.observed
    server = context.active_server or ""
    active = observed.servers.get(server)
    route = observed.http_route
    if active is not None and active.makes_way_for:
        target = observed.servers.get(active.makes_way_for)
        stopped = scaled(context, target, 0) if target is not None else None
        yield from ([stopped] if stopped is not None else [])
    serving = context.spec.serving
    asks_for_replicas = "replicas" in serving.model_fields_set and serving.replicas > 0
    if active is not None and (active.makes_way_for or asks_for_replicas):
        yield from room.scale_active(context, None, failed=True).objects
    if active is not None and route is not None and route.share:
        yield preview_service(context, server)


def _missing(context: Context) -> Iterator[dict[str, Any]]:
    """Yield what the active revision lacks to answer requests, or an empty record if nothing of it is on a claim."""
    server = context.active_server
    observed = context.observed
    if not (observed.has_results or observed.servers or context.triton_deployment.status.serving):
        yield results_config_map(context, Entries())
    if server is None:
        return
    restored = restore_deployment(context).objects
    closing = names.servers_policy(context.name)
    if restored and closing not in observed.network_policies:
        yield from (each for each in server_policies(context) if each["metadata"]["name"] == closing)
    yield from restored
    is_there = bool(restored) or server in observed.servers
    if is_there and (observed.routed_server is None or observed.routed_server not in {server, *observed.servers}):
        yield service(context, server)
