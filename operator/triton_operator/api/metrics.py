"""The metrics of a measurement: what a spec calls them, what requests do, and how a figure is told."""

from collections.abc import Mapping
from math import isfinite
from typing import Any

from triton_converters.contract.figures import as_written, telling
from triton_converters.contract.scoring import MEMORY, P99, THROUGHPUT
from triton_operator.api import quantity
from triton_operator.api.duration import in_unit, unit_of

REQUESTED: Mapping[str, str] = {
    "throughput": THROUGHPUT,
    "p50Latency": "P50LatencyMicroseconds",
    "p90Latency": "P90LatencyMicroseconds",
    "p95Latency": "P95LatencyMicroseconds",
    "p99Latency": P99,
    "averageLatency": "AverageLatencyMicroseconds",
    "memory": MEMORY,
}
"""The names in requests by those in a spec. They are parts of keys, and images may be older than the operator."""
NAMES: Mapping[str, str] = {requested: name for name, requested in REQUESTED.items()}
"""The names in a spec by those in requests."""


def limit(metric: str, bound: Any) -> str:
    """Return a bound of a spec in words. ``metric``: its name in requests."""
    return f"at least {as_written(bound)}" if metric == THROUGHPUT else f"at most {bound}"


def figure(metric: str, value: float, bound: Any) -> str:
    """Return a row's figure in the unit of the bound on it, or else in ms or Gi. ``metric``: its name in requests."""
    if not isfinite(value):
        return "was not measured"
    if metric == THROUGHPUT:
        rounded = round(value, 2)
        return as_written(value if bound is not None and value < bound <= rounded else rounded)
    if metric == MEMORY:
        unit = (bound or "1Gi").lstrip("0123456789")
        size = float(quantity.amount(f"1{unit}") or 1)
        (text,) = telling([value / size], lambda each: bound is not None and each * size > quantity.whole(bound))
        return f"{text}{unit}"
    return in_unit(value, unit_of(bound or "1ms"))
