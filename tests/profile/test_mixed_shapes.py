"""Samples of different shapes: the order in which they are sent, what stands for them, and what the figures promise."""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triton_converters.contract.results import Lengths, Mix, Row, Signature, Tensor
from triton_converters.measuring.mixed_shapes import (
    Group,
    Picked,
    combined,
    describe,
    groups,
    is_mixed,
    sent,
)
from triton_converters.measuring.settings import SETTINGS

SIGNATURE = Signature((Tensor("IDS", "INT64", (-1,)), Tensor("MASK", "INT64", (-1,))), (), 8)
LIMIT = 10**9
LENGTHS = st.lists(st.integers(1, 40), min_size=1, max_size=300)


def samples(lengths: Sequence[int], size: int = 1) -> list[Picked]:
    return [Picked(0, number, ((length,), (length,)), size) for number, length in enumerate(lengths)]


def lengths(found: Sequence[Picked]) -> list[int]:
    return [each.shapes[0][0] for each in found]


@given(st.lists(st.integers(1, 40), min_size=1, max_size=SETTINGS.most_mixed_samples))
def test_each_sample_is_sent_once_so_shapes_keep_their_proportions(given_lengths: list[int]) -> None:
    assert Counter(lengths(sent(samples(given_lengths), LIMIT))) == Counter(given_lengths)


def test_the_order_is_by_chance_never_by_shape_and_always_the_same() -> None:
    found = lengths(sent(samples([3] * 32 + [7] * 32), LIMIT))
    changes = sum(one != other for one, other in pairwise(found))
    # Sorted it would be 1, in turns 63; of 63 neighbours by chance about half differ.
    assert 20 <= changes <= 43
    assert found == lengths(sent(samples([3] * 32 + [7] * 32), LIMIT))


@given(LENGTHS)
def test_of_many_samples_those_are_sent_whose_sizes_are_spread_alike(given_lengths: list[int]) -> None:
    found, asked = sorted(lengths(sent(samples(given_lengths), LIMIT))), sorted(given_lengths)
    assert len(found) == min(SETTINGS.most_mixed_samples, len(asked))
    assert (found[0], found[-1]) == (asked[0], asked[-1])
    for length in set(asked):
        share = sum(each <= length for each in asked) / len(asked)
        assert sum(each <= length for each in found) / len(found) == pytest.approx(
            share, abs=2 / SETTINGS.most_mixed_samples
        )


def test_what_does_not_fit_is_left_out_whatever_its_size() -> None:
    found = sent(samples([1, 2] * 20, size=10), 105)
    assert len(found) == 10
    assert set(lengths(found)) == {1, 2}
    assert len(sent(samples([1, 2], size=10), 1)) == 1


@pytest.mark.parametrize(
    ("given_lengths", "wanted"),
    [
        ([5, 5, 5], [(5, 3)]),
        ([7, 3, 7, 5], [(3, 1), (5, 1), (7, 2)]),
        (list(range(1, 11)), [(5, 5), (9, 4), (10, 1)]),
        ([*[4] * 60, 5, 6, 7, *[8] * 37], [(4, 50), (8, 50)]),
    ],
)
def test_few_shapes_stand_for_themselves_and_of_many_the_next_larger(
    given_lengths: list[int], wanted: list[tuple[int, int]]
) -> None:
    assert groups(samples(given_lengths)) == tuple(Group(((size,), (size,)), count) for size, count in wanted)


@given(LENGTHS)
def test_no_sample_counts_as_smaller_than_it_is(given_lengths: list[int]) -> None:
    found = groups(samples(given_lengths))
    stands_for = [group.shapes[0][0] for group in found for _ in range(group.samples)]
    assert len(found) <= 3
    assert all(length <= stand for length, stand in zip(sorted(given_lengths), stands_for, strict=True))


def test_lengths_are_told_once_for_inputs_that_share_them() -> None:
    found = samples([3, 20, 5, 4, 4, 4, 4, 4, 4, 9])
    assert is_mixed(found)
    assert describe(found, SIGNATURE) == Mix(10, 5, (Lengths("IDS", 0, 3, 4, 9, 20),))
    assert not is_mixed(samples([3, 3]))


def row(throughput: float, latency: int) -> Row:
    """A row whose percentiles are 1, 2, 3 and 4 times ``latency``."""
    tail = (latency, 2 * latency, 3 * latency, 4 * latency, latency)
    return Row(8, 1, throughput, 1, 2, 3, 4, latency - 12, 1, 1, *tail, True, spread=throughput / 100)


def test_clients_whose_requests_take_turns_are_as_fast_as_the_mean_time() -> None:
    found = combined([row(1000, 100), row(250, 400)], [3, 1])
    # Four samples take 3/1000 + 1/250 seconds.
    assert found.throughput == pytest.approx(4 / 0.007)
    assert (found.average, found.compute_infer) == (175, 163)
    assert (found.batch_size, found.concurrency, found.stable, found.spread) == (8, 1, True, 10.0)


def test_a_percentile_of_all_is_never_below_the_true_one() -> None:
    found = combined([row(1000, 100), row(250, 400)], [90, 10])
    # Of the short ones, 95 % are within 300 us: 85.5 % of all. The long ones reach 400 us with half of theirs.
    assert found.p50 == 200
    assert found.p90 == 400
    assert found.p99 == 1600


def test_one_shape_keeps_its_figures() -> None:
    assert combined([row(1000, 100)], [7]) == row(1000, 100)
