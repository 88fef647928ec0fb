"""What all tests share: how hypothesis draws its examples, what an installation is like, and the tables at the end."""

import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import settings

# `make test` sets CI, for the same examples every time: a verdict on a change is about the change. Else they are new.
settings.register_profile("ci", derandomize=True, database=None, deadline=None)
# No deadline: on a busy machine an example takes any time, and that is no fault of what is tested.
settings.register_profile("here", deadline=None)
# ONNX Runtime reads it when it is imported, and no test may ask a host that it does not name.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"
settings.load_profile("ci" if os.environ.get("CI") else "here")

Fault = Callable[..., None]
Attack = Callable[[str, str, str], None]


@pytest.fixture
def fault(record_property: Callable[[str, object], None]) -> Fault:
    """Name the fault of a test, how often it happened, and what was seen; the last call counts."""

    def name(what: str, runs: int = 1, seen: str = "") -> None:
        record_property("faults", (what, str(runs), seen))

    return name


@pytest.fixture
def attack(record_property: Callable[[str, object], None]) -> Attack:
    """Name who attacks, what is attacked and how, and what happened instead; the last call counts."""

    def name(actor: str, what: str, seen: str) -> None:
        record_property("attacks", (actor, what, seen))

    return name


@pytest.fixture(scope="session")
def values() -> Mapping[str, Any]:
    """The chart's values of an installation on a cluster, besides those that this tree needs."""
    return {}


def pytest_collection_finish() -> None:
    """From here on no module is compiled for later: users' files that tests write change within a second."""
    sys.dont_write_bytecode = True
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for table in ("faults", "attacks"):
        rows = []
        for result in ("passed", "failed"):
            for report in terminalreporter.stats.get(result, []):
                said = dict(report.user_properties)
                if table in said:
                    first, second, seen = said[table]
                    rows.append((first, second, result, " ".join(seen.split())))
        if rows:
            terminalreporter.section(table)
            widths = [max(len(row[column]) for row in rows) for column in range(3)]
            for row in sorted(rows):
                cells = "  ".join(cell.ljust(width) for cell, width in zip(row[:3], widths, strict=True))
                terminalreporter.write_line(f"{cells}  {row[3]}".rstrip())
