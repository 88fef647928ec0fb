"""Command line: `python3 -m hack.suites SUITE...` runs `make test-SUITE` for each, until one fails.

At the end it prints a table of how long each took, and one line with what failed: also after Ctrl-C and SIGTERM, and
if a suite is killed.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import NamedTuple

from hack.suites import outcomes

NAMES_SHOWN = 20
"""Names of tests in the last line: more are no longer read there."""


class Run(NamedTuple):
    """One suite that ran."""

    suite: str
    seconds: float
    status: int
    """Exit status of its `make`; negative: the signal that ended it."""
    failed: list[str]
    running: list[str]
    """Tests that had started and did not end."""

    @property
    def passed(self) -> bool:
        """Whether nothing went wrong; a test may end pytest with status 0."""
        return not (self.status or self.failed or self.running)


class Suites:
    """Runs suites one after the other, each in its own process group, and hands signals on to it.

    The first signal reaches the suite as SIGINT, after which pytest still removes what its fixtures made. Another one
    kills the suite.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._runs: list[Run] = []
        self._process: subprocess.Popen[bytes] | None = None
        self._folder = Path()
        self.signal: signal.Signals | None = None

    @property
    def passed(self) -> bool:
        """Whether all suites ran and passed."""
        return len(self._runs) == len(self._names) and not self._bad()

    def run(self) -> None:
        """Run them until one fails or a signal comes."""
        for name in self._names:
            if self.signal or self._bad():
                return
            self._runs.append(self._run(name))

    def interrupt(self, number: int, _frame: FrameType | None) -> None:
        """Handle a signal."""
        again, self.signal = self.signal is not None, signal.Signals(number)
        if not again:
            names = ", ".join(_names(*outcomes.failed_and_running(self._folder))) or "no test"
            say(f"\n{self.signal.name} in {names}: waiting for the suite to clean up; another signal ends it at once")
        self._send(signal.SIGKILL if again else signal.SIGINT)

    def table(self) -> str:
        """One line a suite: how long it took, and how it ended."""
        rows = [(run.suite, _minutes(run.seconds), "passed" if run.passed else "failed") for run in self._runs]
        rows.append(("total", _minutes(sum(run.seconds for run in self._runs)), ""))
        rows[-1:-1] = [(name, "", "not run") for name in self._left()]
        return "\n".join(f"{name:12} {took:>13}  {ended}".rstrip() for name, took, ended in rows)

    def verdict(self) -> str:
        """Return one line: PASSED, or FAILED with the names of the tests that failed and of the suites left out."""
        if self.passed:
            return f"PASSED: {', '.join(self._names)}"
        parts = [_said(run, self.signal) for run in self._bad()]
        if self.signal and not parts:
            parts = [f"interrupted by {self.signal.name} between suites"]
        if self._left():
            parts.append(f"not run: {', '.join(self._left())}")
        return f"FAILED: {'; '.join(parts)}"

    def _run(self, name: str) -> Run:
        began = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="suite-") as folder:
            self._folder = Path(folder)
            told = {outcomes.FOLDER: folder, outcomes.PLUGINS: outcomes.__name__}
            self._process = subprocess.Popen(
                ["make", "--no-print-directory", f"test-{name}"],
                env={**os.environ, **told},
                stdin=subprocess.DEVNULL,
                process_group=0,
            )
            if self.signal:
                self._send(signal.SIGINT)
            status = self._process.wait()
            return Run(name, time.monotonic() - began, status, *outcomes.failed_and_running(self._folder))

    def _send(self, number: signal.Signals) -> None:
        if self._process:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)

    def _bad(self) -> list[Run]:
        return [run for run in self._runs if not run.passed]

    def _left(self) -> Sequence[str]:
        return self._names[len(self._runs) :]


def _said(run: Run, interrupted: signal.Signals | None) -> str:
    ended = f"make test-{run.suite} ended with {run.status}, no test of it failed"
    how = f" (interrupted by {interrupted.name})" if interrupted else ""
    return f"{run.suite}{how}: {', '.join(_names(run.failed, run.running)) or ended}"


def _names(failed: Sequence[str], running: Sequence[str]) -> list[str]:
    names = [*failed, *(f"{test} (had not ended)" for test in running)]
    more = [f"{len(names) - NAMES_SHOWN} more"] if len(names) > NAMES_SHOWN else []
    return [*names[:NAMES_SHOWN], *more]


def _minutes(seconds: float) -> str:
    return f"{int(seconds) // 60:3} min {int(seconds) % 60:02} s"


def say(text: str) -> None:
    """Print at once: programs of the suites write to the same place. After SIGHUP it may be gone."""
    with suppress(OSError):
        print(text, flush=True)


def main(names: Sequence[str]) -> int:
    """Run the suites; return 0 if all passed, 1 if not, and 128 and the signal's number if one came."""
    suites = Suites(names)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, suites.interrupt)
    suites.run()
    say(f"\n{suites.table()}\n{suites.verdict()}")
    return 128 + suites.signal if suites.signal else int(not suites.passed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
