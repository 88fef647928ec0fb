"""Where everything lives: caches below the user's cache folder, sockets below /run."""

import os
from dataclasses import dataclass
from pathlib import Path

MAX_SOCKET_FOLDER = 70
"""Characters: a Unix socket's path holds 107, and the kubelet appends up to 36 to the folder it is given."""


class ClusterError(Exception):
    """What failed, to which part, and what to do next; printed without a traceback."""


def cache_home() -> Path:
    """The project's cache folder, below XDG_CACHE_HOME or ~/.cache."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "triton-operator"


@dataclass(frozen=True)
class ClusterPaths:
    """The folders and files of the one full cluster of this machine."""

    home: Path
    runtime: Path

    def check_lengths(self) -> None:
        """Refuse a cache folder whose path is too long for the sockets below it.

        Raises:
            ClusterError: it is, and what to set.

        """
        length = len(str(self.home))
        if length > MAX_SOCKET_FOLDER:
            raise ClusterError(
                f"{self.home} has {length} characters, too many for Unix sockets below it: "
                f"set XDG_CACHE_HOME so that it has at most {MAX_SOCKET_FOLDER}"
            )

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.home / "kubeconfig"

    @property
    def audit_log(self) -> Path:
        """One JSON line per write the API server handled."""
        return self.home / "audit.log"

    @property
    def certificates(self) -> Path:
        """Keys and certificates of this start of the cluster."""
        return self.home / "certificates"

    @property
    def logs(self) -> Path:
        """One log file a process."""
        return self.home / "logs"

    @property
    def configuration(self) -> Path:
        """Generated configuration files of the processes."""
        return self.home / "configuration"

    @property
    def kubelet(self) -> Path:
        """The kubelet's root: pod volumes are mounted below it."""
        return self.home / "kubelet"

    @property
    def pod_logs(self) -> Path:
        """Logs of the pods' containers."""
        return self.home / "pod-logs"

    @property
    def storage(self) -> Path:
        """Volumes made by the local-path provisioner."""
        return self.home / "storage"

    @property
    def nodes(self) -> Path:
        """Folders of the nodes after the first."""
        return self.home / "nodes"

    @property
    def shared_storage(self) -> Path:
        """Volumes that several nodes may mount."""
        return self.home / "shared-storage"

    @property
    def containerd(self) -> Path:
        """Containerd's root, which holds the image store: the one folder that `down` keeps."""
        return self.home / "containerd"

    @property
    def processes(self) -> Path:
        """One JSON record a process started by us."""
        return self.runtime / "processes"

    @property
    def containerd_state(self) -> Path:
        """Containerd's state: bundles, mounts, network namespaces."""
        return self.runtime / "containerd"

    @property
    def containerd_socket(self) -> Path:
        """The socket that kubelet and ctr use; never the system's containerd."""
        return self.runtime / "containerd.sock"

    @property
    def cni(self) -> Path:
        """Addresses handed out by the CNI plugin."""
        return self.runtime / "cni"


def cluster_paths() -> ClusterPaths:
    """The paths of this machine's cluster."""
    return ClusterPaths(home=cache_home() / "cluster", runtime=Path("/run/triton-devcluster"))
