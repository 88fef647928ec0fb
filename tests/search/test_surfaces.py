"""Quick on response surfaces that were recorded from real servers, against the best of all their points.

`python3 -m bench.search.surface KIND` recorded them: every point of a space, one after the other, on a quiet machine.
"""

import csv
import gzip
import json
from dataclasses import dataclass, fields
from pathlib import Path

import pytest
from served_row import Server

from triton_converters.request import Constraint
from triton_converters.result import Row, Tuning
from triton_converters.scoring import order
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

    def budgets(self) -> list[float | None]:
        """No constraint; one that the base meets at its lightest load alone; one that it misses everywhere."""
        base = min(row.p99 for point, row in self.rows.items() if point.tuning == self.space.base)
        return [None, 1.1 * base, 0.7 * base]


@pytest.fixture(params=KINDS)
def surface(request: pytest.FixtureRequest) -> Surface:
    about = json.loads((SURFACES / f"{request.param}.json").read_text())
    text = gzip.decompress((SURFACES / f"{request.param}.csv.gz").read_bytes()).decode()
    rows = dict(_point(line) for line in csv.DictReader(text.splitlines()))
    base = next(iter(rows)).tuning
    loads = tuple(sorted({point.load for point in rows}))
    return Surface(Space(base, about["maximumInstances"], False, loads), rows)


def _point(line: dict[str, str]) -> tuple[Point, Row]:
    row = Row(**{each.name: _value(each.type, line[each.name]) for each in fields(Row)})
    tuning = Tuning(**{each.name: _value(each.type, line[each.name]) for each in fields(Tuning)})
    return Point(tuning, Load(row.batch_size, row.concurrency)), row


def _value(kind: object, text: str) -> object:
    if kind is bool:
        return text == "True"
    return tuple(map(int, text.split())) if kind not in (int, float) else kind(text)  # type: ignore[operator]


def test_a_surface_holds_the_whole_product(surface: Surface) -> None:
    server = Server(surface.rows.get)
    follow(sweep(surface.space), server)
    assert set(surface.rows) <= set(server.asked)
    assert len(surface.rows) >= 0.98 * surface.space.size
    assert sum(row.stable for row in surface.rows.values()) > 0.5 * len(surface.rows)


@pytest.mark.parametrize("which", [0, 1, 2], ids=["free", "budget the base meets", "budget the base misses"])
def test_quick_comes_within_a_twentieth_of_the_best_with_a_tenth_of_the_measurements(
    surface: Surface, which: int
) -> None:
    budget = surface.budgets()[which]
    kept = (Constraint("P99LatencyMicroseconds", None, budget),) if budget else ()
    server = Server(surface.rows.get)
    follow(climb(surface.space, (), kept), server)
    measured = [point for point in server.asked if point.tuning != surface.space.base]
    found = min((surface.rows[point] for point in server.asked), key=lambda row: order(row, (), kept))
    best = min(surface.rows.values(), key=lambda row: order(row, (), kept))
    assert found.throughput >= 0.95 * best.throughput
    assert (budget is None) or found.p99 <= max(budget, best.p99)
    assert len(measured) <= 0.1 * surface.space.size
