"""Whether a node may take a pod, by what both say of themselves. Pure."""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from triton_operator.api.quantity import amount


def may_take(node: Mapping[str, Any], pod: Mapping[str, Any]) -> bool:
    """Whether a node may run a pod at all, by its taints and by what it has for pods; what runs there is not known."""
    has, given = node.get("status", {}).get("allocatable"), list(pod.get("tolerations", ()))
    return all(
        each["effect"] == "PreferNoSchedule" or any(_tolerates(toleration, each) for toleration in given)
        for each in node["spec"].get("taints", ())
    ) and (has is None or all(_amount(has.get(name, 0)) >= _amount(wanted) for name, wanted in requested(pod)))


def requested(pod: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    """Yield the name and the quantity of each resource that a container requests; a limit alone is a request too."""
    for container in (*pod.get("initContainers", ()), *pod.get("containers", ())):
        resources = container.get("resources", {})
        yield from {**resources.get("limits", {}), **resources.get("requests", {})}.items()


def _amount(quantity: object) -> Decimal:
    return amount(quantity) or Decimal(0)


def _tolerates(toleration: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    fits_key = toleration.get("key", "") in ("", taint["key"])
    fits_effect = toleration.get("effect", "") in ("", taint["effect"])
    is_any = toleration.get("operator") == "Exists" or toleration.get("value", "") == taint.get("value", "")
    return fits_key and fits_effect and is_any
