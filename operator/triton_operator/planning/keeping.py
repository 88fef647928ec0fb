"""What a pass does for a spec that is refused: it reports that, and keeps what serves. Pure.

Of what answers requests, that which somebody deleted is made again as the records have it: the Deployment, the Service,
and the NetworkPolicy that closes its servers. An object that never served gets an empty record of results: the Jobs
that clean a claim mount those of all objects that name it. Nothing else is started, changed or deleted, because nobody
knows what the user wants.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from triton_operator import names
from triton_operator.api.status import Images
from triton_operator.api.triton_deployment import InvalidSpecError, parse_kept
from triton_operator.context import Context
from triton_operator.observed.entries import Entries
from triton_operator.observed.snapshot import Observed
from triton_operator.planning import setbacks
from triton_operator.planning.plan import Plan
from triton_operator.resources.network_policy import server_policies
from triton_operator.resources.results import results_config_map
from triton_operator.resources.services import service
from triton_operator.rollout.active import restore_deployment
from triton_operator.settings import Settings


def keep(owner: dict[str, Any], error: InvalidSpecError, observed: Observed, settings: Settings, now: datetime) -> Plan:
    """Return the plan for an object whose spec is refused.

    ``owner``: the TritonDeployment as it is stored. ``now``: aware, UTC.
    """
    triton_deployment = parse_kept(owner)
    stored = triton_deployment.status
    images = stored.images or Images(converter=settings.converter_image, server=settings.server_image)
    context = Context(triton_deployment, observed, settings, now, images)
    report = setbacks.report(owner, setbacks.invalid(error.reason, str(error)), None, now)
    return Plan(
        objects=tuple(_missing(context)),
        deletions=(),
        status=report.status,
        events=report.events,
        requeue_after=None,
        facts=setbacks.stored_facts(owner, stored),
    )


def _missing(context: Context) -> Iterator[dict[str, Any]]:
    """Yield what the active revision lacks to answer requests, or an empty record if nothing of it is on a claim."""
    server, observed = context.active_server, context.observed
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
