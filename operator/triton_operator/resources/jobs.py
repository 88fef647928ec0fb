"""The Jobs: one shape, five stages."""

from dataclasses import dataclass, field
from math import ceil
from pathlib import Path
from typing import Any

from triton_converters.document import Document
from triton_converters.result import EXIT_FINAL
from triton_operator import names
from triton_operator.api.pod import Pod
from triton_operator.context import Context
from triton_operator.quantity import amount
from triton_operator.resources import pod
from triton_operator.resources.server import server_container

BACKOFF_LIMIT = 2
"""Two more tries of what may mend itself; a failure that cannot ends with EXIT_FINAL and is not tried again."""
CONVERTERS = "/opt/triton-operator/converters"
"""Where the converter image has the converters."""
COPIED_CONVERTERS = "/converters"


@dataclass(frozen=True)
class Work:
    """What a Job does: the stage, its request and what its pod needs beyond the claim."""

    stage: str
    key: str
    request: Document
    deadline_seconds: int
    candidate: str = ""
    volumes: tuple[dict[str, Any], ...] = ()
    mounts: tuple[dict[str, Any], ...] = ()
    gpu: bool = False
    """The main container uses the GPU."""
    sidecar: dict[str, Any] | None = field(default=None)
    """A private tritonserver; it has the GPU then."""


def job(context: Context, work: Work) -> dict[str, Any]:
    """The Job that does the work; its name holds a hash of its whole template."""
    settings = context.spec.conversion.pod
    labels = {names.STAGE_LABEL: work.stage, names.KEY_LABEL: work.key}
    if work.candidate:
        labels[names.CANDIDATE_LABEL] = work.candidate
    spec = {
        "backoffLimit": BACKOFF_LIMIT,
        "activeDeadlineSeconds": work.deadline_seconds,
        "podFailurePolicy": _failure_policy(work.stage),
        # A pod that still terminates holds the claim and the GPU.
        "podReplacementPolicy": "Failed",
        "template": {
            "metadata": pod.pod_metadata(context, settings, work.stage, **labels),
            "spec": _pod(context, work, settings),
        },
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": context.metadata(names.job(context.name, work.stage, [work.key, spec]), work.stage, **labels),
        "spec": spec,
    }


def sidecar(context: Context, revision_key: str) -> dict[str, Any]:
    """The serving container as a native sidecar: it starts before the client and ends with it."""
    return server_container(context, revision_key) | {"restartPolicy": "Always"}


def claim_volume(name: str, uri: str, mount_path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Volume and read-only mount of the whole claim or ConfigMap that a URI names.

    Never a subPath: where it is missing the kubelet makes an empty one, and an error becomes a riddle.
    """
    scheme, _, rest = uri.partition("://")
    source = rest.partition("/")[0]
    volume = (
        {"configMap": {"name": source}}
        if scheme == "configmap"
        else {"persistentVolumeClaim": {"claimName": source, "readOnly": True}}
    )
    return {"name": name} | volume, {"name": name, "mountPath": str(mount_path), "readOnly": True}


def _failure_policy(container: str) -> dict[str, Any]:
    return {
        "rules": [
            {
                "action": "FailJob",
                "onExitCodes": {"containerName": container, "operator": "In", "values": [EXIT_FINAL]},
            },
            # An eviction or a drained node says nothing about the work.
            {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
        ]
    }


def _pod(context: Context, work: Work, settings: Pod) -> dict[str, Any]:
    own_image = settings.image
    mounts = [pod.repository_mount(read_only=False), pod.TEMPORARY, *work.mounts]
    volumes = [pod.repository_volume(context, read_only=False), pod.temporary_volume(), *work.volumes]
    init: list[dict[str, Any]] = []
    if work.sidecar is not None:
        init.append(work.sidecar)
        mounts.append(pod.SHARED_MEMORY)
        volumes.append(pod.shared_memory_volume(context))
    if own_image:
        copied = {"name": "converters", "mountPath": COPIED_CONVERTERS}
        init.insert(0, _copy(context, copied))
        mounts.append(copied | {"readOnly": True})
        volumes.append({"name": "converters", "emptyDir": {}})
    container = {
        "name": work.stage,
        "image": context.job_image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["python3", "-m", "triton_converters"],
        "args": [work.stage, work.request.to_json()],
        "env": _environment(context, own_image),
        "resources": pod.resources(context, settings, gpu=work.gpu),
        "securityContext": pod.CONTAINER_SECURITY,
        # Where the stage could not write its message (killed, say), the last lines of its log.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": mounts,
    }
    spec = pod.pod_spec(context, _placement(context, work), gpu=work.gpu or work.sidecar is not None)
    spec |= {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 5,
        "containers": [container],
        "volumes": volumes,
    }
    return spec | {"initContainers": init} if init else spec


def _placement(context: Context, work: Work) -> Pod:
    """Where the pod runs: one that holds a server runs where servers do, or its figures would be of another node."""
    own, serving = context.spec.conversion.pod, context.spec.serving.pod
    if work.sidecar is None:
        return own
    secrets = {each.name: each for each in [*serving.image_pull_secrets, *own.image_pull_secrets]}
    return serving.model_copy(update={"image_pull_secrets": list(secrets.values())})


def _copy(context: Context, mount: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": "converters",
        "image": context.images.converter,
        "imagePullPolicy": "IfNotPresent",
        "command": ["cp", "-r", f"{CONVERTERS}/.", COPIED_CONVERTERS],
        "securityContext": pod.CONTAINER_SECURITY,
        "volumeMounts": [mount],
    }


def _environment(context: Context, own_image: str) -> list[dict[str, str]]:
    variables = {
        "HOME": "/tmp",  # noqa: S108 - an emptyDir of the pod's own
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",
        # torch then refuses a pickle that holds more than weights, whatever the user's code asks for.
        "TORCH_FORCE_WEIGHTS_ONLY_LOAD": "1",
        "GPU_PRODUCT": context.spec.gpu.product if context.spec.gpu else "",
    }
    if cpus := amount(context.spec.conversion.pod.resources.limits.get("cpu")):
        # torch would start a thread for each of the node's cores and be throttled.
        variables["OMP_NUM_THREADS"] = str(ceil(cpus))
    if own_image:
        variables["PYTHONPATH"] = COPIED_CONVERTERS
    return [{"name": name, "value": value} for name, value in variables.items() if value]
