"""The machine as the kernel shows it: for comparing before and after a cluster."""

import json
import subprocess
from pathlib import Path

from hack.devcluster.commands import run
from hack.devcluster.mounts import mounted
from hack.devcluster.paths import ClusterPaths

MOUNT_WORDS = ("kubelet", "containerd", "netns", "devcluster", "triton-operator/cluster")
"""Words in the mount points of a cluster; image builds on the same machine mount other things meanwhile."""


def machine_state(paths: ClusterPaths) -> dict[str, object]:
    """What a cluster could leave on the machine, asked from the kernel and not from devcluster."""
    links = json.loads(run(["ip", "-json", "link"]))
    rules = subprocess.run(["nft", "list", "ruleset"], capture_output=True, text=True, check=True)
    routes = json.loads(run(["ip", "-json", "route", "show", "table", "all"]))
    cgroups = Path("/sys/fs/cgroup")
    return {
        "processes": sorted(cluster_processes(paths)),
        "mounts": [str(mount.point) for mount in mounted() if any(word in str(mount.point) for word in MOUNT_WORDS)],
        "interfaces": sorted(link["ifname"] for link in links),
        "routes": sorted(str(route.get("dst")) for route in routes),
        "nftables": rules.stdout,
        "namespaces": run(["ip", "netns", "list"]),
        "control groups": [*cgroups.glob("**/kubepods"), *cgroups.glob("**/triton-devcluster")],
        "runtime folder": paths.runtime.exists(),
        "shim sockets": sorted(str(path) for path in Path("/run/containerd").glob("s/*")),
        "log links": sorted(str(path) for path in Path("/var/log/containers").glob("*")),
        "CNI results": sorted(str(path) for path in Path("/var/lib/cni").glob("**/*")),
    }


def cluster_processes(paths: ClusterPaths) -> list[str]:
    """Command lines of live processes that mention a folder of the cluster, and of everything in a pod."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                group = (entry / "cgroup").read_text()
            except OSError:
                continue
            ours = str(paths.home) in line or str(paths.runtime) in line or "kubepods" in group
            if line and ours:
                found.append(line)
    return found
