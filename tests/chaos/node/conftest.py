"""A namespace on the cluster with this tree's operator; what disturbs only its own object runs beside the others.

A lane is a function that applies objects and waits for them in a thread, as in tests/e2e. Tests that stop the operator,
the kubelet or the node come after all lanes have ended.
"""

import secrets
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from hack.devcluster.paths import cluster_paths
from tests.chaos.node import promoting, refusals, room, sharing
from tests.chaos.node.place import Place
from tests.e2e import workbench
from tests.e2e.conftest import cluster, installed, kubeconfig
from tests.e2e.full_claim import DEFAULT_KUBELET
from tests.e2e.kubectl import Kubectl
from tests.e2e.watching import Watch

__all__ = ["cluster", "installed", "kubeconfig"]

LANES: dict[str, Callable[[Place], Any]] = {
    "promoted": promoting.run,
    "shared": sharing.run,
    "roomless": room.run,
    "refused": refusals.run,
}
"""By the fixture that gives its outcome; those that take longest come first."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Those of the lanes come first."""
    here = Path(__file__).parent
    own = [item for item in items if item.path.is_relative_to(here)]
    for item in own:
        item.add_marker(pytest.mark.chaos)
    order = {id(item): not LANES.keys() & set(getattr(item, "fixturenames", ())) for item in own}
    items.sort(key=lambda item: order.get(id(item), False))


@pytest.fixture(scope="session")
def place(cluster: Kubectl, installed: str) -> Iterator[Place]:
    """A fresh namespace, removed at the end with all that is in it."""
    kubectl = cluster.within(f"chaos-{secrets.token_hex(3)}")
    watch = Watch(cluster)
    ours = cluster.kubeconfig == cluster_paths().kubeconfig
    try:
        kubectl.run("create", "namespace", kubectl.namespace)
        bench = workbench.start(kubectl, installed)
        bench.fill()
        yield Place(kubectl, watch, bench, installed, cluster_paths().kubelet if ours else DEFAULT_KUBELET)
    finally:
        watch.stop()
        cluster.run("delete", "namespace", kubectl.namespace, "--ignore-not-found", timeout=300)


@pytest.fixture(scope="session")
def lanes(request: pytest.FixtureRequest, place: Place) -> Iterator[dict[str, "Future[Any]"]]:
    """Those that the collected tests ask for, as futures."""
    wanted = {name for item in request.session.items for name in getattr(item, "fixturenames", ())}
    with ThreadPoolExecutor(len(LANES)) as executor:
        yield {name: executor.submit(run, place) for name, run in LANES.items() if name in wanted}


@pytest.fixture(scope="session")
def promoted(lanes: dict[str, "Future[Any]"]) -> promoting.Promoted:
    """Outcome of the lane."""
    return lanes["promoted"].result()


@pytest.fixture(scope="session")
def shared(lanes: dict[str, "Future[Any]"]) -> sharing.Shared:
    """Outcome of the lane."""
    return lanes["shared"].result()


@pytest.fixture(scope="session")
def roomless(lanes: dict[str, "Future[Any]"]) -> room.Room:
    """Outcome of the lane."""
    return lanes["roomless"].result()


@pytest.fixture(scope="session")
def refused(lanes: dict[str, "Future[Any]"]) -> refusals.Refused:
    """Outcome of the lane."""
    return lanes["refused"].result()
