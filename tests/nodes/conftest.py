"""A development cluster of three nodes with this tree's operator; the machine's own cluster is back afterwards."""

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from hack.devcluster.cluster import DevCluster
from hack.devcluster.kubeconfig import foreign_kubeconfig
from hack.devcluster.nodes import Node, all_nodes, present_nodes
from hack.devcluster.paths import cluster_paths
from tests.e2e.applied import Applied
from tests.e2e.conftest import cluster, installed
from tests.e2e.kubectl import Kubectl, Object
from tests.e2e.watching import Watch
from tests.nodes.objects import create_sources

__all__ = ["cluster", "installed"]
NODES = 3


@dataclass(frozen=True)
class Place:
    """A namespace on the cluster, with the sources of the objects."""

    kubectl: Kubectl
    watch: Watch
    nodes: tuple[Node, ...]

    def new(self, name: str, body: Object) -> Applied:
        """An object, not applied yet."""
        return Applied(self.kubectl, self.watch, body, name)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark all of this folder."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.nodes)


@pytest.fixture(scope="session")
def kubeconfig() -> Iterator[Path]:
    """Of a cluster of three nodes; one of another size that was up before is up again afterwards, empty."""
    paths = cluster_paths()
    assert foreign_kubeconfig(paths) is None, "these tests take nodes away: unset KUBECONFIG"
    development = DevCluster(paths)
    before = len(present_nodes(paths)) if development.healthy() else 0
    if before != NODES:
        development.down()
    development.up(NODES)
    yield paths.kubeconfig
    if before != NODES:
        development.down()
    if before not in (0, NODES):
        development.up(before)


@pytest.fixture(scope="session")
def place(cluster: Kubectl, installed: str) -> Iterator[Place]:
    """A fresh namespace, removed at the end with all that is in it."""
    kubectl = cluster.within(f"nodes-{secrets.token_hex(3)}")
    watch = Watch(cluster)
    try:
        kubectl.run("create", "namespace", kubectl.namespace)
        create_sources(kubectl)
        yield Place(kubectl, watch, tuple(all_nodes(cluster_paths(), NODES)))
    finally:
        watch.stop()
        cluster.run("delete", "namespace", kubectl.namespace, "--ignore-not-found", timeout=300)
