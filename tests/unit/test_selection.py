"""Which candidate is taken: constraints first, then the objectives; never the order in which they are listed."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triton_converters.result import Row
from triton_operator.api.selection import Constraint, Objective
from triton_operator.selection import Choice, gain, rank


def row(throughput: float, p99: int = 1000, concurrency: int = 1) -> Row:
    return Row(1, concurrency, throughput, 0, 0, 0, 0, 0, 0, 0, p99 // 2, p99, p99, p99, p99 // 2, True)


AT_MOST_2MS = Constraint(metric="P99LatencyMicroseconds", maximum="2000")
rows = st.builds(row, st.floats(0.1, 1e6), st.integers(2, 10**7), st.integers(1, 64))
candidates = st.dictionaries(st.text("abc", min_size=1, max_size=3), st.lists(rows, max_size=5), max_size=6)


def test_the_most_throughput_wins_by_default() -> None:
    choices = rank([("slow", [row(100)]), ("fast", [row(50), row(200, concurrency=4)])], [], [])
    assert [(choice.name, choice.rank) for choice in choices] == [("fast", 1), ("slow", 2)]
    assert choices[0].load == "batch 1, concurrency 4"


def test_a_constraint_comes_before_every_objective() -> None:
    choices = rank([("fast", [row(9000, p99=2001)]), ("slow", [row(1, p99=2000)])], [], [AT_MOST_2MS])
    assert [choice.name for choice in choices] == ["slow", "fast"]
    assert str(choices[1].violation) == "P99LatencyMicroseconds 2001, maximum 2000"


def test_a_candidate_is_judged_by_its_best_row_that_meets_the_constraints() -> None:
    (choice,) = rank([("one", [row(100), row(400, p99=5000, concurrency=8)])], [], [AT_MOST_2MS])
    assert (choice.row.throughput, choice.violation) == (100, None)


def test_who_meets_no_constraint_is_ranked_by_how_far_off() -> None:
    choices = rank([("far", [row(9000, p99=8000)]), ("near", [row(1, p99=2200)])], [], [AT_MOST_2MS])
    assert [choice.name for choice in choices] == ["near", "far"]
    violation = choices[0].violation
    assert violation is not None
    assert violation.distance == pytest.approx(0.1)


def test_weights_decide_between_throughput_and_latency() -> None:
    given_rows = [("twice the throughput", [row(200, p99=3000)]), ("a third of the latency", [row(100, p99=1000)])]
    throughput, latency = Objective(metric="Throughput"), Objective(metric="P99LatencyMicroseconds")
    assert rank(given_rows, [throughput, latency], [])[0].name == "a third of the latency"
    heavier = throughput.model_copy(update={"weight": 3})
    assert rank(given_rows, [heavier, latency], [])[0].name == "twice the throughput"


def test_equal_candidates_keep_the_specs_order() -> None:
    assert [choice.name for choice in rank([("b", [row(1)]), ("a", [row(1)])], [], [])] == ["b", "a"]


def test_a_candidate_without_rows_is_not_ranked() -> None:
    assert [choice.name for choice in rank([("none", []), ("one", [row(1)])], [], [])] == ["one"]


def test_a_row_without_throughput_is_the_worst() -> None:
    assert rank([("dead", [row(0)]), ("alive", [row(0.1)])], [], [])[0].name == "alive"


def test_why_another_was_not_taken_names_the_margin_and_the_load() -> None:
    best, other = rank([("a", [row(120)]), ("b", [row(100)])], [], [])
    assert gain(best, other) == "16.7 % worse than a at its best row (batch 1, concurrency 1)"


@given(candidates, st.randoms(use_true_random=False))
def test_the_order_of_the_candidates_changes_nothing_but_ties(given_rows: dict[str, list[Row]], random: Random) -> None:
    listed = list(given_rows.items())
    shuffled = sorted(listed, key=lambda _: random.random())
    objectives = [Objective(metric="Throughput"), Objective(metric="AverageLatencyMicroseconds", weight=2)]
    one, other = (rank(each, objectives, [AT_MOST_2MS]) for each in (listed, shuffled))

    def standing(choice: Choice) -> tuple[float, float]:
        return (choice.violation.distance if choice.violation else 0.0, -choice.score)

    assert [standing(choice) for choice in one] == [standing(choice) for choice in other]
    assert [standing(choice) for choice in one] == sorted(standing(choice) for choice in one)


@given(candidates)
def test_whoever_is_taken_meets_every_constraint_if_anyone_does(given_rows: dict[str, list[Row]]) -> None:
    choices = rank(list(given_rows.items()), [], [AT_MOST_2MS])
    anyone = any(each.p99 <= 2000 for found in given_rows.values() for each in found)
    assert bool(choices and choices[0].violation is None) == anyone
    if anyone:
        best = max(each.throughput for found in given_rows.values() for each in found if each.p99 <= 2000)
        assert choices[0].row.throughput == best
