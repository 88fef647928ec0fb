"""The arithmetic that the operator's ranking and a search's steps share."""

from dataclasses import replace
from math import inf, log

import pytest

from triton_converters.contract.measurement_requests import Constraint, Objective
from triton_converters.contract.results import Row, SearchPoint, Tuning
from triton_converters.contract.scoring import METRICS, best_point, distance, order, score, value, violation

ROW = Row(1, 1, 90.0, 0, 0, 0, 0, 0, 0, 0, 500, 800, 900, 1000, 500, True, memory_bytes=2**30)
AT_MOST_2MS = Constraint("P99LatencyMicroseconds", None, 2000)


def test_every_metric_is_a_column_of_a_row() -> None:
    figures = {metric: value(ROW, metric) for metric in METRICS}
    assert figures == {
        "Throughput": 90,
        "P50LatencyMicroseconds": 500,
        "P90LatencyMicroseconds": 800,
        "P95LatencyMicroseconds": 900,
        "P99LatencyMicroseconds": 1000,
        "AverageLatencyMicroseconds": 500,
        "UsedMemoryBytes": 2**30,
    }


def test_a_minimum_is_a_bound_too() -> None:
    missed = violation(ROW, [Constraint("Throughput", 100, None), AT_MOST_2MS])
    assert missed is not None
    assert (missed.constraint.metric, missed.value) == ("Throughput", 90)
    assert distance(ROW, [Constraint("Throughput", 100, None)]) == pytest.approx(0.1)


def test_of_two_bounds_the_one_that_is_missed_counts() -> None:
    both = Constraint("Throughput", 10, 60)
    assert distance(ROW, [both]) == 0.5


def test_without_objectives_throughput_counts() -> None:
    assert score(ROW, []) == log(90)


def test_less_memory_is_better() -> None:
    smaller = replace(ROW, memory_bytes=2**29)
    memory = [Objective("UsedMemoryBytes", 1)]
    assert score(smaller, memory) - score(ROW, memory) == pytest.approx(log(2))


def test_memory_that_was_not_measured_meets_no_bound_and_wins_nothing() -> None:
    unknown = replace(ROW, memory_bytes=0)
    assert score(unknown, [Objective("UsedMemoryBytes", 1)]) == -inf
    at_most = [Constraint("UsedMemoryBytes", None, 2**40)]
    assert distance(unknown, at_most) == inf


def test_a_constraint_comes_before_every_objective() -> None:
    faster = replace(ROW, throughput=9000, p99=2001)
    assert order(ROW, [], [AT_MOST_2MS]) < order(faster, [], [AT_MOST_2MS])
    assert order(faster, [], []) < order(ROW, [], [])


def a_point(instances: int, throughput: float | None) -> SearchPoint:
    row = None if throughput is None else replace(ROW, throughput=throughput)
    return SearchPoint(Tuning(8, instances, True, (), 0, False), row, "" if row else "tritonserver says: no")


def test_the_best_point_is_the_best_of_those_that_were_repeated() -> None:
    points = [a_point(1, 100), a_point(2, 300), a_point(3, 200)]
    assert best_point(points, [], (), ()) == points[1]
    repeats = [a_point(2, 190), a_point(3, 210)]
    assert best_point(points, repeats, (), ()) == repeats[1]


def test_a_point_that_was_refused_in_the_repeat_is_none() -> None:
    points = [a_point(1, 100), a_point(2, 300), a_point(3, 200)]
    repeats = [a_point(2, None), a_point(3, None)]
    assert best_point(points, repeats, (), ()) == points[0]
    assert best_point(points[1:], repeats, (), ()) is None
    assert best_point([], [], (), ()) is None
