"""`kubectl triton push`."""

import argparse
import signal
import sys
from pathlib import Path

from triton_plugin.commands.arguments import cluster
from triton_plugin.drafting.push.cluster import Claims
from triton_plugin.drafting.push.command import Options, Pushed, push
from triton_plugin.exits import Exit
from triton_plugin.reading.cluster import Cluster
from triton_plugin.terminal import console, say


def run(options: argparse.Namespace) -> Exit:
    """Copy the files and print what spec.source takes. Raises CommandError and OSError."""
    result = push_files(cluster(options), options, options.path, options.uri)
    say(f"source:\n  uri: {result.uri}\n  sha256: {result.sha256}")
    return Exit.OK


def push_files(source: Cluster, options: argparse.Namespace, path: Path, uri: str) -> Pushed:
    """Copy a folder or a file to a claim, with what the options say of the claim. Raises CommandError and OSError."""
    # As Ctrl-C does, it ends the push in order, and the pod with it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(Exit.FAILED))
    push_options = Options(options.size, options.storage_class, options.image)
    return push(Claims(source), path, uri, push_options, console(stderr=True))
