"""A claim that is full: a static volume on the tmpfs that the kubelet mounts for a pod's emptyDir in memory.

The tmpfs has the size of its sizeLimit, is visible on the node like any other path, and goes with the pod.
"""

from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.e2e.kubectl import Kubectl, Object

MOUNT = "/small"
FILLER = f"{MOUNT}/filler"
DEFAULT_KUBELET = Path("/var/lib/kubelet")


@dataclass(frozen=True)
class FullClaim:
    """The claim ``name``, made on entry and removed on exit."""

    kubectl: Kubectl
    image: str
    """Of the pod that owns the tmpfs; any Debian."""
    kubelet: Path
    """The kubelet's root directory on the node."""
    name: str = "full"
    mebibytes: int = 1
    privileged: bool = False
    """Of the pod that owns the tmpfs: it may mount then."""

    def __enter__(self) -> Self:
        """Make the tmpfs, fill it, make volume and claim."""
        self.kubectl.apply(self._owner())
        self.kubectl.run("wait", "--for=condition=Ready", f"pod/{self.name}", "--timeout=60s", timeout=70)
        self.kubectl.execute(self.name, "fallocate", "--length", f"{self.mebibytes}MiB", FILLER)
        uid = self.kubectl.get("pod", self.name)["metadata"]["uid"]
        path = self.kubelet / "pods" / uid / "volumes/kubernetes.io~empty-dir/small"
        self.kubectl.apply(self._volume(path), self._claim())
        return self

    def empty(self) -> None:
        """Make room."""
        self.kubectl.execute(self.name, "rm", FILLER)

    def make_read_only(self) -> None:
        """For everybody: the file system itself, not one mount of it."""
        self.kubectl.execute(self.name, "mount", "-o", "remount,ro", MOUNT)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove the claim once no pod uses it, then what it lay on."""
        self.kubectl.delete("pvc", self.name)
        self.kubectl.delete("pv", self._volume_name)
        self.kubectl.delete("pod", self.name)

    @property
    def _volume_name(self) -> str:
        return f"{self.kubectl.namespace}-{self.name}"

    def _owner(self) -> Object:
        small = {"name": "small", "emptyDir": {"medium": "Memory", "sizeLimit": f"{self.mebibytes}Mi"}}
        container = {
            "name": "owner",
            "image": self.image,
            "imagePullPolicy": "IfNotPresent",
            "command": ["sleep", "infinity"],
            "securityContext": {"privileged": True, "runAsUser": 0} if self.privileged else {},
            "volumeMounts": [{"name": "small", "mountPath": MOUNT}],
        }
        spec = {"terminationGracePeriodSeconds": 0, "containers": [container], "volumes": [small]}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": self.name}, "spec": spec}

    def _volume(self, path: Path) -> Object:
        spec = {
            "capacity": {"storage": f"{self.mebibytes}Mi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "",
            "persistentVolumeReclaimPolicy": "Retain",
            "claimRef": {"namespace": self.kubectl.namespace, "name": self.name},
            "hostPath": {"path": str(path), "type": "Directory"},
        }
        return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": self._volume_name}, "spec": spec}

    def _claim(self) -> Object:
        spec = {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "",
            "volumeName": self._volume_name,
            "resources": {"requests": {"storage": f"{self.mebibytes}Mi"}},
        }
        return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": self.name}, "spec": spec}
