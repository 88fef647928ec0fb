"""Which of the user's files runs right now: should the process end without a word, its watcher says so.

The file that it is written into is the user's code's to change, so it is read as a hint. Standard library only.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from triton_converters.contract.failure import StageError
from triton_converters.contract.text import quoted
from triton_converters.incoming import files

VARIABLE = "TRITON_CONVERTERS_RUNNING"
"""Names the file; without it nothing is written."""
NAME = "running"
"""The file's own name, in INCOMING_MOUNT."""
MOST_BYTES = 4096
"""Longest content of that file: a path's."""
_stack: list[str] = [""]


@contextmanager
def running(path: str) -> Iterator[None]:
    """Say that the code of this file runs. ``path``: below the source."""
    _stack.append(path)
    _write(path)
    try:
        yield
    finally:
        _stack.pop()
        _write(_stack[-1])


def read(incoming: Path) -> str:
    """Return the quoted path of the file whose code runs; empty if none does, or if nothing says so."""
    with suppress(StageError):
        found = files.read_file(incoming, NAME, MOST_BYTES).decode(errors="replace")
        return quoted(found) if found else ""
    return ""


def _write(path: str) -> None:
    if target := os.environ.get(VARIABLE):
        with suppress(OSError):
            Path(target).write_text(path, encoding="utf-8", errors="replace")
