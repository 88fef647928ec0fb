"""The cluster and the installed operator are those of tests/e2e."""

import os
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.applied import Applied
from tests.e2e.conftest import cluster, installed, kubeconfig
from tests.e2e.kubectl import Kubectl
from tests.e2e.smallest import files, smallest
from tests.e2e.watching import Watch
from tests.integrations.kueue import Kueue

__all__ = ["cluster", "installed", "kubeconfig"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.integrations)


@dataclass(frozen=True)
class Place:
    """A fresh namespace with the file of the smallest object."""

    kubectl: Kubectl
    watch: Watch

    def new(self, name: str) -> Applied:
        """A smallest object, not applied yet."""
        return Applied(self.kubectl, self.watch, smallest(), name)


@pytest.fixture(scope="session")
def namespace() -> str:
    return f"integrations-{secrets.token_hex(3)}"


@pytest.fixture(scope="session")
def kueue(cluster: Kubectl, namespace: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kueue]:
    """Kueue on this machine, where the API server of the development cluster runs too."""
    if "KUBECONFIG" in os.environ:
        pytest.skip("KUBECONFIG is set: that cluster may not reach webhooks on this machine")
    with Kueue(cluster, tmp_path_factory.mktemp("kueue"), namespace) as found:
        yield found


@pytest.fixture(scope="session")
def place(cluster: Kubectl, installed: str, kueue: Kueue, namespace: str) -> Iterator[Place]:
    """It goes while Kueue runs, which has finalizers on its own objects."""
    kubectl, watch = cluster.within(namespace), Watch(cluster)
    try:
        kubectl.run("create", "namespace", namespace)
        kubectl.apply(files())
        yield Place(kubectl, watch)
    finally:
        watch.stop()
        cluster.run("delete", "namespace", namespace, "--ignore-not-found", timeout=300)
