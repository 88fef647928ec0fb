"""What gateways say about an HTTPRoute, from its status. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

DECIDING_CONDITIONS = ("Accepted", "ResolvedRefs")
"""Conditions of the Gateway API that a route needs to lead anywhere."""


@dataclass(frozen=True)
class Parent:
    """A Gateway's answer to a route."""

    name: str
    """Namespace and name of the Gateway, NAMESPACE/NAME."""
    accepts: bool | None
    """Whether the Gateway accepts the route as it is now; None: it has not said so yet."""
    message: str
    """Why the Gateway does not accept the route, in its own words."""


class Host(NamedTuple):
    """A host name that a route takes from a Gateway."""

    gateway: str
    """NAMESPACE/NAME."""
    listener: str
    """Empty: each listener."""
    name: str
    """Empty: all that the listeners take."""


@dataclass(frozen=True)
class RouteView:
    """An HTTPRoute and what its Gateways say about it."""

    name: str
    share: int
    """Percent of the requests for the preview Service, as the object has it."""
    parents: tuple[Parent, ...]
    is_seen: bool
    """Whether each Gateway that answered has seen the newest version, and at least one has answered."""


def route_view(body: Mapping[str, Any]) -> RouteView:
    """Parse an HTTPRoute."""
    metadata = body["metadata"]
    generation = metadata.get("generation")
    backends = [each for rule in body["spec"].get("rules", []) for each in rule.get("backendRefs", [])]
    answers = [(each, _deciding_conditions(each)) for each in body.get("status", {}).get("parents", [])]
    is_current_each = [
        _is_current(condition, generation) for _, conditions in answers for condition in conditions.values()
    ]
    return RouteView(
        name=metadata["name"],
        share=max((each.get("weight", 1) for each in backends if each["name"] != metadata["name"]), default=0),
        parents=tuple(_parent(metadata["namespace"], each, conditions, generation) for each, conditions in answers),
        is_seen=bool(is_current_each) and all(is_current_each),
    )


def hosts(namespace: str, spec: Mapping[str, Any]) -> frozenset[Host]:
    """Return what a route in a namespace takes. ``spec``: an HTTPRoute's, or `spec.serving.route`."""
    return frozenset(
        Host(f"{parent.get('namespace') or namespace}/{parent['name']}", parent.get("sectionName") or "", name)
        for parent in spec.get("parentRefs") or ()
        for name in spec.get("hostnames") or ("",)
    )


def shared(one: Iterable[Host], other: Iterable[Host]) -> bool:
    """Whether two routes take the same host name of a listener. A Gateway then leads all requests to the older one."""
    return any(
        (a.gateway, a.name) == (b.gateway, b.name) and (a.listener == b.listener or not (a.listener and b.listener))
        for a in one
        for b in other
    )


def _deciding_conditions(answer: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The conditions that matter, by their type."""
    return {each["type"]: each for each in answer.get("conditions", []) if each["type"] in DECIDING_CONDITIONS}


def _parent(
    namespace: str, answer: Mapping[str, Any], conditions: Mapping[str, Mapping[str, Any]], generation: int | None
) -> Parent:
    reference = answer["parentRef"]
    name = f"{reference.get('namespace') or namespace}/{reference['name']}"
    for each in conditions.values():
        if each["status"] == "False":
            return Parent(name, False, f"{each['type']}: {each.get('reason', '')}: {each.get('message', '')}")
    accepted = conditions.get("Accepted", {})
    accepts = accepted.get("status") == "True" and _is_current(accepted, generation)
    return Parent(name, True if accepts else None, "")


def _is_current(condition: Mapping[str, Any], generation: int | None) -> bool:
    """Whether a condition is about a version of the route; one that names none is taken for current."""
    return bool(condition.get("observedGeneration", generation) == generation)
