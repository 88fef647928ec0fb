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
from triton_converters.search.path import Point, follow
from triton_converters.search.quick import climb
from triton_converters.search.space import Load, Space

SURFACES = Path(__file__).parent / "surfaces"
KINDS = sorted(path.name.partition(".")[0] for path in SURFACES.glob("*.csv.gz"))


@dataclass(frozen=True)
class Surface:
    """A space and all its rows; a configuration that was refused has none."""

    space: Space
    rows: dict[Point, Row]

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


def _point(line: dict[str, str]) -> tuple[Point, Row]:
    row = Row(**{each.name: _value(each.type, line[each.name]) for each in fields(Row) if each.name in line})
    tuning = Tuning(**{each.name: _value(each.type, line[each.name]) for each in fields(Tuning)})
    return Point(tuning, Load(row.batch_size, row.concurrency)), row


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
SHORT = {
    ("pictures", "tight"): (0.85, 0.1),
    ("pictures", "missed"): (0.79, 0.1),
    ("sentences", "tight"): (0.82, 0.1),
    ("sentences", "missed"): (0.90, 0.1),
    ("table", "tight"): (0.95, 0.16),
    ("table", "missed"): (0.71, 0.1),
}
"""Where the aim is not reached, and what is: docs/search.md says why."""


@pytest.mark.parametrize("budget", ["none", "loose", "tight", "missed"])
@pytest.mark.parametrize("kind", KINDS)
def test_quick_against_the_best_of_all_points(kind: str, budget: str) -> None:
    """So much of the best throughput within the budget, with such a share of the measurements; the profile's are free.

    Where no point at all meets the budget, the least p99 is what counts.
    """
    surface = recorded(kind)
    least, share = SHORT.get((kind, budget), AIM)
    most = surface.budget(budget)
    kept = (Constraint("P99LatencyMicroseconds", None, most),) if most else ()
    server = Server(surface.rows.get)
    follow(climb(surface.space, (), kept), server)
    measured = [point for point in server.asked if point.tuning != surface.space.base]
    found = min((surface.rows[point] for point in server.asked), key=lambda row: order(row, (), kept))
    best = min(surface.rows.values(), key=lambda row: order(row, (), kept))
    assert len(measured) <= share * surface.space.size
    if most and best.p99 > most:
        assert best.p99 >= least * found.p99
    else:
        assert most is None or found.p99 <= most
        assert found.throughput >= least * best.throughput
