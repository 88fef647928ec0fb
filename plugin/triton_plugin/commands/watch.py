"""`kubectl triton watch`."""

import argparse
import time

from triton_plugin.commands.arguments import cluster
from triton_plugin.exits import Exit
from triton_plugin.reading.cluster import Cluster
from triton_plugin.telling.watch import Reads, watch
from triton_plugin.terminal import console


def run(options: argparse.Namespace) -> Exit:
    """Show progress until there is an outcome. Raises CommandError."""
    return watch_object(cluster(options), options.name, options.timeout)


def watch_object(source: Cluster, name: str, timeout: float | None) -> Exit:
    """Show an object's progress. ``timeout``: seconds, None: without end. Raises CommandError."""
    reads = Reads(
        lambda: source.triton_deployment(name),
        lambda: source.measuring(name),
        lambda: source.results(name),
        source.options,
    )
    return watch(reads, console(), time.monotonic, time.sleep, timeout)
