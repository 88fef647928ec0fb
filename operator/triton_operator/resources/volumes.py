"""The volumes of all pods: their names, their mounts, and how much they may hold."""

from pathlib import Path

from triton_converters.contract import layout, uris
from triton_operator.context import Context
from triton_operator.names import INCOMING, REPOSITORY, Body
from triton_operator.resources.claim import claim_size

Volumes = tuple[tuple[Body, ...], tuple[Body, ...]]
"""Volumes of a pod, and the mounts of one container."""

TEMPORARY = {"name": "tmp", "mountPath": "/tmp"}  # noqa: S108 - an emptyDir of the pod's own
OWN_TEMPORARY = TEMPORARY | {"name": "own-tmp"}
"""The /tmp of the other containers in a pod with `run`."""
CLIENT_TEMPORARY = TEMPORARY | {"name": "client-tmp"}
"""The /tmp of the client of a private server. The server, whose model is a program too, has another."""
SHARED_MEMORY = {"name": "dshm", "mountPath": "/dev/shm"}  # noqa: S108 - an emptyDir of the pod's own
INCOMING_MOUNT = {"name": INCOMING, "mountPath": str(layout.INCOMING_MOUNT)}
CONVERTERS_MOUNT = {"name": "converters", "mountPath": str(layout.CONVERTERS_MOUNT)}
"""The mount of the converters for an image that lacks them."""
CREDENTIALS, SIGNING = "credentials", "signing"
"""Names of the volumes of Secrets: with what a server asks for, and with a key that signs."""
SCRATCH = "scratch"
"""Name of the volume with the directories that steps may write to: one volume, so that one limit bounds them all."""

JOB_TEMPORARY = "10Gi"
"""Most that a Job may keep in /tmp. An Estimator is exported there, and user code may unpack a checkpoint there; what a
stage of ours makes goes to the claim."""
SERVER_TEMPORARY = "1Gi"
"""Most that a server may keep in /tmp: a few sockets and, of some backends, compiled kernels."""
CONVERTERS_COPY = "64Mi"
"""Most that the copy of the converters may have; it has less than 1 MiB."""


def read_only(mount: Body) -> Body:
    """The mount, which cannot be written to."""
    return mount | {"readOnly": True}


def empty_directory(name: str, limit: str) -> Body:
    """An empty volume. A pod beyond its limit is ended alone; without one, a full disk would end others too."""
    return {"name": name, "emptyDir": {"sizeLimit": limit}}


ENGINES = empty_directory("engines", "10Gi")
"""The volume in which a server keeps the engines that it builds, each pod its own. Replicas that start together would
read each other's half-written files, and what one of them writes there all others run."""


def engines_mount(directory: str) -> Body:
    """The mount of ``ENGINES`` at the path that config.pbtxt names."""
    return {"name": ENGINES["name"], "mountPath": directory}


def box(context: Context) -> list[Body]:
    """The volumes of a pod with `run`: what that writes, and the /tmp of the other containers."""
    return [empty_directory(INCOMING, claim_size(context)), empty_directory(OWN_TEMPORARY["name"], JOB_TEMPORARY)]


def shared_memory(context: Context) -> Body:
    """The volume for /dev/shm: the runtime's 64 MiB is too small for Python backends, clients and data loaders."""
    size = context.spec.serving.shared_memory_size
    return {"name": SHARED_MEMORY["name"], "emptyDir": {"medium": "Memory", "sizeLimit": size}}


def repository(context: Context, *, writes: bool) -> Body:
    """The volume of the repository claim."""
    access = {} if writes else {"readOnly": True}
    return {"name": REPOSITORY, "persistentVolumeClaim": {"claimName": context.claim_name, **access}}


def repository_mount() -> Body:
    """The mount of the whole claim."""
    return {"name": REPOSITORY, "mountPath": str(layout.MOUNT)}


def input_mount(directory: Path, at: Path | str = "") -> Body:
    """The read-only mount of one directory of the claim, for a container that sees nothing else of it.

    ``at``: where it is mounted; empty: where the directory is in a mount of the whole claim.
    """
    below = str(directory.relative_to(layout.MOUNT))
    return {"name": REPOSITORY, "mountPath": str(at or directory), "subPath": below, "readOnly": True}


def claim_volume(context: Context, name: str, uri: str, mount_path: Path) -> Volumes:
    """Volume and read-only mount of the whole claim or ConfigMap that a URI names.

    The repository claim gets no second volume: the kubelet mounts a claim once for a pod, and waits for the other
    volume for good (kubernetes/kubernetes#82526). A subPath is only for a container that starts after another one has
    looked: the kubelet makes an empty directory if it is missing, and follows links.
    """
    named = uris.split(uri)
    mount = {"name": name, "mountPath": str(mount_path), "readOnly": True}
    if named.scheme == "configmap":
        return ({"name": name, "configMap": {"name": named.host}},), (mount,)
    if named.host == context.claim_name:
        return (), (mount | {"name": REPOSITORY},)
    return ({"name": name, "persistentVolumeClaim": {"claimName": named.host, "readOnly": True}},), (mount,)


def secret_volume(secret: str, name: str = CREDENTIALS, place: Path = layout.CREDENTIALS_MOUNT) -> Volumes:
    """Volume of that name and read-only mount of a Secret, a file for each key, which the pod's group may read."""
    volume = {"name": name, "secret": {"secretName": secret, "defaultMode": 0o440}}
    return (volume,), ({"name": name, "mountPath": str(place), "readOnly": True},)
