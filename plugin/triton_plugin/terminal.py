"""The console that everything with tables prints to: the plugin's commands, the demo and the examples."""

import os
import sys

from rich.console import Console

WIDTH = 100
"""Characters, unless a terminal or the variable COLUMNS says otherwise: every table of a real run fits."""


def console() -> Console:
    """Return a console for standard output that is wide enough for the tables."""
    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else WIDTH
    return Console(highlight=False, width=width)
