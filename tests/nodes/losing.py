"""Takes a node away, as a power failure does, and gives it back."""

import os
import signal
from functools import partial

from hack.devcluster import node
from hack.devcluster.cgroups import hierarchies
from hack.devcluster.cluster import daemons_of
from hack.devcluster.commands import succeeds
from hack.devcluster.images import ctr
from hack.devcluster.nodes import Node
from hack.devcluster.process import Recorded, end, recorded_processes, start
from tests.apiserver.operator_process import eventually

PROGRAMS = ("kubelet", "containerd", "kube-proxy", "network-policies")


def lose(victim: Node) -> None:
    """Leave the node no process: neither kubelet nor containerd, nor a container."""
    assert not victim.is_machine, "the first node is the machine, with the API server on it"
    end(processes(victim), grace=0)
    for hierarchy in hierarchies():
        for members in (hierarchy / victim.cgroup).rglob("cgroup.procs"):
            for pid in members.read_text().split():
                try:
                    os.kill(int(pid), signal.SIGKILL)
                except ProcessLookupError:
                    continue


def give_back(victim: Node) -> None:
    """Start the processes of a lost node again."""
    if any(each.alive() for each in processes(victim)):
        return
    begin = partial(start, records=victim.cluster.processes, logs=victim.cluster.logs)
    begin(node.containerd(victim))
    # A kubelet that finds no containerd ends at once.
    eventually(lambda: succeeds([*ctr(victim.paths), "version"]), within=60)
    for daemon in daemons_of(victim):
        begin(daemon)


def processes(victim: Node) -> list[Recorded]:
    """The node's own processes, as they were started last."""
    own = {victim.numbered(name) for name in PROGRAMS}
    return [each for each in recorded_processes(victim.cluster.processes) if each.name in own]
