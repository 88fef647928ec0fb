"""The claim and the pod of a push, as Kubernetes takes them. Pure."""

import inspect
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from triton_converters.contract import uris
from triton_plugin.drafting.push import receiver
from triton_plugin.errors import PushError

LABELS = {
    "app.kubernetes.io/name": "triton-push",
    "app.kubernetes.io/part-of": "triton-operator",
    "app.kubernetes.io/managed-by": "kubectl-triton",
}
CONTAINER = "push"
MOUNT = "/claim"
USER = 1000
"""The user of the operator's Jobs, unless spec.pod.runAsUser sets another; everybody may read what it writes."""
PROGRAM = ("python3", "-c", 'import os; exec(os.environ["RECEIVER"])')
"""The command line of the receiver in the pod. Its text is in the environment: a request's URL would be too long."""


@dataclass(frozen=True)
class Target:
    """A folder on a claim."""

    claim: str
    path: str
    """Path below the claim's root, without slashes around it."""

    @property
    def uri(self) -> str:
        """What spec.source.uri takes."""
        return f"pvc://{self.claim}/{self.path}"


def target(uri: str) -> Target:
    """Parse pvc://CLAIM/PATH. Raises PushError."""
    with suppress(ValueError):
        found = uris.split(uri)
        if found.scheme == "pvc" and found.path:
            return Target(found.host, found.path)
    words = "name a folder as pvc://CLAIM/PATH; each part of PATH begins with a letter, a digit or an underscore"
    raise PushError(f"{uri} is not a folder on a claim: {words}")


def claim(name: str, size: str, storage_class: str) -> dict[str, Any]:
    """Return a new PersistentVolumeClaim; an empty storage class is the cluster's default."""
    spec: dict[str, Any] = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
    if storage_class:
        spec["storageClassName"] = storage_class
    metadata = {"name": name, "labels": LABELS}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}


def pod(name: str, claim_name: str, image: str) -> dict[str, Any]:
    """Return the pod that mounts the claim and waits for commands, at most for the receiver's LIFETIME_SECONDS."""
    container = {
        "name": CONTAINER,
        "image": image,
        "command": ["sleep", "infinity"],
        "env": [{"name": "RECEIVER", "value": inspect.getsource(receiver)}],
        "resources": {
            "requests": {"cpu": "100m", "memory": "64Mi", "ephemeral-storage": "16Mi"},
            "limits": {"cpu": "1", "memory": "256Mi", "ephemeral-storage": "64Mi"},
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
        "volumeMounts": [{"name": "claim", "mountPath": MOUNT}],
    }
    spec = {
        "restartPolicy": "Never",
        "activeDeadlineSeconds": receiver.LIFETIME_SECONDS,
        # After an interruption the receiver deletes what it has written so far.
        "terminationGracePeriodSeconds": 5,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER,
            "runAsGroup": USER,
            "fsGroup": USER,
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
        "volumes": [{"name": "claim", "persistentVolumeClaim": {"claimName": claim_name}}],
    }
    metadata = {"name": name, "labels": LABELS}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
