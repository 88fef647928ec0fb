"""What all tests share: how hypothesis draws its examples, and the table of faults at the end."""

import os
from collections.abc import Callable

import pytest
from hypothesis import settings

# In CI the same examples every time: a verdict on a change is about the change. Elsewhere new ones are drawn.
settings.register_profile("ci", derandomize=True, database=None, deadline=None)
# No deadline: on a busy machine an example takes any time, and that is no fault of what is tested.
settings.register_profile("here", deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "here")

Fault = Callable[..., None]


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
