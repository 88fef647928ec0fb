"""Prints where statuses differ, at the end of the full run."""

import pytest

from tests.conformance.statuses import MEANT, Difference

ROWS = pytest.StashKey[list[Difference]]()


@pytest.fixture(scope="session")
def rows(request: pytest.FixtureRequest) -> list[Difference]:
    """The rows of the table: a test adds its own."""
    return request.config.stash.setdefault(ROWS, [])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print each difference, and why it is meant; nothing without a full run."""
    found = terminalreporter.config.stash.get(ROWS, [])
    if found:
        terminalreporter.section("statuses that differ from the kubelet's")
        for each in found:
            why = next((meant.why for meant in MEANT if meant.covers(each)), "NOT MEANT")
            terminalreporter.write_line(f"{each}: {why}")
