"""A pytest plugin that writes down what becomes of each test at once: a run that is killed has told it by then."""

import os
from pathlib import Path

import pytest

FOLDER = "SUITE_OUTCOMES"
"""The variable that names the folder to write into."""
FILE = "outcomes"
PLUGINS = "PYTEST_PLUGINS"


class Outcomes:
    """Appends a line for each event: `started`, `failed` or `finished`, and the test or the file that it is about."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / FILE

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """A test starts, here or in a worker."""
        self._append("started", nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """The set-up, call or teardown of a test is over."""
        if report.failed:
            self._append("failed", report.nodeid)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """A test is over."""
        self._append("finished", nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """The tests of a file are known, or it could not be read."""
        if report.failed:
            self._append("failed", report.nodeid)

    def _append(self, event: str, test: str) -> None:
        with self._file.open("a", encoding="utf-8") as file:
            file.write(f"{event} {test}\n")


def pytest_configure(config: pytest.Config) -> None:
    """Write where the variable says; workers, and pytest inside a test, must not write as well."""
    folder = os.environ.pop(FOLDER, None)
    if os.environ.get(PLUGINS) == __name__:
        del os.environ[PLUGINS]
    if folder and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Outcomes(Path(folder)))


def failed_and_running(folder: Path) -> tuple[list[str], list[str]]:
    """Return the tests and files that failed, and the tests that started and did not end, each once and in order."""
    failed: dict[str, None] = {}
    running: dict[str, None] = {}
    file = folder / FILE
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else []:
        event, _, test = line.partition(" ")
        if event == "failed":
            failed[test] = None
        elif event == "started":
            running[test] = None
        else:
            running.pop(test, None)
    return list(failed), [test for test in running if test not in failed]
