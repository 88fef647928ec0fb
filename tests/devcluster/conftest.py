"""The machine's cluster, and the machine as it was before."""

from collections.abc import Iterator

import pytest

from hack.devcluster.cluster import DevCluster
from hack.devcluster.paths import ClusterPaths, cluster_paths
from tests.devcluster.kubectl import Kubectl
from tests.devcluster.machine import machine_state


@pytest.fixture(scope="session")
def paths() -> ClusterPaths:
    return cluster_paths()


@pytest.fixture(scope="session")
def as_before(paths: ClusterPaths) -> Iterator[None]:
    """A cluster that was up before is up again afterwards; otherwise it stays as the last test leaves it."""
    cluster = DevCluster(paths)
    was_up = cluster.healthy()
    yield
    if was_up:
        cluster.up()


@pytest.fixture(scope="module")
def untouched_machine(paths: ClusterPaths, as_before: None) -> dict[str, object]:
    """The machine without a cluster."""
    DevCluster(paths).down()
    return machine_state(paths)


@pytest.fixture
def no_cluster(paths: ClusterPaths, untouched_machine: dict[str, object]) -> DevCluster:
    """A cluster that is not up."""
    found = DevCluster(paths)
    found.down()
    return found


@pytest.fixture
def cluster(paths: ClusterPaths, untouched_machine: dict[str, object]) -> DevCluster:
    """A healthy cluster; started where the test before removed or broke it."""
    found = DevCluster(paths)
    found.up()
    return found


@pytest.fixture
def kubectl(cluster: DevCluster) -> Kubectl:
    return Kubectl(cluster.paths.kubeconfig)
