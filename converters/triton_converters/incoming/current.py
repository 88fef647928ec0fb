"""Which of the user's files runs or is opened right now: should the process end without a word, its watcher says so.

The file that it is written into is the user's code's to change, so it is read as a hint. Standard library only.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from triton_converters.contract.failure import StageError
from triton_converters.contract.text import quoted
from triton_converters.incoming import files

VARIABLE = "TRITON_CONVERTERS_RUNNING"
"""Names the file; without it nothing is written."""
NAME = "running"
"""The file's own name, in INCOMING_MOUNT."""
MOST_BYTES = 4096
"""Longest content of that file: a path's."""
_NOTE = re.compile(
    r"(?:((?:lightgbm|onnxruntime|scikit-learn|tensorflow|torch|xgboost) [\w.+-]{1,40}) (opened|ran) )?(.+)", re.DOTALL
)
_stack: list[str] = [""]


class Running(NamedTuple):
    """What a process was at."""

    library: str
    """Name and version of what reads or runs a graph; empty: Python runs a file."""
    verb: str
    path: str
    """The quoted path of the file; empty: of none."""


@contextmanager
def running(path: str, doing: str = "") -> Iterator[None]:
    """Say that the code of this file runs. ``path``: below the source.

    ``doing``: the library that opens or runs a graph instead, its version, and "opened" or "ran".
    """
    _stack.append(f"{doing} {path}" if doing else path)
    _write(_stack[-1])
    try:
        yield
    finally:
        _stack.pop()
        _write(_stack[-1])


def read(incoming: Path) -> Running:
    """Return what runs; its path is empty if nothing does, or if nothing says so."""
    with suppress(StageError):
        if found := _NOTE.fullmatch(files.read_file(incoming, NAME, MOST_BYTES).decode(errors="replace")):
            return Running(found[1] or "", found[2] or "", quoted(found[3]))
    return Running("", "", "")


def _write(path: str) -> None:
    if target := os.environ.get(VARIABLE):
        with suppress(OSError):
            Path(target).write_text(path, encoding="utf-8", errors="replace")
