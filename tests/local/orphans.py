"""What a process that was killed has left: this process becomes the parent of it."""

import ctypes
import os
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from triton_local.box import TAKES_ORPHANS

KILLS = int(os.environ.get("KILLS", "3"))
"""How often each test kills an engine."""
SEED = int(os.environ.get("SEED", "0")) or random.randrange(2**32)
PATIENCE_SECONDS = 60.0


@contextmanager
def orphans_come_here() -> Iterator[frozenset[int]]:
    """Be the parent of what is left, until the block ends; yields the pids of this process's children before."""
    prctl = ctypes.CDLL(None).prctl
    prctl(TAKES_ORPHANS, 1, 0, 0, 0)
    try:
        yield frozenset(children())
    finally:
        prctl(TAKES_ORPHANS, 0, 0, 0, 0)


def left(others: frozenset[int]) -> list[str]:
    """The processes that are still there a while after their engine has ended. ``others``: of other tests."""
    end = time.monotonic() + PATIENCE_SECONDS
    while pids := [each for each in children() if each not in others]:
        for pid in pids:
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        if time.monotonic() > end:
            break
        time.sleep(0.05)
    return [Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8").replace("\0", " ") for pid in pids]


def children(process: int | str = "self") -> list[int]:
    tasks = Path(f"/proc/{process}/task").iterdir()
    return [int(pid) for each in tasks for pid in (each / "children").read_text().split()]
