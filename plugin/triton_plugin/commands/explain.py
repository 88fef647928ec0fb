"""`kubectl triton explain`."""

import argparse

from triton_plugin.commands.arguments import subject
from triton_plugin.exits import Exit
from triton_plugin.telling.explain import explain
from triton_plugin.terminal import say


def run(options: argparse.Namespace) -> Exit:
    """Print the explanation. Raises CommandError."""
    say(explain(subject(options, options.name)))
    return Exit.OK
