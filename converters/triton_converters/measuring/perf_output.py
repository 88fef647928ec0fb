"""What perf_analyzer 2.60 prints about one point, and its CSV file. Pure."""

import csv
import io
import re
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from triton_converters.contract.results import Row
from triton_converters.measuring.perf_analyzer import Point
from triton_converters.measuring.settings import SETTINGS

_PASS = re.compile(r"^\s*Pass \[\d+\] throughput: ([0-9.e+]+) infer/sec", re.MULTILINE)
_OVERHEAD = re.compile(r"^\s*Avg client overhead: ([0-9.]+)%", re.MULTILINE)
_DELAYED = re.compile(r"([0-9.]+)% of the requests were delayed")
_UNSTABLE = ("Failed to obtain stable measurement", "No valid requests recorded")


def requests_per_second(output: str, batch_size: int) -> float:
    """Return the rate of the last window in the output of ``-v``; 0.0 if there is none."""
    windows = _PASS.findall(output)
    return float(windows[-1]) / batch_size if windows else 0.0


def spread(output: str) -> float:
    """Return how far the merged windows differ: (largest - smallest) / mean throughput, in per cent."""
    merged = [float(window) for window in _PASS.findall(output)[-SETTINGS.stable_windows :]]
    mean = sum(merged) / len(merged) if merged else 0.0
    return 100 * (max(merged) - min(merged)) / mean if mean else 0.0


def is_client_bound(output: str) -> bool:
    """Whether the client itself was the limit, from the output of ``-v``: it was busy, or sent its requests late."""
    overheads, delayed = _OVERHEAD.findall(output), _DELAYED.findall(output)
    busy = bool(overheads) and float(overheads[-1]) > SETTINGS.busy_client_percent
    return busy or (bool(delayed) and float(delayed[-1]) > SETTINGS.delayed_percent)


def is_reconnecting(output: str) -> bool:
    """Whether perf_analyzer ended because the server renewed its connection.

    gRPC calls that no error (code 0). A large request that is being sent may see a closed connection instead.
    """
    return "GOAWAY received; Error code: 0;" in output or "Connection reset by peer" in output


def is_unstable(output: str) -> bool:
    """Whether perf_analyzer gave up because no window was stable or had a request in it."""
    return any(phrase in output for phrase in _UNSTABLE)


def last_lines(output: str) -> str:
    """Return the end of the output on one line."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return " | ".join(lines[-SETTINGS.last_lines :])[-600:] or "it printed nothing"


class ReportError(ValueError):
    """The CSV has no row, or not the requested row."""


_COLUMNS = {
    "client_send": "Client Send",
    "network": "Network+Server Send/Recv",
    "queue": "Server Queue",
    "compute_input": "Server Compute Input",
    "compute_infer": "Server Compute Infer",
    "compute_output": "Server Compute Output",
    "client_receive": "Client Recv",
    "p50": "p50 latency",
    "p90": "p90 latency",
    "p95": "p95 latency",
    "p99": "p99 latency",
    "average": "Avg latency",
}
"""The verbose CSV's columns by Row's fields, all in microseconds."""


def parse_report(text: str, point: Point, stable: bool) -> Row:
    """Return the only row of a verbose CSV; raises ReportError."""
    try:
        lines: Sequence[Mapping[str, str]] = list(csv.DictReader(io.StringIO(text)))
    except csv.Error as error:
        raise ReportError(f"it is not a CSV file: {error}") from error
    if len(lines) != 1:
        raise ReportError(f"it has {len(lines)} rows instead of one")
    line = lines[0]
    try:
        load = int(line["Request Rate" if point.rate else "Concurrency"])
        throughput = float(line["Inferences/Second"])
        microseconds: dict[str, Any] = {field: int(line[column]) for field, column in _COLUMNS.items()}
    except (KeyError, TypeError, ValueError) as error:
        raise ReportError(f"it is not a report of perf_analyzer --verbose-csv: {error!r}") from error
    if load != (point.rate or point.concurrency) or not isfinite(throughput) or throughput <= 0:
        raise ReportError(f"it has load {load} with {throughput} inferences/s, which is not the requested point")
    return Row(
        batch_size=point.batch_size,
        concurrency=point.concurrency,
        request_rate=point.rate,
        # perf_analyzer counts what it batches itself.
        throughput=throughput * point.batch_size / point.client_batch_size,
        stable=stable,
        **microseconds,
    )
