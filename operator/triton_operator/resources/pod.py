"""The parts that all pods share: security context, placement and volumes."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from triton_converters.contract import layout
from triton_operator import names
from triton_operator.api.pod import Pod
from triton_operator.context import Context
from triton_operator.resources.claim import shared_by_nodes

USER = 1000
"""uid and gid of every container: NVIDIA's image has its user `triton-server` there."""

CONTAINER_SECURITY = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
}
"""Together with POD_SECURITY this meets Kubernetes' Pod Security Standard `restricted`."""
POD_SECURITY = {
    "runAsNonRoot": True,
    "runAsUser": USER,
    "runAsGroup": USER,
    "fsGroup": USER,
    # A repository can hold many files, so they are not all changed at every start.
    "fsGroupChangePolicy": "OnRootMismatch",
    "seccompProfile": {"type": "RuntimeDefault"},
}

TEMPORARY = {"name": "tmp", "mountPath": "/tmp"}  # noqa: S108 - an emptyDir of the pod's own
SHARED_MEMORY = {"name": "dshm", "mountPath": "/dev/shm"}  # noqa: S108 - an emptyDir of the pod's own

JOB_TEMPORARY = "10Gi"
"""Most that a Job may keep in /tmp. An Estimator is exported there, and user code may unpack a checkpoint there; what a
stage of ours makes goes to the claim."""
SERVER_TEMPORARY = "1Gi"
"""Most that a server may keep in /tmp: a few sockets and, of some backends, compiled kernels."""
CONVERTERS_COPY = "64Mi"
"""Most that the copy of the converters may have; it has less than 1 MiB."""


def pod_spec(context: Context, pod: Pod, gpu: bool) -> dict[str, Any]:
    """A pod's spec without containers and volumes. With ``gpu`` it needs a node with the spec's GPU product."""
    selector = dict(pod.node_selector)
    if gpu and context.spec.gpu is not None and context.spec.gpu.product:
        selector[names.GPU_PRODUCT_LABEL] = context.spec.gpu.product
    spec: dict[str, Any] = {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": POD_SECURITY,
        "nodeSelector": selector,
        "tolerations": [each.model_dump(by_alias=True, exclude_defaults=True) for each in pod.tolerations],
        "affinity": _affinity(context, pod),
        "priorityClassName": pod.priority_class_name,
        "runtimeClassName": pod.runtime_class_name,
        "imagePullSecrets": [{"name": secret.name} for secret in pod.image_pull_secrets],
    }
    return {field: value for field, value in spec.items() if value not in ("", [], {})}


def pod_metadata(context: Context, pod: Pod, component: str, **labels: str) -> dict[str, Any]:
    """Labels and annotations of a pod's template. The user's never replace the operator's."""
    metadata: dict[str, Any] = {"labels": _free(pod.labels) | names.labels(context.name, component) | labels}
    if annotations := _free(pod.annotations):
        metadata["annotations"] = annotations
    return metadata


def resources(context: Context, pod: Pod, gpu: bool) -> dict[str, Any]:
    """Requests and limits of the main container, including the GPU."""
    limits = dict(pod.resources.limits)
    if gpu and context.spec.gpu is not None and context.spec.gpu_count > 0:
        limits[context.spec.gpu.resource_name] = str(context.spec.gpu_count)
    given = {"requests": dict(pod.resources.requests), "limits": limits}
    return {field: value for field, value in given.items() if value}


def repository_volume(context: Context, read_only: bool) -> dict[str, Any]:
    """The claim as a volume named `repository`."""
    claim: dict[str, Any] = {"claimName": context.claim_name}
    if read_only:
        claim["readOnly"] = True
    return {"name": "repository", "persistentVolumeClaim": claim}


def repository_mount(read_only: bool) -> dict[str, Any]:
    """The mount of the whole claim."""
    mount: dict[str, Any] = {"name": "repository", "mountPath": str(layout.MOUNT)}
    return mount | {"readOnly": True} if read_only else mount


def cache_mount(directory: str) -> dict[str, Any]:
    """The mount that a server may write to: a directory of the claim that the Job that profiled it made.

    If the directory were missing, the kubelet would make one that the server cannot write to, and the server would
    compile its engines at each start.
    """
    return _part(Path(directory))


def input_mount(directory: Path) -> dict[str, Any]:
    """The read-only mount of one directory of the claim, for a container that sees nothing else of it."""
    return _part(directory) | {"readOnly": True}


def _part(directory: Path) -> dict[str, Any]:
    """The mount of a directory of the claim at its usual path."""
    return {"name": "repository", "mountPath": str(directory), "subPath": str(directory.relative_to(layout.MOUNT))}


def shared_memory_volume(context: Context) -> dict[str, Any]:
    """The volume for /dev/shm: the runtime's 64 MiB is too small for Python backends and shared memory clients."""
    return {"name": "dshm", "emptyDir": {"medium": "Memory", "sizeLimit": context.spec.serving.shared_memory_size}}


def temporary_volume(limit: str) -> dict[str, Any]:
    """The volume for /tmp, the only other place that can be written to.

    A pod beyond its limit is ended alone; without a limit, a full disk would end other pods of the node too.
    """
    return {"name": "tmp", "emptyDir": {"sizeLimit": limit}}


def _free(given: Mapping[str, str]) -> dict[str, str]:
    """The user's labels or annotations. An object that is older than the CRD's rule may have reserved ones."""
    return {key: value for key, value in given.items() if not names.is_reserved(key)}


def _affinity(context: Context, pod: Pod) -> dict[str, Any]:
    """The user's affinity and the claim's, because a ReadWriteOnce volume is attached to one node.

    The claim requires affinity to the object's own pods; the first pod matches itself and is scheduled. For a user's
    claim the access mode is not known, so the affinity is only preferred.
    """
    affinity = dict(pod.affinity or {})
    shared = shared_by_nodes(context)
    if shared:
        return affinity
    term: dict[str, Any] = {
        "labelSelector": {"matchLabels": {names.DEPLOYMENT_LABEL: context.name}},
        "topologyKey": "kubernetes.io/hostname",
    }
    own = dict(affinity.get("podAffinity", {}))
    if shared is False:
        field = "requiredDuringSchedulingIgnoredDuringExecution"
    else:
        field = "preferredDuringSchedulingIgnoredDuringExecution"
        term = {"weight": 100, "podAffinityTerm": term}
    own[field] = [*own.get(field, []), term]
    return affinity | {"podAffinity": own}
