"""Where one replica is saturated, and which request rate it sustains, by its measurements. Pure.

A sweep knows no constraints: it goes on until its throughput no longer rises. The constraints say afterwards how much
of that throughput may be used, so an edit of a constraint measures nothing again. Standard library only.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from triton_converters.contract.measurement_requests import Constraint
from triton_converters.contract.results import Row
from triton_converters.contract.scoring import violation

PLATEAU_PERCENT = 5
"""Throughput that rises by less than this while the concurrency doubles does not rise."""
PLATEAU_STEPS = 2
"""How many measurements in a row have to show that: one alone may be noise."""
KEPT_UP_PERCENT = 10
"""How far the throughput may be below the rate at which requests arrive. It covers the scatter of Poisson arrivals."""


class Ended(StrEnum):
    """What limits the throughput of one replica."""

    CONSTRAINT = "Constraint"
    """A higher concurrency breaks a latency constraint."""
    PLATEAU = "Plateau"
    """A higher concurrency brings no throughput."""
    RANGE_END = "RangeEnd"
    """Nothing that was measured: a higher concurrency was not tried."""


@dataclass(frozen=True)
class Saturation:
    """The most that one replica does within its latency constraints, and what limits it."""

    row: Row | None
    """The lowest concurrency whose throughput is within PLATEAU_PERCENT of the highest; None: no measurement meets the
    latency constraints."""
    ended: Ended

    @property
    def is_lower_bound(self) -> bool:
        """Whether the replica may do more: a higher concurrency was not tried, or the client was the limit."""
        return self.ended is Ended.RANGE_END or (self.row is not None and self.row.client_bound)


def is_saturated(rows: Sequence[Row]) -> bool:
    """Whether the throughput no longer rises, by the last measurements. ``rows``: one batch size, any order."""
    ordered = sorted(rows, key=lambda row: row.concurrency)
    return len(ordered) > PLATEAU_STEPS and all(
        _is_flat(ordered[: len(ordered) - back]) for back in range(PLATEAU_STEPS)
    )


def saturation(rows: Sequence[Row], constraints: Sequence[Constraint]) -> Saturation | None:
    """Return the saturation of a sweep of concurrencies at one batch size; None if there are no rows."""
    if not rows:
        return None
    bounds = latency_bounds(constraints)
    allowed = [row for row in rows if violation(row, bounds) is None]
    last = max(rows, key=lambda row: row.concurrency)
    if violation(last, bounds) is None:
        ended = Ended.PLATEAU if is_saturated(rows) else Ended.RANGE_END
    else:
        ended = Ended.PLATEAU if is_saturated(allowed) else Ended.CONSTRAINT
    return Saturation(_knee(allowed) if allowed else None, ended)


def request_rate(row: Row, percent: int) -> int:
    """Return a share of a row's throughput in whole requests per second, at least 1."""
    return max(1, int(row.throughput * percent / (100 * row.batch_size)))


def sustained(rows: Sequence[Row], constraints: Sequence[Constraint]) -> int:
    """Return the highest request rate that the server kept up with within the latency constraints; 0: none."""
    bounds = latency_bounds(constraints)
    return max((row.request_rate for row in rows if _kept_up(row) and violation(row, bounds) is None), default=0)


def latency_bounds(constraints: Sequence[Constraint]) -> tuple[Constraint, ...]:
    """Return the constraints that more load may break by waiting: those on latency."""
    return tuple(each for each in constraints if each.metric.endswith("LatencyMicroseconds"))


def _is_flat(rows: Sequence[Row]) -> bool:
    """Whether the highest throughput is not above that at half of the last concurrency. ``rows``: by concurrency."""
    before = [row.throughput for row in rows if 2 * row.concurrency <= rows[-1].concurrency]
    return bool(before) and max(row.throughput for row in rows) < _raised(max(before))


def _knee(rows: Sequence[Row]) -> Row:
    highest = max(row.throughput for row in rows)
    near = (row for row in rows if row.throughput == highest or _raised(row.throughput) >= highest)
    return min(near, key=lambda row: row.concurrency)


def _raised(throughput: float) -> float:
    return throughput * (100 + PLATEAU_PERCENT) / 100


def _kept_up(row: Row) -> bool:
    wanted = row.request_rate * row.batch_size * (100 - KEPT_UP_PERCENT) / 100
    return row.request_rate > 0 and not row.client_bound and row.throughput >= wanted
