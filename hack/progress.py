"""Says on standard error, apart from results, what a slow step is, how long it usually takes and how long it took."""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

REMIND_SECONDS = 60.0
"""Pause between two lines that say that a step still goes on."""


def say(line: str) -> None:
    """Print a line at once, to a terminal, a file or a pipe alike."""
    print(line, file=sys.stderr, flush=True)


@contextmanager
def step(what: str, usual: str = "", *, remind_seconds: float = REMIND_SECONDS) -> Iterator[None]:
    """Say what begins and how long it ``usual``ly takes, each minute that it goes on, and how long it took.

    A step that raises is not said to be done.
    """
    start = time.monotonic()
    say(f"{what}, usually {usual} on two cores ..." if usual else f"{what} ...")
    over = threading.Event()

    def remind() -> None:
        while not over.wait(remind_seconds):
            say(f"{what}: still at it after {time.monotonic() - start:.0f} s")

    reminder = threading.Thread(target=remind, daemon=True)
    reminder.start()
    try:
        yield
    finally:
        over.set()
        reminder.join()
    say(f"{what}: {time.monotonic() - start:.1f} s")
