"""What settles a climb under a bound: instances that grow with the load, and batches that the load can fill."""

from functools import partial
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from served_row import BASE, LOADS, Server, row, space

from triton_converters.contract.measurement_requests import Constraint
from triton_converters.contract.results import Row
from triton_converters.contract.scoring import order
from triton_converters.search import quick
from triton_converters.search.path import Setup, follow
from triton_converters.search.quick import FEWEST, SHARE, climb
from triton_converters.search.space import LoadLevel


def bound(most: float) -> tuple[Constraint, ...]:
    return (Constraint("P99LatencyMicroseconds", None, most),)


def climber(most: float, rows: partial[Row]) -> quick._Climber:
    """A climb that has seen its base with every load."""
    found = quick._Climber(space(), (), bound(most), space().base_place)
    follow(found.survey(), rows)
    return found


@pytest.mark.parametrize("slack", [1.1, 1.5, 2.0, 2.5])
@pytest.mark.parametrize("figures", [(2000.0, 10.0), (3000.0, 50.0)])
def test_instances_and_load_grow_together(slack: float, figures: tuple[float, float]) -> None:
    """One instance takes all requests of a load at once, so another does nothing until the load is heavier too."""
    rows = partial(row, processors=4, call=figures[0], sample=figures[1])
    kept = bound(slack * rows(Setup(BASE, LOADS[0])).p99)
    server, some = Server(rows), space()
    follow(climb(some, (), kept), server)
    found = min(map(rows, server.asked), key=lambda each: order(each, (), kept))
    every = (rows(Setup(tuning, load)) for tuning in some.tunings for load in some.servable(tuning))
    best = min(every, key=lambda each: order(each, (), kept))
    assert found.throughput >= 0.95 * best.throughput
    assert found.p99 <= slack * rows(Setup(BASE, LOADS[0])).p99


@settings(deadline=None, max_examples=60)
@given(st.floats(0.2, 8.0), st.integers(1, 8), st.floats(50, 5000), st.floats(0, 500), st.integers(1, 5))
def test_no_climb_measures_more_than_a_tenth(
    slack: float, processors: int, call: float, sample: float, most: int
) -> None:
    rows = partial(row, processors=processors, call=call, sample=sample)
    some = space(instances=most, loads=LOADS[:: max(1, most // 2)])
    server = Server(rows)
    follow(climb(some, (), bound(slack * rows(Setup(BASE, LOADS[0])).p99)), server)
    assert sum(point.tuning != BASE for point in server.asked) <= max(FEWEST, some.size // SHARE)


@pytest.mark.parametrize(
    ("concurrency", "instances", "expected"),
    [
        (1, 1, {(1, 2)}),
        (1, 4, {(1, 2)}),
        (4, 1, {(1, 4)}),
        (4, 2, {(2, 2), (2, 4)}),
        (4, 5, {(4, 2), (4, 4)}),
        (32, 2, {(2, 8)}),
    ],
)
def test_no_batch_is_larger_than_the_load_and_no_instance_idle(
    concurrency: int, instances: int, expected: set[tuple[int, int]]
) -> None:
    found = climber(1e9, partial(row))
    found.place = (found.place[0], instances - 1, *found.place[2:])
    found.at = LOADS.index(LoadLevel(1, concurrency))
    tunings = [found.space.tuning(place) for place in found._fillings()]
    batched = {(each.instances, each.max_batch_size) for each in tunings if each.dynamic_batching}
    assert batched == expected


def test_batches_without_a_delay_come_first() -> None:
    found = climber(1e9, partial(row))
    found.at = 2
    delays = [found.space.tuning(place).max_queue_delay_microseconds for place in found._fillings()]
    assert all(before <= after for before, after in pairwise(delays))
    plain = [found.space.tuning(place) for place in found._fillings(without_delay=True)]
    assert {each.max_queue_delay_microseconds for each in plain} == {0}


@pytest.mark.parametrize(
    ("most", "expected"), [(1000.0, None), (1800.0, LOADS[2]), (1e9, None)], ids=["far", "little", "met"]
)
def test_a_load_that_misses_by_little_is_looked_at_again(most: float, expected: LoadLevel | None) -> None:
    """Of loads that would be better, the one that comes nearest."""
    rows = partial(row, processors=8, call=300.0, sample=40.0)
    found = climber(most, rows)
    tuning = found.space.tuning((1, 1, *found.place[2:]))
    for load in (LOADS[0], LOADS[2]):
        found.places[Setup(tuning, load)] = (1, 1, *found.place[2:])
        each = replace_p99(rows(Setup(tuning, load)), 900 if load == LOADS[0] else 2000)
        found.seen[Setup(tuning, load)] = quick.Standing(*order(each, (), bound(most)))
    found._center(Setup(tuning, LOADS[0]))
    missing = found._missing_by_little()
    assert (missing.load if missing else None) == expected


def replace_p99(found: Row, p99: int) -> Row:
    return Row(**{**found.__dict__, "p99": p99})
