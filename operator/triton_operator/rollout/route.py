"""Route: have the Gateway API lead requests to the Services, if the spec asks for it. Nothing else waits for this."""

from collections.abc import Iterator

from triton_converters.contract.reasons import Reason
from triton_operator import names
from triton_operator.api.gateway import Route
from triton_operator.context import Context
from triton_operator.effects import AddOn, Statement
from triton_operator.resources.routing import http_route
from triton_operator.rollout.wording import no_revision_condition, not_allowed

HOLDER_SECONDS = 60.0
"""Seconds between two looks whether another object still has a host name."""


def route(context: Context, share: int) -> AddOn:
    """Return the HTTPRoute to the active revision, and what the Gateways report about it.

    ``share``: percent of its requests that a canary gets.
    """
    spec_route = context.spec.serving.route
    if spec_route is None:
        return AddOn()
    if not context.settings.gateway_api:
        return _gateway_api_missing(
            "this installation makes no HTTPRoutes, so there is none; set the Helm value gatewayApi.enabled"
        )
    if not context.observed.has_gateway_api:
        return _gateway_api_missing(
            "the API server does not know the kind HTTPRoute, so there is none; install the Gateway API, then restart"
            " the operator"
        )
    if (refusal := next(route_refusals(context), None)) is not None:
        return AddOn(Statement("Routed", False, Reason.NOT_ALLOWED, refusal))
    if holder := context.observed.host_holder:
        message = (
            f"the HTTPRoute of TritonDeployment {holder} has the same host name on the same Gateway, so this object's"
            " own is not made, or stays as it was; name others in spec.serving.route.hostnames, or remove the other's"
            " route"
        )
        return AddOn(Statement("Routed", False, Reason.ROUTE_REFUSED, message), again_after=HOLDER_SECONDS)
    if context.active_server is None:
        return AddOn(no_revision_condition("Routed"))
    return AddOn(_gateways_condition(context, spec_route, share), http_route(context, spec_route, share))


def keeps(context: Context) -> bool:
    """Whether an HTTPRoute stays as it is, because the one that the spec asks for has a host name of another object's.

    What an edit asks for in vain takes nothing away from clients.
    """
    asks = context.spec.serving.route is not None and bool(context.observed.host_holder)
    return asks and next(route_refusals(context), None) is None


def route_refusals(context: Context) -> Iterator[str]:
    """Yield a message for each Gateway and host name of the spec's route that the installation does not allow."""
    spec_route = context.spec.serving.route
    settings = context.settings
    if spec_route is None:
        return
    for each in spec_route.parent_refs:
        namespace = each.namespace or context.namespace
        if not settings.allows_gateway(namespace, each.name):
            gateway = f"{namespace}/{each.name}"
            yield not_allowed("spec.serving.route.parentRefs", gateway, "Gateway", "allowed.gateways")
    for hostname in spec_route.hostnames:
        if not settings.allows_hostname(hostname):
            yield not_allowed("spec.serving.route.hostnames", hostname, "host name", "allowed.hostnames")
    if not spec_route.hostnames and not settings.allows_hostname(""):
        yield (
            "spec.serving.route.hostnames names no host name, and so all that the listeners take; name one of those"
            f" that the Helm value allowed.hostnames has: {', '.join(settings.allowed_hostnames)}"
        )


def _gateway_api_missing(message: str) -> AddOn:
    return AddOn(Statement("Routed", False, Reason.ADD_ON_MISSING, message))


def _gateways_condition(context: Context, spec_route: Route, share: int) -> Statement:
    """Return the condition Routed by what the Gateways report about the route."""
    observed = context.observed.http_route
    gateways = [f"{each.namespace or context.namespace}/{each.name}" for each in spec_route.parent_refs]
    # A Gateway that the route no longer names may have left its answer.
    parents = [each for each in (observed.parents if observed is not None else ()) if each.name in gateways]
    refusal = next((each for each in parents if each.accepts is False), None)
    if refusal is not None:
        message = f"Gateway {refusal.name} does not accept HTTPRoute {context.name}: {refusal.message}"
        return Statement("Routed", False, Reason.ROUTE_REFUSED, message)
    accepting = {each.name for each in parents if each.accepts}
    silent = [name for name in dict.fromkeys(gateways) if name not in accepting]
    if silent:
        message = (
            f"Gateway {', '.join(silent)} has not answered about HTTPRoute {context.name} yet; if this stays, check"
            " that the Gateway exists, and that its controller runs"
        )
        return Statement("Routed", None, Reason.WAITING, message)
    hosts = ", ".join(spec_route.hostnames) or "every host name of the listeners"
    message = (
        f"requests for {hosts} come to Service {context.name} through Gateway {', '.join(dict.fromkeys(gateways))}"
    )
    if share:
        message += f", and {share} % of them to Service {names.preview(context.name)}"
    return Statement("Routed", True, Reason.ROUTE_ACCEPTED, message)
