"""Removes what a cluster left, whether it was told to stop or was killed."""

import shutil
from collections.abc import Iterable
from pathlib import Path

from hack.devcluster import binaries, cgroups, network, policy_engine
from hack.devcluster.commands import run
from hack.devcluster.images import ctr
from hack.devcluster.mounts import mounts_below, unmount_below
from hack.devcluster.node import containerd
from hack.devcluster.nodes import Node, leftover_namespaces, present_nodes
from hack.devcluster.paths import ClusterError, ClusterPaths
from hack.devcluster.process import Recorded, command_line, end, recorded_processes, start, start_time
from hack.devcluster.readiness import wait_until

POD_LOG_LINKS = Path("/var/log/containers")
"""The kubelet's fixed folder of links to pod logs."""
SHIM_SOCKETS = Path("/run/containerd/s")
"""Compiled into containerd's shims; others' sockets may be there too."""
PROGRAMS = frozenset({*binaries.PROGRAMS, "containerd", "containerd-shim-runc-v2", "ctr"})
CONTAINERD_GRACE = 10.0
"""Seconds: its store outlives the cluster, so it may close it; nothing else is worth waiting for."""


def remove_cluster(paths: ClusterPaths) -> None:
    """Leave no process, mount, interface, namespace, nftables table or control group of a cluster behind.

    Kept: containerd's image store, logs and the audit log. Harmless when there is nothing.

    Raises:
        ClusterError: something resists, and what to look at.

    """
    processes = recorded_processes(paths.processes)
    stores = [process for process in processes if process.name == "containerd"]
    nodes = present_nodes(paths)
    end([process for process in processes if process not in stores], grace=0)
    end(stores, grace=CONTAINERD_GRACE)
    end(strays(paths), grace=0)
    cgroups.remove_cgroup()
    shim_sockets = [socket for node in nodes for socket in _shim_sockets(node.paths)]
    unmount_below([paths.home, paths.runtime])
    network.remove_network(paths)
    _remove_log_links(paths)
    for socket in shim_sockets:
        socket.unlink(missing_ok=True)
    _remove_empty(SHIM_SOCKETS, SHIM_SOCKETS.parent, network.CNI_RESULTS, network.CNI_RESULTS.parent)
    _remove_folders(paths, [paths.runtime])
    if paths.containerd.exists():
        _forget_containers(paths)
    kept = {paths.containerd, paths.logs, paths.audit_log}
    if paths.home.exists():
        _remove_folders(paths, [path for path in paths.home.iterdir() if path not in kept])


def leftovers(paths: ClusterPaths) -> list[str]:
    """What of a cluster is there now, one line a thing; empty after `remove_cluster`."""
    return [
        *(f"process {process.name} {process.pid}" for process in strays(paths)),
        *(f"process {pid} in our control group" for pid in cgroups.members()),
        *(f"control group {group}" for group in cgroups.groups()),
        *(f"mount {point}" for point in mounts_below([paths.home, paths.runtime])),
        *(f"interface {link}" for link in network.leftover_links()),
        *(f"network namespace {name}" for name in leftover_namespaces()),
        *(f"nftables table {family} {name}" for family, name in network.leftover_tables()),
        *(f"CNI result {path}" for path in network.leftover_cni_results(paths)),
        *(f"link {link}" for link in _log_links(paths)),
        *([f"folder {paths.runtime}"] if paths.runtime.exists() else []),
    ]


def strays(paths: ClusterPaths) -> list[Recorded]:
    """Processes of ours without a record: parents of containers, and what was started just before a kill.

    They are known by the program and by an argument below our folders.
    """
    folders = (f"{paths.home}/", f"{paths.runtime}/")
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        pid = int(entry.name)
        line = command_line(pid)
        if line and _known(line) and any(folder in word for word in line[1:] for folder in folders):
            started = start_time(pid)
            if started is not None:
                found.append(Recorded(Path(line[0]).name, pid, started, line))
    return found


def _known(line: list[str]) -> bool:
    return Path(line[0]).name in PROGRAMS or line[1:3] == ["-m", policy_engine.MODULE]


def _shim_sockets(paths: ClusterPaths) -> list[Path]:
    """Sockets of shims: containerd puts them outside its state and notes the place in each bundle."""
    addresses = paths.containerd_state.glob("io.containerd.runtime.v2.task/*/*/address")
    return [Path(address.read_text().strip().removeprefix("unix://")) for address in addresses]


def _log_links(paths: ClusterPaths) -> list[Path]:
    if not POD_LOG_LINKS.is_dir():
        return []
    links = [path for path in POD_LOG_LINKS.iterdir() if path.is_symlink()]
    return [link for link in links if link.readlink().is_relative_to(paths.home)]


def _remove_log_links(paths: ClusterPaths) -> None:
    for link in _log_links(paths):
        link.unlink(missing_ok=True)
    _remove_empty(POD_LOG_LINKS)


def _remove_empty(*folders: Path) -> None:
    """Remove folders that programs create at fixed places, unless somebody else keeps something there."""
    for folder in folders:
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()


def _remove_folders(paths: ClusterPaths, targets: Iterable[Path]) -> None:
    """Delete files and folders, never through a mount: what is mounted there may be somebody's data."""
    below = mounts_below([paths.home, paths.runtime])
    if below:
        raise ClusterError(f"{below[0]} is still mounted: see `fuser -m {below[0]}`, unmount it, run again")
    for path in targets:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def _forget_containers(paths: ClusterPaths) -> None:
    """Remove containers and snapshots from containerd's store, so that the next kubelet starts with none.

    Images stay: importing them takes minutes. A store that a kill left unreadable is dropped.
    """
    store = start(containerd(Node(1, paths), pods=False), records=paths.processes, logs=paths.logs)
    try:
        listing = [*ctr(paths), "containers", "list", "--quiet"]
        wait_until(
            paths.containerd_socket.exists,
            "containerd's socket",
            seconds=20,
            processes=[store],
            logs=paths.logs,
        )
        containers = run(listing).split()
        if containers:
            run([*ctr(paths), "containers", "delete", *containers])
    except ClusterError as error:
        print(f"dropping the image store, load images again: {error}", flush=True)
        end([store], grace=0)
        unmount_below([paths.containerd])
        shutil.rmtree(paths.containerd)
    end([store], grace=CONTAINERD_GRACE)
    unmount_below([paths.home, paths.runtime])
    _remove_folders(paths, [paths.runtime])
