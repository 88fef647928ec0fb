"""`kubectl triton validate`."""

import argparse
import sys
from pathlib import Path

from triton_plugin.drafting.validation.files import validate
from triton_plugin.exits import Exit
from triton_plugin.terminal import say


def run(options: argparse.Namespace) -> Exit:
    """Print the faults of each object, or that it has none."""
    files = [*options.files, *options.filename]
    if not files:
        if sys.stdin.isatty():
            say("kubectl triton: name the files to check, or - for standard input", sys.stderr)
            return Exit.USAGE
        # As in `kustomize build | kubectl triton validate`.
        files = [Path("-")]
    return Exit.OK if validate(files, say) else Exit.FAILED
