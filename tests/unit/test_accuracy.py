"""What the metrics of a candidate's outputs are judged by, and in which words."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triton_converters.contract.accuracy import Threshold, Verdict, judge, judge_framework
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import CandidateMetrics, MetricsResult

PROFILE = "0123456789abcdef"


def minimum(metric: str, bound: float) -> Threshold:
    return Threshold(metric, bound, None, None)


def judged(framework: dict[str, float], served: dict[str, float], *thresholds: Threshold) -> Verdict:
    """What is said of metrics as a Job sends them: None in place of what is not finite."""
    names = tuple(sorted(framework.keys() | served.keys()))
    sent = [
        tuple(values[name] if math.isfinite(values.get(name, math.nan)) else None for name in names)
        for values in (framework, served)
    ]
    result = MetricsResult(names, sent[0], (CandidateMetrics(PROFILE, sent[1]),))
    return judge(result, PROFILE, thresholds)


def decimal(value: float) -> Fraction:
    """The number that a person reads."""
    return Fraction(repr(value))


def difference(framework: float, served: float) -> Fraction | float:
    return abs(decimal(framework) - decimal(served)) if math.isfinite(framework) else math.inf


@given(st.floats(allow_nan=True), st.floats(allow_nan=True), st.floats(allow_nan=False, allow_infinity=False))
def test_a_threshold_passes_only_finite_values_inside_it(framework: float, served: float, bound: float) -> None:
    finite = math.isfinite(served)
    for threshold, holds in (
        (Threshold("m", bound, None, None), finite and served >= bound),
        (Threshold("m", None, bound, None), finite and served <= bound),
        (Threshold("m", None, None, abs(bound)), finite and difference(framework, served) <= decimal(abs(bound))),
    ):
        found = judged({"m": framework}, {"m": served}, threshold)
        assert (found.reason is Reason.PASSED) == holds
        assert bool(found.accuracy) == (finite and math.isfinite(framework)), "the status has finite values only"


@pytest.mark.parametrize(("framework", "served"), [(0.95, 0.9), (0.9, 0.85), (0.85, 0.9), (0.3, 0.25)])
def test_a_difference_is_that_of_the_figures_as_they_are_read(framework: float, served: float) -> None:
    """In binary, 0.9 - 0.85 is more than 0.05, and 0.95 - 0.9 is less."""
    values = {"m": framework}, {"m": served}
    assert judged(*values, Threshold("m", None, None, 0.05)).reason is Reason.PASSED
    assert judged(*values, Threshold("m", None, None, 0.04999999)).reason is Reason.THRESHOLD_NOT_MET


def test_all_bounds_of_a_threshold_must_hold() -> None:
    found = judged({"m": 0.9}, {"m": 0.8}, Threshold("m", 0.5, 0.95, 0.05))
    assert (found.reason, found.accuracy[0].passed) == (Reason.THRESHOLD_NOT_MET, False)
    assert found.message == (
        "m of the served outputs is 0.8 (framework 0.9), but the threshold is min 0.5, max 0.95, maxDegradation 0.05"
    )


@pytest.mark.parametrize(
    ("framework", "bound", "more"),
    [
        (0.972, 90, " (accuracy seems to be a fraction: write 0.9 for 90 %)"),
        (1, 99.99999, " (accuracy seems to be a fraction: write 0.9999999 for 99.99999 %)"),
        (0.972, 0.99, ""),
        (0.972, 1, ""),
        (0.972, 101, ""),
        (82.5, 90, ""),
        (-3, 2, ""),
    ],
)
def test_a_minimum_in_percent_of_a_fraction_is_told(framework: float, bound: float, more: str) -> None:
    values = {"accuracy": framework}
    found = judged(values, {"accuracy": framework - 0.1}, minimum("accuracy", bound))
    assert found.message.endswith(f"but the threshold is min {bound}{more}")


@pytest.mark.parametrize(
    ("framework", "served", "threshold", "words"),
    [
        (
            349 / 360,
            349 / 360,
            minimum("m", 0.96944449),
            "0.969444 (framework 0.969444), but the threshold is min 0.96944449",
        ),
        (0.95, 0.8999999, minimum("m", 0.9), "0.8999999 (framework 0.95), but the threshold is min 0.9"),
        (0.9, 0.9 - 1e-16, minimum("m", 0.9), "0.8999999999999999 (framework 0.9), but the threshold is min 0.9"),
        (
            3.0,
            1234570.5,
            Threshold("m", None, 1234570.0, None),
            "1234570.5 (framework 3), but the threshold is max 1234570",
        ),
        (
            0.95,
            0.89999999,
            Threshold("m", None, None, 0.05),
            "0.89999999 (framework 0.95), but the threshold is maxDegradation 0.05",
        ),
    ],
)
def test_a_bound_and_the_figure_that_misses_it_differ(
    framework: float, served: float, threshold: Threshold, words: str
) -> None:
    found = judged({"m": framework}, {"m": served}, threshold)
    assert found.message == f"m of the served outputs is {words}"


@given(st.floats(-1, 1), st.floats(-1, 1), st.floats(0, 1))
def test_figures_as_they_are_told_have_the_same_verdict(framework: float, served: float, bound: float) -> None:
    threshold = Threshold("m", -bound, bound, bound)
    (found,) = judged({"m": framework}, {"m": served}, threshold).accuracy
    told = dict(zip(("framework", "served"), map(float, found.figures), strict=True))
    (again,) = judged({"m": told["framework"]}, {"m": told["served"]}, threshold).accuracy
    assert again.passed == found.passed
    assert told["served"] == pytest.approx(served, rel=1e-5)


def test_every_metric_outside_its_threshold_is_named() -> None:
    found = judged({"a": 1.0, "b": math.nan}, {"a": 0.0, "b": math.nan}, minimum("b", 0.5), minimum("a", 0.5))
    assert found.message == (
        "b of the served outputs is missing or not finite (framework missing or not finite), but the threshold is"
        " min 0.5; a of the served outputs is 0 (framework 1), but the threshold is min 0.5"
    )


def test_a_metric_that_nobody_computed_names_those_that_exist_and_the_nearest() -> None:
    values = {"top1": 1.0, "loss": 0.1}
    found = judged(values, values, minimum("F1", 0.5), minimum("Top-1", 0.5))
    assert found.reason is Reason.METRIC_FAILED
    words = "accuracy.thresholds names 'F1', 'Top-1' (nearest: top1); the metrics entrypoint returns loss, top1"
    assert found.message == words
    assert judged({}, {}, minimum("f1", 0.5)).message == (
        "accuracy.thresholds names 'f1'; the metrics entrypoint returns no metric"
    )


def test_metrics_without_a_threshold_come_last_and_pass() -> None:
    found = judged({"b": 1.0, "a": 2.0, "n": math.nan}, {"b": 0.0, "a": 2.0, "n": math.nan}, minimum("b", 0.0))
    assert [(each.metric, each.threshold_words, each.passed) for each in found.accuracy] == [
        ("b", "min 0", True),
        ("a", "", True),
    ]
    assert found.reason is Reason.PASSED


def test_the_users_code_that_failed_for_one_candidate_is_its_reason() -> None:
    failed = CandidateMetrics(PROFILE, (), str(Reason.METRIC_FAILED), "metrics.py:7: boom")
    result = MetricsResult(("m",), (1.0,), (failed, CandidateMetrics("other", (1.0,))))
    assert judge(result, PROFILE, [minimum("m", 0.5)]) == Verdict((), Reason.METRIC_FAILED, "metrics.py:7: boom")
    assert judge(result, "other", [minimum("m", 0.5)]).reason is Reason.PASSED


def test_a_result_without_the_candidate_fails_it() -> None:
    found = judge(MetricsResult(("m",), (1.0,), ()), PROFILE, [])
    assert (found.reason, PROFILE in found.message) == (Reason.RESULT_MISSING, True)


def framework(*thresholds: Threshold, **values: float | None) -> Verdict:
    """What is said of the framework's own metrics, before anything is served."""
    return judge_framework(MetricsResult(tuple(values), tuple(values.values()), ()), thresholds)


@given(st.floats(allow_nan=True), st.floats(allow_nan=False, allow_infinity=False))
def test_what_the_framework_misses_no_candidate_like_it_meets(value: float, bound: float) -> None:
    for threshold in (Threshold("m", bound, None, None), Threshold("m", None, bound, 0.0), minimum("f1", bound)):
        sent = value if math.isfinite(value) else None
        if framework(threshold, m=sent).reason is not Reason.PASSED:
            assert framework(threshold, m=sent).reason is judged({"m": value}, {"m": value}, threshold).reason


@pytest.mark.parametrize(
    ("value", "threshold"),
    [
        (0.8998, minimum("m", 0.9)),
        (0.8911, minimum("m", 0.9)),
        (-10.05, minimum("m", -10)),
        (0.1005, Threshold("m", None, 0.1, None)),
    ],
)
def test_a_near_miss_is_left_to_the_candidates(value: float, threshold: Threshold) -> None:
    """One may be better than the framework by a rounding."""
    assert framework(threshold, m=value).reason is Reason.PASSED


@pytest.mark.parametrize(
    ("value", "threshold"),
    [
        (0.89, minimum("m", 0.9)),
        (-10.2, minimum("m", -10)),
        (0.102, Threshold("m", None, 0.1, None)),
        (-1e-9, minimum("m", 0)),
    ],
)
def test_a_plain_miss_of_the_framework_is_one(value: float, threshold: Threshold) -> None:
    assert framework(threshold, m=value).reason is Reason.THRESHOLD_NOT_MET


def test_every_bound_that_the_framework_misses_is_named_with_its_figure() -> None:
    assert framework(minimum("a", 90), minimum("b", 0.5), minimum("c", 0), a=0.9, b=None, c=1.0).message == (
        "a of the framework's own outputs is 0.9, but the threshold is min 90 (a seems to be a fraction: write 0.9 for"
        " 90 %); b of the framework's own outputs is missing or not finite, but the threshold is min 0.5"
    )


def test_only_a_bound_on_the_metric_itself_is_absolute() -> None:
    given = [Threshold("m", 0.0, None, None), Threshold("m", None, 0.0, None), Threshold("m", None, None, 0.0)]
    assert [each.is_absolute for each in given] == [True, True, False]
