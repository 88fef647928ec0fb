"""The Pareto front of throughput and latency. Pure."""

from collections.abc import Sequence
from typing import NamedTuple


class Point(NamedTuple):
    """A measurement in the plane of the trade-off."""

    latency: float
    """Milliseconds; less is better."""
    throughput: float
    """Inferences per second; more is better."""


def front(points: Sequence[Point]) -> list[Point]:
    """Return the points that no other one beats in both latency and throughput, sorted by latency."""
    best: list[Point] = []
    for point in sorted(set(points), key=lambda each: (each.latency, -each.throughput)):
        if not best or point.throughput > best[-1].throughput:
            best.append(point)
    return best
