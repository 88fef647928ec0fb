"""The verdict of a soak, from counters alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import Counters
from triton_operator.api.serving import Soak
from triton_operator.rollout.traffic import Traffic, total, traffic_between
from triton_operator.rollout.verdicts import judge

ASKED = Soak()
LEAST = ASKED.min_requests
BEFORE = Traffic(10_000, 0, 10_000 * 2000)
"""The previous revision: 2 ms."""
counts = st.integers(0, 10**6)
traffics = st.builds(Traffic, counts, counts, st.integers(0, 10**12))
pods = st.dictionaries(st.text("abc", min_size=1, max_size=3), traffics, max_size=4)


def pod(requests: int, failed: int = 0, microseconds: int = 2000) -> Traffic:
    return Traffic(requests - failed, failed, (requests - failed) * microseconds)


@pytest.mark.parametrize(
    ("active", "reason"),
    [
        ({"a": pod(1000)}, Reason.SOAK_PASSED),
        ({"a": pod(1000, failed=10)}, Reason.SOAK_PASSED),
        ({"a": pod(1000, failed=11)}, Reason.SOAK_FAILED),
        ({"a": pod(1000, microseconds=2800)}, Reason.SOAK_PASSED),
        ({"a": pod(1000, microseconds=2801)}, Reason.SOAK_FAILED),
        ({"a": pod(1000, microseconds=3000)}, Reason.SOAK_FAILED),
        ({"a": pod(1000, microseconds=1)}, Reason.SOAK_PASSED),
        ({"a": pod(1000), "b": pod(1000, failed=11)}, Reason.SOAK_FAILED),
        ({"a": pod(1000), "b": pod(1000, microseconds=3000)}, Reason.SOAK_FAILED),
        ({"a": pod(1000), "b": pod(99, failed=9)}, Reason.SOAK_PASSED),
        ({"a": pod(60), "b": pod(60, failed=60)}, Reason.SOAK_FAILED),
        ({"a": pod(60), "b": pod(60)}, Reason.SOAK_PASSED),
        ({"a": pod(100, failed=100)}, Reason.SOAK_FAILED),
        ({"a": pod(12, failed=12)}, Reason.SOAK_INCONCLUSIVE),
        ({}, Reason.SOAK_INCONCLUSIVE),
    ],
)
def test_the_worst_of_enough_requests_counts(active: dict[str, Traffic], reason: Reason) -> None:
    assert judge(ASKED, active, BEFORE).reason is reason


@pytest.mark.parametrize("previous", [None, Traffic(), pod(99), pod(1000, failed=1000), Traffic(1000, 0, 0)])
def test_without_a_latency_to_compare_with_there_is_no_praise(previous: Traffic | None) -> None:
    assert judge(ASKED, {"a": pod(1000)}, previous).reason is Reason.SOAK_INCONCLUSIVE
    assert judge(ASKED, {"a": pod(1000, failed=20)}, previous).reason is Reason.SOAK_FAILED


def test_the_words_name_the_pod_the_figures_and_the_limit() -> None:
    errors = judge(ASKED, {"a": pod(1000), "b": pod(1000, failed=50)}, BEFORE).message
    assert errors == (
        "5 % of 1000 requests failed in pod b, and maxErrorPercent is 1; the previous revision answered 10000"
        " requests, of which 0 % failed"
    )
    latency = judge(ASKED, {"a": pod(1000), "b": pod(1000, microseconds=3000)}, BEFORE).message
    assert latency == ("the mean latency is 3 ms in pod b, and was 2 ms before: 50 % more, and maxLatencyPercent is 40")


def test_a_figure_that_breaks_a_bound_is_not_told_as_that_bound() -> None:
    errors = judge(ASKED, {"a": pod(100_000, failed=1004)}, BEFORE).message
    assert errors.startswith("1.004 % of 100000 requests failed in pod a, and maxErrorPercent is 1; ")
    latency = judge(ASKED, {"a": Traffic(10_000, 0, 28_004_000)}, BEFORE).message
    assert latency.endswith(": 40.02 % more, and maxLatencyPercent is 40")


def test_what_pods_answered_is_what_they_counted_since() -> None:
    before = [Counters("a", 100, 1, 5000), Counters("gone", 7, 7, 7), Counters("restarted", 50, 0, 9)]
    after = [Counters("a", 130, 3, 5600), Counters("new", 20, 0, 40), Counters("restarted", 10, 0, 20)]
    found = traffic_between(before, after)
    assert found == {"a": Traffic(30, 2, 600), "new": Traffic(20, 0, 40), "restarted": Traffic(10, 0, 20)}
    assert total(found.values()) == Traffic(60, 2, 660)


@given(pods, traffics)
def test_few_requests_are_never_a_verdict(active: dict[str, Traffic], previous: Traffic) -> None:
    few = {name: Traffic(each.succeeded % 20, each.failed % 5, each.microseconds) for name, each in active.items()}
    assert judge(ASKED, few, previous).reason is Reason.SOAK_INCONCLUSIVE


@given(pods, traffics)
def test_more_failures_never_make_it_better(active: dict[str, Traffic], previous: Traffic) -> None:
    if judge(ASKED, active, previous).reason is Reason.SOAK_FAILED and total(active.values()).failed_percent > 1:
        worse = {name: each + Traffic(0, 10**6, 0) for name, each in active.items()}
        assert judge(ASKED, worse, previous).reason is Reason.SOAK_FAILED


@given(st.lists(st.builds(Counters, st.sampled_from("abc"), counts, counts, counts), unique_by=lambda each: each.pod))
def test_nothing_happened_between_the_same_counters(counters: list[Counters]) -> None:
    assert total(traffic_between(counters, counters).values()) == Traffic()
    assert total(traffic_between([], counters).values()).requests == sum(
        each.succeeded + each.failed for each in counters
    )
