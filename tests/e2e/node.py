"""A small tmpfs on the node as a claim, by a privileged pod: full when it is made, emptied on demand."""

from dataclasses import dataclass
from types import TracebackType

from tests.e2e.kubectl import Kubectl, Object

FILLER = "filler"


@dataclass(frozen=True)
class Tmpfs:
    """A claim of the namespace backed by a static volume on a tmpfs that a file fills."""

    kubectl: Kubectl
    image: str
    """Of the pod: it needs util-linux, which Debian always has."""
    name: str
    mebibytes: int

    @property
    def path(self) -> str:
        """On the node."""
        return f"/run/{self.kubectl.namespace}-{self.name}"

    @property
    def volume(self) -> str:
        """The PersistentVolume."""
        return f"{self.kubectl.namespace}-{self.name}"

    def __enter__(self) -> "Tmpfs":
        """Mount, fill, make volume and claim."""
        self.kubectl.apply(_node_pod(self.name, self.image))
        self.kubectl.run("wait", "--for=condition=Ready", f"pod/{self._pod}", "--timeout=60s", timeout=70)
        self._on_node("mkdir", "-p", self.path)
        self._on_node("mount", "-t", "tmpfs", "-o", f"size={self.mebibytes}m,mode=0777", "tmpfs", self.path)
        self._on_node("fallocate", "--length", f"{self.mebibytes}MiB", f"{self.path}/{FILLER}")
        self.kubectl.apply(*_static_volume(self))
        return self

    def empty(self) -> None:
        """Make room."""
        self._on_node("rm", f"{self.path}/{FILLER}")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take everything away again."""
        self.kubectl.delete("pvc", self.name, wait=False)
        self.kubectl.delete("pv", self.volume, wait=False)
        self._on_node("umount", "--lazy", self.path)
        self._on_node("rmdir", self.path)
        self.kubectl.delete("pod", self._pod)

    @property
    def _pod(self) -> str:
        return f"node-{self.name}"

    def _on_node(self, *command: str) -> None:
        """Run a command in the mount namespace of the node's first process, which is the kubelet's."""
        self.kubectl.execute(self._pod, "nsenter", "--target=1", "--mount", "--", *command)


def _node_pod(name: str, image: str) -> Object:
    container = {
        "name": "node",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["sleep", "infinity"],
        "securityContext": {"privileged": True, "runAsUser": 0},
    }
    spec = {"hostPID": True, "terminationGracePeriodSeconds": 0, "containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"node-{name}"}, "spec": spec}


def _static_volume(tmpfs: Tmpfs) -> tuple[Object, Object]:
    size = f"{tmpfs.mebibytes}Mi"
    modes = ["ReadWriteOnce"]
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": tmpfs.volume},
        "spec": {
            "capacity": {"storage": size},
            "accessModes": modes,
            "storageClassName": "",
            "persistentVolumeReclaimPolicy": "Retain",
            "claimRef": {"namespace": tmpfs.kubectl.namespace, "name": tmpfs.name},
            "hostPath": {"path": tmpfs.path, "type": "Directory"},
        },
    }
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": tmpfs.name},
        "spec": {
            "accessModes": modes,
            "storageClassName": "",
            "volumeName": tmpfs.volume,
            "resources": {"requests": {"storage": size}},
        },
    }
    return volume, claim
