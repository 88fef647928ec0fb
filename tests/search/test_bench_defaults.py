"""`bench.defaults` from its first sweep to its table, on simulated servers."""

import io
from collections.abc import Sequence
from random import Random

import pytest
from queueing_server import QueueingServer
from rich.console import Console

from bench.defaults import GRID, UNTOUCHED, Bench, Compared, around, compare, table, within
from triton_converters.contract.results import Row, Tuning
from triton_converters.contract.saturation import is_saturated
from triton_converters.search.path import Setup
from triton_converters.search.space import LoadLevel


def simulated(server: QueueingServer) -> Bench:
    """What can be asked of a simulated server."""
    random = Random(0)

    def row(tuning: Tuning, concurrency: int) -> Row:
        return server.row(Setup(tuning, LoadLevel(1, concurrency)), random)

    def untouched() -> Sequence[Row]:
        rows: list[Row] = []
        while not is_saturated(rows):
            rows.append(row(UNTOUCHED, 2 ** len(rows)))
        return rows

    return Bench(untouched, lambda tuning, concurrencies: [row(tuning, each) for each in concurrencies])


def test_a_server_that_gains_by_batches_shows_what_the_untouched_object_leaves() -> None:
    found = compare("m", simulated(QueueingServer(2, call=2000, sample=50, client=100)))
    assert len(found.points) == 6 * len(GRID) == 60
    assert found.best.max_batch_size > UNTOUCHED.max_batch_size
    assert len(found.ours) == len(found.theirs) == 5
    assert found.share is not None
    assert 0.1 < found.share < 0.9
    assert all(row is None or row.p99 <= found.budget_microseconds for row in (*found.ours, *found.theirs))


def test_a_server_that_gains_nothing_by_batches_or_instances_leaves_nothing() -> None:
    found = compare("m", simulated(QueueingServer(1, call=1, sample=5000, client=100)))
    assert found.share is not None
    assert found.share == pytest.approx(1.0, abs=0.1)


def a_row(throughput: float, p99: int, concurrency: int = 8) -> Row:
    return Row(1, concurrency, throughput, 0, 0, 0, 0, 0, 0, 0, p99, p99, p99, p99, p99, True)


def compared(ours: tuple[Row | None, ...], theirs: tuple[Row | None, ...]) -> Compared:
    return Compared("m", 5000, UNTOUCHED, 16, (), ours, theirs)


def test_rounds_without_the_best_do_not_count_and_those_without_ours_count_as_nothing() -> None:
    some = a_row(100.0, 10)
    assert compared((some, some, None), (a_row(200.0, 10), None, some)).share == 0.25
    assert compared((some,), (None,)).share is None


def test_the_table_has_a_line_for_each_model() -> None:
    console = Console(width=200, file=io.StringIO())
    console.print(table([compared((a_row(90.0, 10),), (a_row(100.0, 10),)), compared((None,), (None,))]))
    assert isinstance(console.file, io.StringIO)
    first, second = [line for line in console.file.getvalue().splitlines() if "max batch" in line]
    assert "90%" in first
    assert "1 of 1" in first
    assert "0 of 1" in second


def test_only_rows_within_the_budget_count() -> None:
    assert within([a_row(200.0, 11), a_row(100.0, 10)], 10) == a_row(100.0, 10)
    assert within([a_row(200.0, 11)], 10) is None
    assert (around(1), around(16), around(32)) == ((1, 2), (8, 16, 32), (16, 32))


def test_a_grid_that_never_meets_the_budget_is_an_error() -> None:
    bench = Bench(lambda: [a_row(100.0, 10, 1)], lambda *_: [a_row(100.0, 41)])
    with pytest.raises(LookupError, match="no configuration of m meets 40 us"):
        compare("m", bench)
