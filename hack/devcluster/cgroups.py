"""The control group that holds every pod: made before the kubelet starts, emptied and removed after."""

import os
import signal
import time
from pathlib import Path

from hack.devcluster.addresses import CGROUP
from hack.devcluster.mounts import mounted
from hack.devcluster.paths import ClusterError


def hierarchies() -> list[Path]:
    """Mount points of all cgroup hierarchies: one a controller for version 1, one in all for version 2."""
    return [mount.point for mount in mounted() if mount.kind in ("cgroup", "cgroup2")]


def create_cgroup(name: str) -> None:
    """Make a node's group in every hierarchy; the kubelet wants its root to exist.

    Raises:
        ClusterError: no cgroup hierarchy is mounted.

    """
    found = hierarchies()
    if not found:
        raise ClusterError("no cgroup hierarchy is mounted: mount cgroup2 at /sys/fs/cgroup")
    for hierarchy in found:
        group = hierarchy / name
        _delegate_controllers(group.parent)
        group.mkdir(exist_ok=True)


def _delegate_controllers(hierarchy: Path) -> None:
    """Version 2 only: let groups below the root use every controller the root has."""
    offered, given = hierarchy / "cgroup.controllers", hierarchy / "cgroup.subtree_control"
    if offered.exists():
        absent = set(offered.read_text().split()) - set(given.read_text().split())
        if absent:
            given.write_text(" ".join(f"+{name}" for name in sorted(absent)))


def groups() -> list[Path]:
    """Our groups in all hierarchies, children before their parents."""
    found = []
    for hierarchy in hierarchies():
        for folder, _, _ in os.walk(hierarchy / CGROUP, topdown=False):
            found.append(Path(folder))
    return found


def members() -> set[int]:
    """Process ids inside our groups."""
    found: set[int] = set()
    for group in groups():
        try:
            found.update(int(line) for line in (group / "cgroup.procs").read_text().split())
        except OSError:
            continue
    return found


def remove_cgroup(seconds: float = 20) -> None:
    """Kill every process in our groups and remove the groups.

    Raises:
        ClusterError: a process or a group is still there after `seconds`.

    """
    deadline = time.monotonic() + seconds
    while groups():
        for pid in members():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        for group in groups():
            try:
                group.rmdir()
            except OSError:
                continue
        if time.monotonic() > deadline:
            raise ClusterError(f"cannot empty control groups {[str(group) for group in groups()]}: {members()}")
        time.sleep(0.02)
