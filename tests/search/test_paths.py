"""Both searches: no point twice, none outside the space, an end, and the same way after every interruption."""

from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from served_row import Server, row, space
from test_space import spaces

from triton_converters.contract.measurement_requests import Constraint, Objective
from triton_converters.contract.results import Row, Tuning
from triton_converters.contract.scoring import order, score
from triton_converters.search.exhaustive import sweep
from triton_converters.search.path import SearchPath, Setup, follow
from triton_converters.search.quick import climb
from triton_converters.search.space import Space

LATENCY = (Objective("P99LatencyMicroseconds", 1),)
objectives = st.sampled_from([(), LATENCY, (Objective("Throughput", 2), Objective("AverageLatencyMicroseconds", 1))])
constraints = st.one_of(
    st.just(()), st.integers(100, 20000).map(lambda most: (Constraint("P99LatencyMicroseconds", None, float(most)),))
)
servers = st.builds(
    lambda *figures: partial(row, processors=figures[0], call=figures[1], sample=figures[2]),
    st.integers(1, 8),
    st.floats(50, 5000),
    st.floats(0, 500),
)


class StoppedError(Exception):
    """The Job was killed."""


def walked(path: SearchPath, server: Server) -> list[Setup]:
    follow(path, server)
    return server.asked


@settings(deadline=None, max_examples=60)
@given(spaces, objectives, constraints, servers)
def test_a_path_asks_for_points_of_the_space_and_for_none_twice(
    found: Space, wanted: tuple[Objective, ...], kept: tuple[Constraint, ...], rows: partial[Row]
) -> None:
    inside = {Setup(tuning, load) for tuning in found.tunings for load in found.servable(tuning)}
    climbed = walked(climb(found, wanted, kept), Server(rows))
    assert len(set(climbed)) == len(climbed)
    assert set(climbed) <= inside


@settings(deadline=None, max_examples=20)
@given(spaces)
def test_the_exhaustive_search_measures_the_whole_product(found: Space) -> None:
    swept = walked(sweep(found), Server())
    assert len(set(swept)) == len(swept) == found.size
    assert {point.tuning for point in swept} == {each for each in found.tunings if found.servable(each)}


@settings(deadline=None, max_examples=60)
@given(st.data(), constraints, servers)
def test_a_path_that_was_interrupted_goes_on_as_if_nothing_had_been(
    data: st.DataObject, kept: tuple[Constraint, ...], rows: partial[Row]
) -> None:
    whole = walked(climb(space(), (), kept), Server(rows))
    known: dict[Setup, Row | None] = {}
    measured: list[Setup] = []
    stops = data.draw(st.lists(st.integers(1, max(1, len(whole))), max_size=3))

    def answer(point: Setup, most: float) -> Row | None:
        if point not in known:
            if len(measured) >= most:
                raise StoppedError
            measured.append(point)
            known[point] = rows(point)
        return known[point]

    for most in (*sorted(stops), float("inf")):
        try:
            follow(climb(space(), (), kept), partial(answer, most=most))
        except StoppedError:
            assert len(measured) == most
    assert measured == whole


@settings(deadline=None, max_examples=60)
@given(constraints, servers)
def test_the_climb_never_ends_below_its_base(kept: tuple[Constraint, ...], rows: partial[Row]) -> None:
    server = Server(rows)
    climbed = walked(climb(space(), (), kept), server)
    best = min(order(rows(point), (), kept) for point in climbed)
    base = min(order(rows(point), (), kept) for point in climbed if point.tuning == space().base)
    assert best <= base


@pytest.mark.parametrize("processors", [1, 2, 4])
@pytest.mark.parametrize("budget", [None, 1500.0, 3000.0])
@pytest.mark.parametrize("figures", [(300.0, 40.0), (1500.0, 100.0), (200.0, 200.0)])
def test_the_climb_finds_the_best_of_a_calm_server_with_few_measurements(
    processors: int, budget: float | None, figures: tuple[float, float]
) -> None:
    rows = partial(row, processors=processors, call=figures[0], sample=figures[1])
    kept = (Constraint("P99LatencyMicroseconds", None, budget),) if budget else ()
    climbed = walked(climb(space(), (), kept), Server(rows))
    swept = walked(sweep(space()), Server(rows))
    found, best = (
        min((rows(point) for point in each), key=lambda row: order(row, (), kept)) for each in (climbed, swept)
    )
    assert found.throughput >= 0.95 * best.throughput
    assert (found.p99 <= budget) == (best.p99 <= budget) if budget else True
    assert len(climbed) <= 0.1 * len(swept)


@pytest.mark.parametrize("processors", [1, 2, 4])
@pytest.mark.parametrize("figures", [(300.0, 40.0), (1500.0, 100.0), (200.0, 200.0)])
def test_two_objectives_that_pull_at_the_load_from_both_sides(processors: int, figures: tuple[float, float]) -> None:
    """The base does best at its lightest load, where there is nothing to batch."""
    rows = partial(row, processors=processors, call=figures[0], sample=figures[1])
    wanted = (Objective("Throughput", 2), Objective("P99LatencyMicroseconds", 1))
    climbed, swept = walked(climb(space(), wanted, ()), Server(rows)), walked(sweep(space()), Server(rows))
    found, best = (max(score(rows(point), wanted) for point in each) for each in (climbed, swept))
    assert found >= best - 0.05
    assert len(climbed) <= 0.1 * len(swept)


def test_a_configuration_that_cannot_be_served_is_gone_around() -> None:
    def rows(point: Setup) -> Row | None:
        return None if point.tuning.instances == 2 and point.tuning.dynamic_batching else row(point)

    climbed = walked(climb(space(), (), ()), Server(rows))
    best = min((point for point in climbed if rows(point)), key=lambda point: order(row(point), (), ()))
    assert rows(best) is not None
    assert best.tuning.instances != 2 or not best.tuning.dynamic_batching
    assert row(best).throughput > 1.5 * row(Setup(space().base, space().loads[-1])).throughput


def test_an_exhaustive_search_that_ends_early_leaves_a_survey() -> None:
    first = [point.tuning for point in walked(sweep(space()), Server())[: space().size // 10]]
    assert {each.instances for each in first} >= {1, 5}
    assert {each.max_batch_size for each in first} >= {2, 8}
    assert {each.max_queue_delay_microseconds for each in first} >= {0, 5000}


def test_where_nothing_meets_the_constraint_the_climb_comes_closer() -> None:
    slow = Tuning(8, 1, True, (), 5000, False)
    kept = (Constraint("P99LatencyMicroseconds", None, 200.0),)
    climbed = walked(climb(space(slow), (), kept), Server())
    best = min(climbed, key=lambda point: order(row(point), (), kept))
    assert row(best).p99 < 0.2 * row(Setup(slow, space().loads[0])).p99
