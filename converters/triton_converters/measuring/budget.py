"""How far a sweep goes whose concurrencies nobody asked for: to the limit of the server, within a time. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf

from triton_converters.contract.results import Row
from triton_converters.contract.saturation import PLATEAU_STEPS, is_saturated
from triton_converters.measuring.pace import Pace
from triton_converters.measuring.perf_analyzer import Point
from triton_converters.measuring.settings import SETTINGS

FEWEST_POINTS = PLATEAU_STEPS + 1
"""Concurrencies that are measured whatever the time: fewer cannot show that the throughput no longer rises."""


@dataclass(frozen=True)
class Budget:
    """The points that a sweep needs, and the time for those beyond."""

    seconds: float = inf
    """Time of all sweeps of a server together; infinite: every point is measured that is asked for."""
    needed: int = 0
    """How many of this sweep's points are measured even if the time is spent."""
    until_saturated: bool = False
    """Whether the sweep ends once the throughput no longer rises."""

    @property
    def is_bounded(self) -> bool:
        """Whether time ends the sweep."""
        return self.seconds < inf

    def left(self, pace: Pace) -> float:
        """Return the seconds that are not spent, 0.0 or more."""
        return max(0.0, self.seconds - pace.actual_seconds)


def total_seconds(least: int, request_seconds: float) -> float:
    """Return the time of all sweeps of a server: ``least``, or more if a request takes ``fast_seconds`` or longer.

    ``least``: 0 for no bound. ``request_seconds``: what one request takes alone; 0.0 if that is not known.
    """
    if not least:
        return inf
    if request_seconds < SETTINGS.fast_seconds:
        return least
    return max(least, min(SETTINGS.most_sweeps_seconds, SETTINGS.slow_requests * request_seconds))


def next_point(
    wanted: Sequence[Point], rows: Sequence[Row], budget: Budget, pace: Pace, least_seconds: Callable[[Point], float]
) -> Point | None:
    """Return the point to measure next; None: the sweep ends.

    ``wanted``: all points in their order. ``rows``: those of the points so far. ``pace``: what points of all sweeps of
    the server took. ``least_seconds``: returns what a point takes if it settles at once.
    """
    if len(rows) == len(wanted) or (budget.until_saturated and is_saturated(rows)):
        return None
    point = wanted[len(rows)]
    if len(rows) < budget.needed or not budget.is_bounded:
        return point
    return point if pace.seconds(least_seconds(point)) <= budget.left(pace) else None
