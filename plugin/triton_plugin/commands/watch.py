"""`kubectl triton watch`."""

import argparse
import time

from triton_plugin.arguments import cluster
from triton_plugin.exits import Exit
from triton_plugin.source import Cluster
from triton_plugin.terminal import console
from triton_plugin.watch import watch


def run(options: argparse.Namespace) -> Exit:
    """Show progress until there is an outcome. Raises CommandError."""
    return watch_object(cluster(options), options.name, options.timeout)


def watch_object(source: Cluster, name: str, timeout: float | None) -> Exit:
    """Show an object's progress. ``timeout``: seconds, None: without end. Raises CommandError."""
    return watch(
        lambda: source.triton_deployment(name),
        lambda: source.measuring(name),
        console(),
        time.monotonic,
        time.sleep,
        timeout,
        lambda: source.results(name),
    )
