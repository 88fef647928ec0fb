"""Tests with the real Prometheus; the API server and the operator's process are those of tests/apiserver."""

from pathlib import Path

import pytest

from tests.apiserver.conftest import apiserver, cluster_kubectl, kubectl, operator, operator_kubeconfig

__all__ = ["apiserver", "cluster_kubectl", "kubectl", "operator", "operator_kubeconfig"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.observe)
