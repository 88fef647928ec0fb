"""The terminal: the console for tables, which the demo and the examples use too, and the way of all other words."""

import os
import sys
from typing import TextIO

from rich.console import Console

from triton_converters.contract.text import printable

WIDTH = 100
"""Characters, unless a terminal or the variable COLUMNS says otherwise: every table of a real run fits."""


def console(stderr: bool = False) -> Console:
    """Return a console for standard output, or standard error, that is wide enough for the tables."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() or "COLUMNS" in os.environ else WIDTH
    return Console(highlight=False, width=width, stderr=stderr)


def say(text: str, stream: TextIO | None = None) -> None:
    """Print text that may quote a file, a path or a cluster, without what a terminal obeys; by default to stdout."""
    print(printable(text, "\N{REPLACEMENT CHARACTER}"), file=stream)
