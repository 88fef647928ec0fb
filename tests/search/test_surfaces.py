"""Quick on response surfaces that were recorded from real servers, against the best of all their points.

`python3 -m bench.search.surface KIND` recorded them: every point of a space, one after the other, on a quiet machine.
"""

import csv
import gzip
import json
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path

import pytest
from served_row import Server

from triton_converters.contract.measurement_requests import Constraint
from triton_converters.contract.results import Row, Tuning
from triton_converters.contract.scoring import order
from triton_converters.search.exhaustive import sweep
from triton_converters.search.path import Setup, follow
from triton_converters.search.quick import climb
from triton_converters.search.space import LoadLevel, Space

SURFACES = Path(__file__).parent / "surfaces"
KINDS = sorted(path.name.partition(".")[0] for path in SURFACES.glob("*.csv.gz"))


@dataclass(frozen=True)
class Surface:
    """A space and all its rows; a configuration that was refused has none."""

    space: Space
    rows: dict[Setup, Row]

    def budget(self, name: str) -> float | None:
        """Microseconds of p99. ``loose`` and ``tight``: the base meets them at its lightest load alone."""
        base = [row.p99 for point, row in self.rows.items() if point.tuning == self.space.base]
        least, most = min(base), max(base)
        return {"none": None, "loose": (least * most) ** 0.5, "tight": 1.1 * least, "missed": 0.7 * least}[name]


@cache
def recorded(kind: str) -> Surface:
    about = json.loads((SURFACES / f"{kind}.json").read_text())
    text = gzip.decompress((SURFACES / f"{kind}.csv.gz").read_bytes()).decode()
    rows = dict(_point(line) for line in csv.DictReader(text.splitlines()))
    base = next(iter(rows)).tuning
    loads = tuple(sorted({point.load for point in rows}))
    return Surface(Space(base, about["maximumInstances"], False, loads), rows)


def _point(line: dict[str, str]) -> tuple[Setup, Row]:
    row = Row(**{each.name: _value(each.type, line[each.name]) for each in fields(Row) if each.name in line})
    tuning = Tuning(**{each.name: _value(each.type, line[each.name]) for each in fields(Tuning)})
    return Setup(tuning, LoadLevel(row.batch_size, row.concurrency)), row


def _value(kind: object, text: str) -> object:
    if kind is bool:
        return text == "True"
    return tuple(map(int, text.split())) if kind not in (int, float) else kind(text)


@pytest.mark.parametrize("kind", KINDS)
def test_a_surface_holds_the_whole_product(kind: str) -> None:
    surface, server = recorded(kind), Server(recorded(kind).rows.get)
    follow(sweep(surface.space), server)
    assert set(surface.rows) <= set(server.asked)
    assert len(surface.rows) >= 0.98 * surface.space.size
    assert sum(row.stable for row in surface.rows.values()) > 0.5 * len(surface.rows)


AIM = (0.95, 0.1)
"""So much of the best throughput, with such a share of the measurements."""

FACTORS = (0.5, 0.6, 0.8, 0.9, 1.0, 1.2, 1.35, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0, 6.0)
"""Budgets that nobody chose for a surface, as shares of the base's least p99."""


def walked(surface: Surface, most: float | None) -> tuple[int, float, float]:
    """The measurements, their share of the space, and the share of the best within a budget in microseconds of p99.

    The profile's measurements are free. Where no point at all meets the budget, the least p99 is what counts.
    """
    kept = (Constraint("P99LatencyMicroseconds", None, most),) if most else ()
    server = Server(surface.rows.get)
    follow(climb(surface.space, (), kept), server)
    count = sum(point.tuning != surface.space.base for point in server.asked)
    measured = [surface.rows[point] for point in server.asked if point in surface.rows]
    found, best = (min(rows, key=lambda row: order(row, (), kept)) for rows in (measured, surface.rows.values()))
    reached = found.throughput / best.throughput
    if most and found.p99 > most:
        reached = best.p99 / found.p99 if best.p99 > most else 0.0
    return count, count / surface.space.size, reached


@pytest.mark.parametrize("budget", ["none", "loose", "tight", "missed"])
@pytest.mark.parametrize("kind", KINDS)
def test_quick_against_the_best_of_all_points(kind: str, budget: str) -> None:
    least, most = AIM
    _, share, reached = walked(recorded(kind), recorded(kind).budget(budget))
    assert share <= most
    assert reached >= least


def test_quick_within_budgets_that_nobody_chose() -> None:
    """Most reach the aim, and none is far from it: what settles the climb is not fitted to four budgets."""
    found = [
        walked(recorded(kind), factor * (recorded(kind).budget("tight") or 0) / 1.1)
        for kind in KINDS
        for factor in FACTORS
    ]
    assert all(share <= 0.1 for _, share, _ in found)
    assert sum(reached >= 0.95 for _, _, reached in found) >= 0.85 * len(found)
    assert min(reached for _, _, reached in found) >= 0.7
