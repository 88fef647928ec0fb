"""Tests with the real Prometheus; the API server and the operator's process are those of tests/apiserver."""

from pathlib import Path

import pytest

pytest_plugins = ["tests.apiserver.conftest"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.observe)
