"""What the store keeps of an object without its body, because all objects are asked for it. Pure."""

from typing import Any, NamedTuple

from triton_operator.kube.kinds import DEPLOYMENT, HTTP_ROUTE, TRITON_DEPLOYMENT, ApiKind
from triton_operator.names import claim
from triton_operator.observed.routes import Host, hosts, route_view

CLEAN, LOOK = "clean", "look"
"""The stages of the Jobs that are asked for by their names."""


class Facts(NamedTuple):
    """What is kept unpacked of an object."""

    reason: str = ""
    claim: str | None = None
    created_at: str = ""
    hosts: frozenset[Host] = frozenset()
    leaves: bool = False


def facts_of(kind: ApiKind, body: dict[str, Any]) -> Facts:
    """Return what is asked of an object of a kind."""
    if kind is TRITON_DEPLOYMENT:
        return Facts(_ready_reason(body), _claim(body), leaves="deletionTimestamp" in body["metadata"])
    if kind is DEPLOYMENT:
        return Facts(claim=_mounted_claim(body))
    if kind is HTTP_ROUTE:
        created_at = str(body["metadata"].get("creationTimestamp", ""))
        accepted = any(parent.accepts for parent in route_view(body).parents)
        taken = hosts(body["metadata"]["namespace"], body.get("spec", {})) if accepted else frozenset[Host]()
        return Facts(created_at=created_at, hosts=taken)
    return Facts()


def stage_of(owner_name: str, name: str) -> str:
    """Return the stage of a TritonDeployment's Job of that name, CLEAN or LOOK; empty: it is of another one."""
    return next((each for each in (CLEAN, LOOK) if name.startswith(f"{owner_name}-{each}-")), "")


def version_of(body: dict[str, Any]) -> int:
    """Return the resource version. Those of one kind are ordered (Kubernetes 1.35 promises what etcd always did)."""
    return int(body["metadata"]["resourceVersion"])


def memory_of(text: str) -> int:
    """Return about how many bytes a JSON text takes once it is parsed: rather too many than too few."""
    return len(text) + 200 * (text.count("{") + text.count("[")) + 30 * text.count('"')


def _claim(body: dict[str, Any]) -> str:
    """Name of the claim that a TritonDeployment uses."""
    repository = body.get("spec", {}).get("repository")
    named = repository.get("claimName") if isinstance(repository, dict) else None
    return str(named or claim(body["metadata"]["name"]))


def _mounted_claim(body: dict[str, Any]) -> str | None:
    """Name of the claim from which a Deployment serves; None: it is none of ours."""
    spec = body.get("spec", {}).get("template", {}).get("spec", {})
    claims = (each.get("persistentVolumeClaim") for each in spec.get("volumes") or ())
    return next((str(each["claimName"]) for each in claims if each), None)


def _ready_reason(body: dict[str, Any]) -> str:
    for condition in body.get("status", {}).get("conditions", []):
        if condition["type"] == "Ready":
            return str(condition["reason"])
    return "Pending"
