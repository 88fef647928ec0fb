"""Locks between processes: two make targets never build or change the same thing at once."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hack.progress import say


@contextmanager
def exclusive(path: Path, what: str) -> Iterator[None]:
    """Hold the file lock at `path`, waiting for it and saying so; the kernel frees it when we die."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for another process that holds {what} ({path})")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
