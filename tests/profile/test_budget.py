"""How far a sweep goes that nobody asked for: what it needs, then what saturation and the time allow."""

from collections.abc import Sequence
from dataclasses import replace
from math import inf
from pathlib import Path

import pytest
from test_perf_analyzer import COUNT, TARGET
from test_sweep import Saturating, Tool, value

from triton_converters.contract.failure import StageError
from triton_converters.contract.measurement_requests import Sweep
from triton_converters.contract.results import Row
from triton_converters.measuring.budget import Budget, next_point, total_seconds
from triton_converters.measuring.pace import Pace
from triton_converters.measuring.perf_analyzer import first_run
from triton_converters.measuring.sweep import Invocation, Plan, measure, points
from triton_plugin.reading.job_log import JobLog, sweeps

WANTED = points("online", Sweep((1,), (1, 2, 4, 8, 16, 32, 64, 128), False))
RISING = (100, 200, 400, 800, 1600, 3200, 6400)
"""Throughputs of a server that is not saturated."""
DEFAULT = Budget(20, 3, until_saturated=True)


def rows(throughputs: Sequence[int]) -> list[Row]:
    """Rows of the first points."""
    figures = (10, 20, 30, 1, 40, 1, 10, 500, 998, 999, 1000, 500)
    return [
        Row(1, point.concurrency, throughput, *figures, True)
        for point, throughput in zip(WANTED, throughputs, strict=False)
    ]


@pytest.mark.parametrize(
    ("throughputs", "spent", "expected"),
    [
        ((), 0, 1),
        ((100,), 4, 2),
        # A point takes 2 s, and as much is left.
        (RISING[:5], 18, 32),
        (RISING[:5], 18.1, None),
        # Three are measured whatever the time.
        (RISING[:2], 600, 4),
        (RISING[:3], 600, None),
        ((100, 200, 400, 400, 400), 5, None),
        ((100, 200, 400, 400), 5, 16),
        ((100, 100, 100), 5, None),
    ],
)
def test_the_next_point(throughputs: Sequence[int], spent: float, expected: int | None) -> None:
    point = next_point(WANTED, rows(throughputs), DEFAULT, Pace(spent, spent), lambda _: 2)
    assert (point.concurrency if point else None) == expected


def test_time_ends_no_sweep_that_was_asked_for() -> None:
    spent = Pace(10, 1000)
    ended = [next_point(WANTED, rows(RISING[:number]), Budget(), spent, lambda _: 2) for number in range(8)]
    assert [point.concurrency for point in ended if point] == [1, 2, 4, 8, 16, 32, 64, 128]
    assert next_point(WANTED[:7], rows(RISING), Budget(), spent, lambda _: 2) is None


def test_the_pace_of_a_busy_node_counts() -> None:
    """A point of 2 s takes 4 s there."""
    assert next_point(WANTED, rows(RISING[:4]), DEFAULT, Pace(8, 16), lambda _: 2) == WANTED[4]
    assert next_point(WANTED, rows(RISING[:4]), DEFAULT, Pace(8, 16), lambda _: 2.1) is None


@pytest.mark.parametrize(
    ("least", "request_seconds", "expected"),
    [(0, 0.001, inf), (20, 0.0, 20), (20, 0.0099, 20), (20, 0.01, 30), (20, 0.03, 90), (20, 0.06, 180), (20, 50, 180)],
)
def test_a_slow_model_has_more_time_but_never_much(least: int, request_seconds: float, expected: float) -> None:
    assert total_seconds(least, request_seconds) == expected


@pytest.mark.parametrize(
    ("batch_size", "samples", "sample_seconds", "expected"),
    [
        (1, 1, 0.001, ("time_windows", "300")),
        (1, 1, 0.0099, ("time_windows", "300")),
        (1, 1, 0.01, ("count_windows", "50")),
        (8, 1, 0.001, ("time_windows", "300")),
        (8, 1, 0.002, ("count_windows", "50")),
        # How long a request takes is not known.
        (1, 1, 0.0, ("count_windows", "50")),
        # All shapes fit into a window, or do not.
        (1, 100, 0.003, ("time_windows", "300")),
        (1, 100, 0.004, ("count_windows", "100")),
    ],
)
def test_fast_requests_have_short_windows(
    batch_size: int, samples: int, sample_seconds: float, expected: tuple[str, str]
) -> None:
    (point,) = points("offline", Sweep((batch_size,), (1,), False))
    measurement = replace(COUNT, request_count=50, fast_milliseconds=300)
    target = replace(TARGET, samples=samples, sample_seconds=sample_seconds)
    flags = first_run(measurement, target, point).windows.arguments
    assert (flags[1], flags[3]) == expected
    assert first_run(replace(measurement, fast_milliseconds=0), target, point).windows.by_count


class Short(Saturating):
    """Refuses more than so many requests at a time, as a short queue does."""

    def __init__(self, most: int) -> None:
        super().__init__(1)
        self.most = most

    def __call__(self, argv: Sequence[str], directory: Path, seconds: float) -> Invocation:
        if int(value(argv, "--concurrency-range")) > self.most:
            return Invocation(99, "Request for model 'digits' rejected: Exceeds maximum queue size")
        return super().__call__(argv, directory, seconds)


def test_a_load_beyond_the_model_ends_a_sweep_that_nobody_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = Plan(TARGET, COUNT, tmp_path, budget=replace(DEFAULT, seconds=1000))
    assert [row.concurrency for row in measure(plan, WANTED, Short(4)).rows] == [1, 2, 4]
    log = capsys.readouterr().out
    assert "online 4 of at most 8: batch 1, concurrency 8: it is left out, as 3 are enough: perf_analyzer" in log
    assert "Exceeds maximum queue size" in log
    assert "no longer rises" not in log


def test_a_load_beyond_the_model_ends_a_sweep_to_saturation_without_a_time_too(tmp_path: Path) -> None:
    plan = Plan(TARGET, COUNT, tmp_path, budget=replace(DEFAULT, seconds=inf))
    assert [row.concurrency for row in measure(plan, WANTED, Short(4)).rows] == [1, 2, 4]


def test_a_load_that_is_asked_for_or_needed_is_not_left_out(tmp_path: Path) -> None:
    for budget, most in ((Budget(), 4), (replace(DEFAULT, seconds=1000), 2)):
        with pytest.raises(StageError, match="Exceeds maximum queue size"):
            measure(Plan(TARGET, COUNT, tmp_path, budget=budget), WANTED, Short(most))


def test_a_server_that_is_gone_does_not_end_a_sweep_well(tmp_path: Path) -> None:
    class GoneError(Exception):
        pass

    def look() -> None:
        raise GoneError

    with pytest.raises(GoneError):
        measure(Plan(TARGET, COUNT, tmp_path, budget=replace(DEFAULT, seconds=1000), look=look), WANTED, Short(4))


def test_a_spent_time_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = Plan(TARGET, COUNT, tmp_path, budget=replace(DEFAULT, seconds=1, needed=1), pace=Pace(1, 1))
    assert len(measure(plan, WANTED, Saturating(1)).rows) == 1
    assert "the time of all sweeps is spent; 7 points are not measured" in capsys.readouterr().out


def test_the_plugin_reads_off_the_log_what_is_left(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    measure(Plan(TARGET, COUNT, tmp_path, budget=replace(DEFAULT, seconds=1000)), WANTED[:4], Tool(1))
    *_, before_last, last, _ = capsys.readouterr().out.splitlines()
    found = [
        sweeps(JobLog("p", "profile", "onnx-fp32", text)) for text in (f"{before_last}\n", f"{before_last}\n{last}\n")
    ]
    assert [each and each.last for each in found] == [2, 3]
    assert [each and each.most for each in found] == [4, 4]
    assert [each is not None and 990 <= each.left <= 1020 for each in found] == [True, True], (before_last, last)


@pytest.mark.parametrize("tool", [Saturating(1), Short(4)])
def test_the_plugin_reads_off_the_log_that_a_sweep_ended(
    tool: Tool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    measure(Plan(TARGET, COUNT, tmp_path, budget=replace(DEFAULT, seconds=1000)), WANTED, tool)
    found = sweeps(JobLog("p", "profile", "onnx-fp32", capsys.readouterr().out))
    assert found is not None
    assert (len(found.took) >= 3, found.left) == (True, 0.0)
