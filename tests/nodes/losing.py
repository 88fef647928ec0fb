"""Takes a node away, as a power failure does, and gives it back."""

import os
import signal
import time
from functools import partial

from hack.devcluster import node
from hack.devcluster.cgroups import hierarchies
from hack.devcluster.cluster import daemons_of
from hack.devcluster.nodes import Node
from hack.devcluster.process import Recorded, end, recorded_processes, start
from tests.apiserver.operator_process import eventually

PROGRAMS = ("kubelet", "containerd", "kube-proxy", "network-policies")
STAYS_SECONDS = 3.0
"""A kubelet that still runs after this time has found its containerd."""


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
    kubelet, *others = daemons_of(victim)
    for daemon in others:
        begin(daemon)

    def stays() -> bool:
        started = begin(kubelet)
        time.sleep(STAYS_SECONDS)
        return started.alive()

    # A kubelet that finds a containerd which is not ready ends at once, and an init system starts it again.
    eventually(stays, within=60)


def processes(victim: Node) -> list[Recorded]:
    """The node's own processes, as they were started last."""
    own = {victim.numbered(name) for name in PROGRAMS}
    return [each for each in recorded_processes(victim.cluster.processes) if each.name in own]
