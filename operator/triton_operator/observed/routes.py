"""What gateways say about an HTTPRoute, from its status. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

JUDGED = ("Accepted", "ResolvedRefs")
"""Conditions of the Gateway API that a route needs to lead anywhere."""


@dataclass(frozen=True)
class Parent:
    """A Gateway's answer to a route."""

    name: str
    """Namespace and name of the Gateway, NAMESPACE/NAME."""
    accepts: bool | None
    """Whether the Gateway accepts the route as it is now; None: it has not said so yet."""
    words: str
    """Why the Gateway does not accept the route, in its own words."""


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
    answers = [(each, _judged(each)) for each in body.get("status", {}).get("parents", [])]
    seen = [_is_current(found, generation) for _, judged in answers for found in judged.values()]
    return RouteView(
        name=metadata["name"],
        share=max((each.get("weight", 1) for each in backends if each["name"] != metadata["name"]), default=0),
        parents=tuple(_parent(metadata["namespace"], each, judged, generation) for each, judged in answers),
        is_seen=bool(seen) and all(seen),
    )


def _judged(answer: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The conditions that matter, by their type."""
    return {each["type"]: each for each in answer.get("conditions", []) if each["type"] in JUDGED}


def _parent(
    namespace: str, answer: Mapping[str, Any], judged: Mapping[str, Mapping[str, Any]], generation: int | None
) -> Parent:
    reference = answer["parentRef"]
    name = f"{reference.get('namespace') or namespace}/{reference['name']}"
    for each in judged.values():
        if each["status"] == "False":
            return Parent(name, False, f"{each['type']}: {each.get('reason', '')}: {each.get('message', '')}")
    accepted = judged.get("Accepted", {})
    accepts = accepted.get("status") == "True" and _is_current(accepted, generation)
    return Parent(name, True if accepts else None, "")


def _is_current(found: Mapping[str, Any], generation: int | None) -> bool:
    """Whether a condition is about a version of the route; one that names none is taken for current."""
    return bool(found.get("observedGeneration", generation) == generation)
