"""Which candidate is taken: constraints first, then the objectives; never the order in which they are listed."""

from dataclasses import replace
from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from triton_converters.contract.measurement_requests import Constraint
from triton_converters.contract.results import Row
from triton_converters.contract.scoring import violation
from triton_operator.api.selection import Constraints, Objective
from triton_operator.candidates.ranking import (
    Contender,
    RankedCandidate,
    best_row,
    comparison,
    improvement,
    is_within_noise,
    pareto_front,
    rank,
)


def row(throughput: float, p99: int = 1000, concurrency: int = 1, spread: float = 0.0) -> Row:
    average = p99 // 2
    return Row(1, concurrency, throughput, 0, 0, 0, 0, 0, 0, 0, average, p99, p99, p99, average, True, spread)


def contenders(rows: dict[str, list[Row]]) -> list[Contender]:
    return [Contender(name, found) for name, found in rows.items()]


def order(choices: list[RankedCandidate]) -> list[str]:
    return [choice.name for choice in choices]


AT_MOST_2MS = Constraint("P99LatencyMicroseconds", None, 2000)
THROUGHPUT, P99 = Objective(metric="throughput"), Objective(metric="p99Latency")
rows = st.builds(row, st.floats(0.1, 1e6), st.integers(2, 10**7), st.integers(1, 64))
noisy_rows = st.builds(
    row, st.floats(50, 200), st.integers(500, 4000), st.integers(1, 64), st.sampled_from([0.0, 3.0, 9.0, 80.0])
)
names = st.text("abc", min_size=1, max_size=3)
candidates = st.dictionaries(names, st.lists(rows, max_size=5), max_size=6)
noisy = st.dictionaries(
    names, st.tuples(st.lists(noisy_rows, min_size=1, max_size=4), st.integers(0, 2)), min_size=1, max_size=6
)


def test_the_most_throughput_wins_by_default() -> None:
    choices = rank(contenders({"slow": [row(100)], "fast": [row(50), row(200, concurrency=4)]}), [], [])
    assert [(choice.name, choice.rank) for choice in choices] == [("fast", 1), ("slow", 2)]
    assert choices[0].load == "batch 1, concurrency 4"


def test_a_constraint_comes_before_every_objective() -> None:
    choices = rank(contenders({"fast": [row(9000, p99=2001)], "slow": [row(1, p99=2000)]}), [], [AT_MOST_2MS])
    assert order(choices) == ["slow", "fast"]
    assert choices[1].violation is not None
    assert (choices[1].violation.constraint, choices[1].violation.value) == (AT_MOST_2MS, 2001)


def test_a_candidate_is_judged_by_its_best_row_that_meets_the_constraints() -> None:
    (choice,) = rank(contenders({"one": [row(100), row(400, p99=5000, concurrency=8)]}), [], [AT_MOST_2MS])
    assert (choice.row.throughput, choice.violation) == (100, None)


def test_who_meets_no_constraint_is_ranked_by_how_far_off() -> None:
    choices = rank(contenders({"far": [row(9000, p99=8000)], "near": [row(1, p99=2200)]}), [], [AT_MOST_2MS])
    assert order(choices) == ["near", "far"]
    assert choices[0].distance == pytest.approx(0.1)


def test_weights_decide_between_throughput_and_latency() -> None:
    given_rows = {"twice the throughput": [row(200, p99=3000)], "a third of the latency": [row(100, p99=1000)]}
    assert rank(contenders(given_rows), [THROUGHPUT, P99], [])[0].name == "a third of the latency"
    heavier = THROUGHPUT.model_copy(update={"weight": 3})
    assert rank(contenders(given_rows), [heavier, P99], [])[0].name == "twice the throughput"


def test_less_memory_is_better() -> None:
    small, large = replace(row(100), memory_bytes=2**20), replace(row(100), memory_bytes=2**21)
    memory = Objective(metric="memory")
    assert order(rank(contenders({"large": [large], "small": [small]}), [memory], [])) == ["small", "large"]


def test_memory_that_was_not_measured_meets_no_maximum_and_is_the_worst() -> None:
    memory, bound = Objective(metric="memory"), Constraint("UsedMemoryBytes", None, 1e12)
    known, unknown = replace(row(1), memory_bytes=2**30), row(9)
    choices = rank(contenders({"unknown": [unknown], "known": [known]}), [memory], [bound])
    assert order(choices) == ["known", "unknown"]
    assert choices[1].violation is not None
    assert "inf" not in comparison(choices[0], choices[0])


def test_equal_candidates_keep_the_specs_order() -> None:
    assert order(rank(contenders({"b": [row(1)], "a": [row(1)]}), [], [])) == ["b", "a"]


def test_a_candidate_without_rows_is_not_ranked() -> None:
    assert order(rank(contenders({"none": [], "one": [row(1)]}), [], [])) == ["one"]


def test_a_row_without_throughput_is_the_worst() -> None:
    assert rank(contenders({"dead": [row(0)], "alive": [row(0.1)]}), [], [])[0].name == "alive"


def test_within_the_noise_the_simpler_candidate_wins_and_the_other_says_so() -> None:
    tuned = Contender("tuned", [row(104, spread=1.0)], (1,))
    plain = Contender("plain", [row(100, spread=5.0)], (0,))
    choices = rank([tuned, plain, Contender("slow", [row(80)])], [], [])
    assert order(choices) == ["plain", "tuned", "slow"]
    assert comparison(choices[0], choices[1]) == (
        "4.0 % better than plain, which is simpler and as good within the noise (batch 1, concurrency 1)"
    )
    second = replace(choices[0], score=choices[0].score - 0.01)
    assert comparison(choices[0], second) == "as good as plain within the noise of 5.0 % (batch 1, concurrency 1)"


def test_beyond_the_noise_the_better_candidate_wins() -> None:
    tuned = Contender("tuned", [row(106, spread=1.0)], (1,))
    assert rank([tuned, Contender("plain", [row(100, spread=5.0)])], [], [])[0].name == "tuned"


def test_a_restless_measurement_is_not_thereby_as_good_as_the_best() -> None:
    fast, restless = Contender("fast", [row(100)], (1,)), Contender("restless", [row(80, spread=60.0)])
    assert rank([restless, fast], [], [])[0].name == "fast"


def test_noise_does_not_make_up_for_a_broken_constraint() -> None:
    meets = Contender("meets", [row(100, p99=2000, spread=9.0)], (1,))
    breaks = Contender("breaks", [row(100, p99=2001, spread=9.0)])
    assert rank([breaks, meets], [], [AT_MOST_2MS])[0].name == "meets"


def test_the_binding_constraint_is_the_one_with_the_least_room() -> None:
    at_least = Constraint("Throughput", 80, None)
    choice = best_row([row(100, p99=1900)], [], [at_least, AT_MOST_2MS])
    assert choice.binding is not None
    assert choice.binding.metric == AT_MOST_2MS.metric
    assert choice.binding.margin == pytest.approx(0.05)
    broken = best_row([row(100, p99=3000)], [], [at_least, AT_MOST_2MS])
    assert broken.binding is not None
    assert broken.binding.margin == pytest.approx(-0.5)


def test_of_two_bounds_on_a_metric_the_one_with_less_room_binds() -> None:
    between = Constraint("Throughput", 80, 400)
    for throughput, margin in ((100, 0.25), (390, 0.025)):
        binding = best_row([row(throughput)], [], [between]).binding
        assert binding is not None
        assert binding.margin == pytest.approx(margin)


def test_pareto_optimal_is_who_is_beaten_in_not_everything_at_once() -> None:
    given_rows = {"fast": [row(200, p99=3000)], "prompt": [row(100, p99=1000)], "neither": [row(90, p99=1500)]}
    choices = rank(contenders(given_rows), [], [])
    assert {choice.name: choice.pareto for choice in choices} == {"fast": True, "prompt": True, "neither": False}


def test_several_objectives_are_what_pareto_optimal_is_about() -> None:
    average = Objective(metric="averageLatency")
    worse = replace(row(100, p99=100), average=900)
    choices = rank(contenders({"one": [row(100, p99=1000)], "other": [worse]}), [THROUGHPUT, average], [])
    assert {choice.name: choice.pareto for choice in choices} == {"one": True, "other": False}


def test_why_another_was_not_taken_names_the_margin_and_the_load() -> None:
    best, other = rank(contenders({"a": [row(120)], "b": [row(100)]}), [], [])
    assert comparison(best, other) == "16.7 % worse than a at its best measurement (batch 1, concurrency 1)"
    assert improvement(best, other) == pytest.approx(20.0)


def standing(choice: RankedCandidate) -> tuple[float, float]:
    return choice.distance, -choice.score


@given(candidates, st.randoms(use_true_random=False))
def test_the_order_of_the_candidates_changes_nothing_but_ties(given_rows: dict[str, list[Row]], random: Random) -> None:
    listed = contenders(given_rows)
    shuffled = sorted(listed, key=lambda _: random.random())
    objectives = [THROUGHPUT, Objective(metric="averageLatency", weight=2)]
    one, other = (rank(each, objectives, [AT_MOST_2MS]) for each in (listed, shuffled))
    assert [standing(choice) for choice in one] == [standing(choice) for choice in other]
    assert [standing(choice) for choice in one] == sorted(standing(choice) for choice in one)


@given(noisy, st.randoms(use_true_random=False))
def test_with_noise_too_the_order_changes_nothing_but_ties(
    given_rows: dict[str, tuple[list[Row], int]], random: Random
) -> None:
    listed = [Contender(name, found, (complexity,)) for name, (found, complexity) in given_rows.items()]
    shuffled = sorted(listed, key=lambda _: random.random())
    one, other = (rank(each, [], [AT_MOST_2MS]) for each in (listed, shuffled))
    assert [(standing(each), each.complexity) for each in one] == [(standing(each), each.complexity) for each in other]
    assert {(each.name, each.pareto) for each in one} == {(each.name, each.pareto) for each in other}


@example(
    {"quiet": ([row(51, 500)], 0), "best": ([row(52, 500)], 2), "restless": ([row(50, 500, spread=9.0)], 1)},
)
@given(noisy)
def test_nobody_who_was_not_taken_is_both_better_beyond_the_noise_and_allowed(
    given_rows: dict[str, tuple[list[Row], int]],
) -> None:
    listed = [Contender(name, found, (complexity,)) for name, (found, complexity) in given_rows.items()]
    first, *others = rank(listed, [], [AT_MOST_2MS])
    for other in others:
        assert other.distance >= first.distance
        if other.violation is None and other.score > first.score:
            assert first.complexity <= other.complexity
            assert improvement(other, first) <= 100 / (100 - 10) * 10 + 1e-9, "10 % of noise at most"


@given(noisy, st.floats(1.0, 3.0))
def test_whoever_is_taken_is_taken_too_when_it_gets_better(
    given_rows: dict[str, tuple[list[Row], int]], factor: float
) -> None:
    """With one spread for all: with several, a restless row that becomes the best may hide another one's lead."""
    listed = [
        Contender(name, [replace(each, spread=5.0) for each in found], (complexity,))
        for name, (found, complexity) in given_rows.items()
    ]
    taken = rank(listed, [], [AT_MOST_2MS])[0]
    better = [
        replace(each, rows=[replace(found, throughput=found.throughput * factor) for found in each.rows])
        if each.name == taken.name
        else each
        for each in listed
    ]
    assert rank(better, [], [AT_MOST_2MS])[0].name == taken.name


@given(candidates)
def test_whoever_is_taken_meets_every_constraint_if_anyone_does(given_rows: dict[str, list[Row]]) -> None:
    choices = rank(contenders(given_rows), [], [AT_MOST_2MS])
    anyone = any(each.p99 <= 2000 for found in given_rows.values() for each in found)
    assert bool(choices and choices[0].violation is None) == anyone
    if anyone:
        best = max(each.throughput for found in given_rows.values() for each in found if each.p99 <= 2000)
        # Two figures may differ by less than their logarithms can tell.
        assert choices[0].row.throughput == pytest.approx(best, rel=1e-12)


@given(st.lists(rows, max_size=12))
def test_the_front_is_who_nobody_beats(given_rows: list[Row]) -> None:
    metrics = ("Throughput", "P99LatencyMicroseconds")

    def beats(one: Row, other: Row) -> bool:
        as_good = one.throughput >= other.throughput and one.p99 <= other.p99
        return as_good and (one.throughput, one.p99) != (other.throughput, other.p99)

    found = pareto_front(given_rows, metrics)
    assert sorted(found, key=repr) == sorted(
        (each for each in given_rows if not any(beats(other, each) for other in given_rows)), key=repr
    )


@given(noisy_rows, noisy_rows)
def test_who_is_better_is_within_the_noise_of_who_is_worse(one: Row, other: Row) -> None:
    better, worse = sorted((best_row([each], [], []) for each in (one, other)), key=lambda each: -each.score)
    assert is_within_noise(worse, better)
    assert improvement(better, worse) >= 0 >= improvement(worse, better)


def test_a_specs_bounds_are_in_the_units_of_the_rows() -> None:
    given = {"p50Latency": "800us", "p90Latency": "1.5s", "p95Latency": "0.1ms", "p99Latency": "20ms"}
    more = {"averageLatency": "1ms", "throughput": 300, "memory": "1Ki"}
    assert Constraints.model_validate({**given, **more}).as_requests == (
        Constraint("P50LatencyMicroseconds", None, 800),
        Constraint("P90LatencyMicroseconds", None, 1_500_000),
        Constraint("P95LatencyMicroseconds", None, 100),
        Constraint("P99LatencyMicroseconds", None, 20_000),
        Constraint("AverageLatencyMicroseconds", None, 1000),
        Constraint("Throughput", 300, None),
        Constraint("UsedMemoryBytes", None, 1024),
    )
    assert Constraints().as_requests == ()


def test_figures_and_bounds_are_told_in_the_words_and_units_of_the_spec() -> None:
    bounds = {"p99Latency": "2500us", "averageLatency": "0.02s", "throughput": 300, "memory": "8Gi"}
    told = Constraints.model_validate(bounds)
    assert told.words() == [
        "p99Latency at most 2500us",
        "averageLatency at most 0.02s",
        "throughput at least 300",
        "memory at most 8Gi",
    ]
    assert [
        told.figure("P99LatencyMicroseconds", 4000),
        told.figure("AverageLatencyMicroseconds", 21500),
        told.figure("P50LatencyMicroseconds", 21345),
        told.figure("Throughput", 90.125),
        told.figure("UsedMemoryBytes", 9 * 2**30),
    ] == ["p99Latency 4000us", "averageLatency 0.0215s", "p50Latency 21.345ms", "throughput 90.12", "memory 9Gi"]
    slow = replace(row(90, p99=4000), average=100, memory_bytes=0)
    broken = [violation(slow, [each]) for each in told.as_requests]
    assert [told.broken(each) for each in broken if each] == [
        "p99Latency 4000us, at most 2500us",
        "throughput 90, at least 300",
        "memory was not measured, at most 8Gi",
    ]
    assert told.row_words(slow) == "90 inferences/s, p99Latency 4000us"
    assert told.figure("Throughput", 299.996) == "throughput 299.996", "it is less than the bound"
    assert told.figure("UsedMemoryBytes", 8 * 2**30 + 1000) == "memory 8.000001Gi", "it is more than the bound"
    assert Constraints(throughput=1234567.5).words() == ["throughput at least 1234567.5"]
    assert Constraints().row_words(slow) == "90 inferences/s, p99Latency 4ms"
