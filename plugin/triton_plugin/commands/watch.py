"""`kubectl triton watch`."""

import argparse
import re
import time

from triton_operator.api.duration import PATTERN, seconds
from triton_plugin.arguments import add_name, cluster
from triton_plugin.exits import Exit
from triton_plugin.source import Cluster
from triton_plugin.terminal import console
from triton_plugin.watch import watch


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the object, and how long to wait for it."""
    add_name(parser)
    add_timeout(parser)


def add_timeout(parser: argparse.ArgumentParser) -> None:
    """Add the longest time to watch."""
    parser.add_argument(
        "--timeout",
        type=_time,
        metavar="TIME",
        help="longest time to watch, such as 90s, 30m or 2h; default: without end",
    )


def _time(text: str) -> float:
    """Return a duration in seconds, for argparse."""
    if re.fullmatch(PATTERN, text) is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number and a unit (us, ms, s, m or h), such as 90s or 30m")
    return seconds(text)


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
