"""When a sweep ends, and what it says of one replica: on servers of paper, with and without noise."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from triton_converters.contract.measurement_requests import Constraint
from triton_converters.contract.results import Row
from triton_converters.contract.saturation import (
    Ended,
    is_saturated,
    latency_bounds,
    request_rate,
    saturation,
    sustained,
)
from triton_operator.api.performance import ConcurrencyRange

LATENCY = "P99LatencyMicroseconds"
NOISE = 0.015
"""Deviation of a throughput; the windows of a stable row differ by at most 10 %."""


def row(concurrency: int, throughput: float, p99: int = 1000, rate: int = 0, batch: int = 1) -> Row:
    average = p99 // 2
    return Row(
        batch,
        concurrency,
        throughput,
        0,
        0,
        0,
        0,
        average,
        0,
        0,
        average,
        p99,
        p99,
        p99,
        average,
        True,
        request_rate=rate,
    )


def most(p99: int) -> tuple[Constraint, ...]:
    return (Constraint(LATENCY, None, p99),)


def closed(servers: int, service: float, think: float) -> Callable[[int], Row]:
    """An M/M/m queue with a fixed number of clients, as perf_analyzer's are; times in seconds.

    The machine repairman model: the probabilities of n requests at the server follow from the balance of n and n + 1.
    """

    def measured(concurrency: int) -> Row:
        weights = [1.0]
        for n in range(concurrency):
            arriving, leaving = (concurrency - n) / think, min(n + 1, servers) / service
            weights.append(weights[-1] * arriving / leaving)
            if weights[-1] > 1e200:
                weights = [weight * 1e-200 for weight in weights]
        total = sum(weights)
        throughput = sum(weight * min(n, servers) for n, weight in enumerate(weights)) / total / service
        latency = concurrency / throughput - think
        return row(concurrency, throughput, int(latency * 4.6e6))

    return measured


def swept(concurrencies: Sequence[int], measured: Callable[[int], Row], noise: Random | None = None) -> list[Row]:
    """What a sweep that ends at saturation measures."""
    rows: list[Row] = []
    for concurrency in concurrencies:
        found = measured(concurrency)
        blur = noise.lognormvariate(0, NOISE) if noise else 1.0
        rows.append(replace(found, throughput=found.throughput * blur))
        if is_saturated(rows):
            break
    return rows


DOUBLING = ConcurrencyRange(start=1).concurrencies()


def test_without_an_end_each_concurrency_is_twice_the_one_before() -> None:
    assert DOUBLING == (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
    assert ConcurrencyRange(start=3).concurrencies()[-1] == 3072


def test_a_step_without_an_end_gives_sixteen_values() -> None:
    assert ConcurrencyRange(start=1, step=8).concurrencies() == tuple(range(1, 122, 8))
    assert ConcurrencyRange(start=4000, step=90).concurrencies() == (4000, 4090)


def test_a_range_with_an_end_is_whole() -> None:
    assert ConcurrencyRange(start=1, end=4).concurrencies() == (1, 2, 3, 4)
    assert ConcurrencyRange(start=2, end=9, step=3).concurrencies() == (2, 5, 8)


def test_the_sweep_of_a_server_ends_at_its_plateau() -> None:
    rows = swept(DOUBLING, closed(servers=2, service=0.001, think=0.0005))
    assert [each.concurrency for each in rows] == [1, 2, 4, 8, 16]
    found = saturation(rows, ())
    assert found is not None
    assert found.row is not None
    assert (found.ended, found.is_lower_bound, found.row.concurrency) == (Ended.PLATEAU, False, 4)
    assert 0.95 * 2000 < found.row.throughput <= 2000


def test_one_measurement_without_a_gain_is_no_plateau() -> None:
    rows = [row(1, 100), row(2, 200), row(4, 203), row(8, 400)]
    assert not is_saturated(rows[:3])
    assert not is_saturated(rows)


def test_small_steps_are_compared_with_half_the_concurrency() -> None:
    """At concurrency 30 one more can bring at most 3 %, however far the server is from its limit."""
    rows = [row(each, 100.0 * each) for each in range(1, 41)]
    assert not any(is_saturated(rows[:number]) for number in range(1, 41))


def test_a_range_that_never_doubles_tells_nothing() -> None:
    assert not is_saturated([row(each, 100.0) for each in range(100, 116)])


@pytest.mark.parametrize(
    ("bound", "ended", "concurrency"),
    [
        (100_000, Ended.PLATEAU, 8),
        (3000, Ended.CONSTRAINT, 4),
        (900, Ended.CONSTRAINT, None),
    ],
)
def test_a_constraint_on_latency_limits_what_may_be_used(bound: int, ended: Ended, concurrency: int | None) -> None:
    rows = [row(1, 100, 1000), row(2, 200, 1500), row(4, 400, 2500), row(8, 800, 5000), row(16, 810, 10_000)]
    rows.append(row(32, 805, 20_000))
    found = saturation(rows, most(bound))
    assert found is not None
    assert (found.ended, found.row.concurrency if found.row else None) == (ended, concurrency)
    assert not found.is_lower_bound


def test_a_plateau_within_the_constraint_is_no_constraint() -> None:
    rows = [row(1, 100), row(2, 101), row(4, 102), row(8, 102, 50_000)]
    found = saturation(rows, most(10_000))
    assert found is not None
    assert found.ended is Ended.PLATEAU


def test_bounds_on_throughput_and_memory_limit_nothing() -> None:
    constraints = (Constraint("Throughput", 500.0, None), Constraint("UsedMemoryBytes", None, 1.0), *most(10))
    assert latency_bounds(constraints) == most(10)


def test_the_end_of_a_range_is_a_lower_bound() -> None:
    found = saturation([row(each, 100.0 * each) for each in (1, 2, 3, 4)], ())
    assert found is not None
    assert found.row is not None
    assert (found.ended, found.row.concurrency, found.is_lower_bound) == (Ended.RANGE_END, 4, True)


def test_a_plateau_of_the_client_is_a_lower_bound() -> None:
    rows = [replace(row(each, 100.0), client_bound=True) for each in (1, 2, 4)]
    found = saturation(rows, ())
    assert found is not None
    assert (found.ended, found.is_lower_bound) == (Ended.PLATEAU, True)


def test_figures_that_no_server_has_raise_nothing() -> None:
    """A record is whatever a container answered."""
    found = saturation([row(0, -3.0, batch=0), row(-1, -1.0)], ())
    assert found is not None
    assert found.row is not None
    assert found.row.throughput == -1.0


def test_nothing_measured_says_nothing() -> None:
    assert saturation((), ()) is None


def test_an_autoscaler_gets_a_request_rate_below_the_saturation() -> None:
    assert request_rate(row(8, 1000.0), 70) == 700
    assert request_rate(row(8, 1000.0, batch=8), 70) == 87
    assert request_rate(row(1, 0.4), 70) == 1


def test_a_rate_is_sustained_if_the_server_keeps_up_within_the_constraints() -> None:
    rows = [row(0, 100, 500, 100), row(0, 195, 900, 200), row(0, 297, 9000, 300), row(0, 301, 900, 400)]
    assert sustained(rows, ()) == 300
    assert sustained(rows, most(1000)) == 200
    assert sustained([replace(rows[0], client_bound=True)], ()) == 0
    assert sustained([row(4, 100)], ()) == 0


SERVERS = st.builds(
    closed,
    servers=st.integers(1, 64),
    service=st.floats(1e-4, 1.0),
    think=st.floats(1e-5, 0.1),
)
SEEDS = st.integers(0, 2**32)


@settings(max_examples=200, deadline=None)
@given(SERVERS, SEEDS)
def test_every_sweep_ends_and_finds_what_the_server_can_do(measured: Callable[[int], Row], seed: int) -> None:
    rows = swept(DOUBLING[:10], measured, Random(seed))
    found = saturation(rows, ())
    assert found is not None
    assert found.row is not None
    if found.ended is Ended.PLATEAU:
        # A factor of four in concurrency brought less than 5 % twice; noise adds its own.
        assert found.row.throughput > 0.8 * measured(512).throughput
    else:
        assert len(rows) == 10


@settings(max_examples=200, deadline=None)
@given(st.floats(0.5, 1.0), st.floats(1.0, 1e4), SEEDS, st.integers(1, 64), st.integers(1, 8), st.integers(1, 16))
def test_the_end_of_a_range_is_never_called_a_plateau(
    exponent: float, unit: float, seed: int, start: int, step: int, count: int
) -> None:
    """Throughput that still grows by at least 41 % while the concurrency doubles, with noise."""
    rows = swept(
        [start + step * each for each in range(count)],
        lambda each: row(each, unit * each**exponent),
        Random(seed),
    )
    found = saturation(rows, ())
    assert found is not None
    assert (found.ended, found.is_lower_bound, len(rows)) == (Ended.RANGE_END, True, count)


@given(
    st.lists(st.tuples(st.integers(1, 4096), st.floats(0.1, 1e6), st.integers(1, 10**7)), max_size=16),
    st.integers(1, 10**7),
)
def test_any_rows_have_a_saturation_within_the_constraint(figures: list[tuple[int, float, int]], bound: int) -> None:
    rows = [row(*each) for each in figures]
    found = saturation(rows, most(bound))
    assert (found is None) == (not rows)
    if found is not None and found.row is not None:
        assert found.row.p99 <= bound
        assert found.row.throughput * 1.05 >= max(each.throughput for each in rows if each.p99 <= bound)
    elif found is not None:
        assert all(each.p99 > bound for each in rows)
