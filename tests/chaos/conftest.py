"""Faults on a real API server.

Tests without the marker `chaos` are the quick part, which `make test` runs with the suite `apiserver`.
"""

from pathlib import Path

import pytest

from tests.apiserver.conftest import apiserver, cluster_kubectl, kubectl, operator_kubeconfig

__all__ = ["apiserver", "cluster_kubectl", "kubectl", "operator_kubeconfig"]

NODE = Path(__file__).parent / "node"
"""Faults on the cluster; its conftest marks them."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        mine = Path(__file__).parent in item.path.parents and NODE not in item.path.parents
        if mine and item.get_closest_marker("chaos") is None:
            item.add_marker(pytest.mark.apiserver)
