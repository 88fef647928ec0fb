"""What the store keeps of an object without its body, because all objects are asked for it. Pure."""

from typing import Any, NamedTuple

from triton_operator import names
from triton_operator.kube.kinds import DEPLOYMENT, HTTP_ROUTE, JOB, POD, TRITON_DEPLOYMENT, ApiKind
from triton_operator.names import claim
from triton_operator.observed.routes import Host, hosts, route_view
from triton_operator.observed.turn import MEASURING

CLEAN, LOOK = "clean", "look"
"""The stages of the Jobs that are asked for by their names."""


class Load(NamedTuple):
    """What a Job that measures, or a pod, says of the load on nodes."""

    job: str
    """The uid of the Job; of a server's pod empty."""
    stage: str = ""
    """The Job's stage; of a pod empty."""
    node: str = ""
    """The node that has the pod."""
    runs: bool = True
    """Whether the Job may make pods, or the pod may run."""


class Facts(NamedTuple):
    """What is kept unpacked of an object."""

    reason: str = ""
    claim: str | None = None
    created_at: str = ""
    hosts: frozenset[Host] = frozenset()
    leaves: bool = False
    load: Load | None = None


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
    if kind is JOB:
        return Facts(load=_job_load(body))
    return Facts(load=_pod_load(body)) if kind is POD else Facts()


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


def _job_load(body: dict[str, Any]) -> Load | None:
    """What a Job that measures loads; None: it measures nothing. One that is suspended makes no pods."""
    metadata, conditions = body["metadata"], body.get("status", {}).get("conditions", [])
    labels = metadata.get("labels", {})
    if names.MEASURES_LABEL not in labels:
        return None
    has_ended = any(each["type"] in ("Complete", "Failed") and each["status"] == "True" for each in conditions)
    is_held = bool(body.get("spec", {}).get("suspend"))
    return Load(metadata["uid"], str(labels.get(names.STAGE_LABEL)), runs=not (has_ended or is_held))


def _pod_load(body: dict[str, Any]) -> Load | None:
    """What a pod of a Job that measures, or of a server, loads; None: it is another one's, or it has ended."""
    metadata, has_ended = body["metadata"], body.get("status", {}).get("phase") in ("Succeeded", "Failed")
    stage = metadata.get("labels", {}).get(names.STAGE_LABEL)
    if has_ended or "deletionTimestamp" in metadata or stage not in (None, *MEASURING):
        return None
    jobs = (each["uid"] for each in metadata.get("ownerReferences", []) if each.get("kind") == "Job")
    return Load(next(jobs, ""), node=str(body.get("spec", {}).get("nodeName") or ""))
