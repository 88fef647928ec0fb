"""Faults on a real API server. Each test names its fault; the summary prints one table of faults, runs and results.

Tests without the marker `chaos` are the quick part, which `make test` runs with the suite `apiserver`.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.apiserver.conftest import apiserver, cluster_kubectl, kubectl, operator_kubeconfig

__all__ = ["apiserver", "cluster_kubectl", "kubectl", "operator_kubeconfig"]

NODE = Path(__file__).parent / "node"
"""Faults on the cluster; its conftest marks them."""
Fault = Callable[..., None]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        mine = Path(__file__).parent in item.path.parents and NODE not in item.path.parents
        if mine and item.get_closest_marker("chaos") is None:
            item.add_marker(pytest.mark.apiserver)


@pytest.fixture
def fault(record_property: Callable[[str, object], None]) -> Fault:
    """Name the fault of a test, how often it happened, and what was seen; the last call counts."""

    def name(what: str, runs: int = 1, seen: str = "") -> None:
        for key, value in (("fault", what), ("runs", runs), ("seen", seen)):
            record_property(key, value)

    return name


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    rows = []
    for result in ("passed", "failed"):
        for report in terminalreporter.stats.get(result, []):
            said = dict(report.user_properties)
            if "fault" in said:
                rows.append((said["fault"], str(said["runs"]), result, said["seen"]))
    if not rows:
        return
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    terminalreporter.section("faults")
    for row in sorted(rows):
        first = "  ".join(cell.ljust(width) for cell, width in zip(row[:3], widths, strict=True))
        terminalreporter.write_line(f"{first}  {row[3]}".rstrip())
