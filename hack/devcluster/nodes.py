"""The nodes: the first is the machine itself, each further one a network namespace with folders of its own."""

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass

from hack.devcluster.addresses import CGROUP, NODE_NAME
from hack.devcluster.commands import run
from hack.devcluster.paths import ClusterPaths

MOST_NODES = 4
"""The pods' addresses are divided among so many."""
NAMESPACE_PREFIX = "triton-dev-"


@dataclass(frozen=True)
class Node:
    """One node of the cluster: its names, addresses and folders."""

    number: int
    """From 1."""
    cluster: ClusterPaths

    @property
    def is_machine(self) -> bool:
        """Whether the node is the machine itself."""
        return self.number == 1

    @property
    def name(self) -> str:
        """Name of the Node object."""
        return self.numbered(NODE_NAME)

    @property
    def address(self) -> str:
        """The node's own address."""
        return f"10.215.0.{self.number}"

    @property
    def pod_range(self) -> str:
        """The node's part of the pods' addresses."""
        return f"10.213.{64 * (self.number - 1)}.0/18"

    @property
    def gateway(self) -> str:
        """The node's address as its pods see it."""
        return f"10.213.{64 * (self.number - 1)}.1"

    @property
    def namespace(self) -> str:
        """Name of the node's network namespace, and of the machine's end of its link; empty: the machine's own."""
        return "" if self.is_machine else f"{NAMESPACE_PREFIX}{self.number}"

    @property
    def cgroup(self) -> str:
        """The control group of its pods: a kubelet removes those of pods that it does not know."""
        return CGROUP if self.is_machine else f"{CGROUP}/{self.name}"

    @property
    def paths(self) -> ClusterPaths:
        """The folders of the node's kubelet and containerd: two kubelets on one containerd kill each other's pods."""
        if self.is_machine:
            return self.cluster
        return ClusterPaths(self.cluster.nodes / str(self.number), self.cluster.runtime / str(self.number))

    def numbered(self, name: str) -> str:
        """The name of something that each node has one of; plain for the first."""
        return name if self.is_machine else f"{name}-{self.number}"

    def inside(self, *argv: str) -> list[str]:
        """The command line that runs a program in the node's network. Mounts stay those of the machine."""
        return [*network_wrapper(self.namespace), *argv]


def network_wrapper(namespace: str) -> list[str]:
    """The words before a command that let it run in a network namespace; none for the machine's own."""
    return ["nsenter", f"--net=/run/netns/{namespace}", "--"] if namespace else []


def all_nodes(paths: ClusterPaths, count: int) -> list[Node]:
    """The nodes of a cluster of that size."""
    return [Node(number, paths) for number in range(1, count + 1)]


def present_nodes(paths: ClusterPaths) -> list[Node]:
    """The nodes of the cluster that is there, by their folders."""
    further = sorted(int(folder.name) for folder in paths.nodes.iterdir()) if paths.nodes.is_dir() else []
    return [Node(number, paths) for number in (1, *further)]


def leftover_namespaces() -> list[str]:
    """Names of the network namespaces that are ours."""
    if shutil.which("ip") is None:
        return []
    listed: Sequence[dict[str, str]] = json.loads(run(["ip", "-json", "netns", "list"]) or "[]")
    return [each["name"] for each in listed if each["name"].startswith(NAMESPACE_PREFIX)]
