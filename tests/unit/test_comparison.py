"""No worse than before: what is compared, what is refused, and what is told."""

import math
from dataclasses import replace

import pytest

from triton_converters.contract.accuracy import Accuracy, Threshold
from triton_converters.contract.comparison import Difference, compare, compared_metrics, direction
from triton_converters.contract.comparison_result import ComparisonResult, MarkMetrics
from triton_converters.contract.document import DocumentError


def threshold(metric: str = "accuracy", /, **bounds: float) -> Threshold:
    return Threshold(metric, bounds.get("min"), bounds.get("max"), bounds.get("max_degradation"))


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        ({"min": 0.9}, 1),
        ({"min": 0.0}, 1),
        ({"max": 0.1}, -1),
        ({"min": 0.9, "max_degradation": 0.1}, 1),
        ({"max": 0.1, "max_degradation": 0.1}, -1),
        ({"min": 0.1, "max": 0.9}, 0),
        ({"max_degradation": 0.1}, 0),
    ],
)
def test_a_threshold_says_what_is_better(bounds: dict[str, float], expected: int) -> None:
    assert direction(threshold(**bounds)) == expected
    assert compared_metrics([threshold(**bounds)]) == (("accuracy",) if expected else ())
    assert direction(None) == 0


# before, now, standard error, direction, tolerance in percent: worse beyond the bound, better beyond the bound
@pytest.mark.parametrize(
    ("before", "now", "error", "better", "percent", "is_worse", "is_better"),
    [
        (0.95, 0.95, 0.0, 1, 0.0, False, False),
        (0.95, 0.95, 0.0, 1, 0.5, False, False),
        (0.95, 0.949, 0.0, 1, 0.0, True, False),
        (0.95, 0.951, 0.0, 1, 0.0, False, True),
        (0.95, 0.946, 0.0, 1, 0.5, False, False),
        (0.95, 0.945, 0.0, 1, 0.5, True, False),
        (0.95, 0.92, 0.01, 1, 0.5, True, False),
        (0.95, 0.93, 0.01, 1, 0.5, False, False),
        (0.95, 0.98, 0.01, 1, 0.5, False, True),
        (0.95, 0.97, 0.01, 1, 0.5, False, False),
        (0.10, 0.13, 0.01, -1, 0.5, True, False),
        (0.10, 0.12, 0.01, -1, 0.5, False, False),
        (0.10, 0.07, 0.01, -1, 0.5, False, True),
        # The tolerance of a small figure is small too.
        (0.0001, 0.00011, 0.0, -1, 0.5, True, False),
        (0.0, 0.001, 0.0, -1, 0.5, True, False),
        (-5.0, -5.02, 0.0, 1, 0.5, False, False),
        (-5.0, -5.03, 0.0, 1, 0.5, True, False),
    ],
)
def test_what_is_beyond_chance_and_the_tolerance_is_worse_or_better(
    before: float, now: float, error: float, better: int, percent: float, is_worse: bool, is_better: bool
) -> None:
    found = Difference("m", before, now, error, 0.0, better, percent)
    assert (found.is_worse, found.is_better) == (is_worse, is_better)


def test_the_loss_that_would_have_been_noticed_and_the_samples_that_it_takes() -> None:
    found = Difference("m", 0.9, 0.9, 0.01, 0.0, 1, 0.5)
    assert found.noticed == pytest.approx(0.0397 + 0.0045, abs=0.0001)
    samples = found.samples_asked(256)
    error = 0.01 * math.sqrt(256 / samples)
    assert replace(found, error=error).noticed == pytest.approx(0.018, rel=1e-3), "2 % of 0.9"
    assert found.words(256) == (
        f"m 0.9 (0.9 before; a loss of 0.044 is noticed 95 times in 100 on 256 samples; one of 2 %, on {samples:,})"
    )
    assert Difference("m", 0.9, 0.9, 0.0001, 0.0, 1, 0.5).words(256) == (
        "m 0.9 (0.9 before; a loss of 0.0049 is noticed 95 times in 100 on 256 samples)"
    )
    words = Difference("m", 0.9, 0.88, 0.01, 0.0, 1, 0.5).words(256)
    assert words.startswith("m 0.88 (0.9 before; worse, by what may be chance; a loss of")
    assert Difference("m", 0.9, 0.896, 0.01, 0.0, 1, 0.5).words(256).startswith("m 0.896 (0.9 before; a loss of")
    assert Difference("m", 0.9, 0.9, 0.01, 0.0, 1, 2).samples_asked(256) == 0, "the tolerance allows as much"


def test_a_loss_makes_itself_less_sure() -> None:
    """Of 500 samples, 3 % of which two equal models answer otherwise; each point of a loss is one more of each 100."""
    found = Difference("m", 0.9, 0.9, math.sqrt(0.03 / 500), 1 / 500, 1, 0.5)
    assert found.noticed == pytest.approx(0.0045 + 3.97 * math.sqrt((0.03 + found.noticed) / 500), rel=1e-3)
    samples = found.samples_asked(500)
    more = replace(found, error=math.sqrt(0.03 / samples), noise=1 / samples)
    assert more.noticed == pytest.approx(0.018, rel=1e-3)


@pytest.mark.parametrize("number", [1e308, 1e-308, 0.0])
def test_numbers_of_any_size_make_words(number: float) -> None:
    """Anybody who may edit a ConfigMap may write one."""
    for found in (
        Difference("m", number, 0.9, number, number, -1, 0.5),
        Difference("m", 0.9, number, 1.0, number, 1, 0),
    ):
        assert found.words(256).startswith("m ")
        assert found.worse_words("the anchor", 256).startswith("m ")


RESULT = ComparisonResult(
    samples=256,
    metrics=("accuracy", "loss"),
    profiles=("p1", "p2"),
    marks=(
        MarkMetrics("r1", (0.95, 0.1), ((0.001, 0.001), (0.002, None)), (0.0, None)),
        MarkMetrics("r2", message="its file is gone"),
    ),
    message="they are not finite",
)
ACCURACY = (
    Accuracy("accuracy", 0.9, 0.9, threshold(min=0.5)),
    Accuracy("loss", 0.1, 0.1, threshold("loss", max=1)),
    Accuracy("calls", 3, 3, threshold("calls", max_degradation=0)),
    Accuracy("free", 3, 3),
)


def test_each_mark_is_compared_by_the_metrics_that_say_what_is_better() -> None:
    first, second = compare(RESULT, "p1", ACCURACY, 0.5)
    assert (first.revision, first.obstacle, first.samples) == ("r1", "", 256)
    assert [each.metric for each in first.differences] == ["accuracy", "loss"]
    assert [each.metric for each in first.worse] == ["accuracy"]
    assert (second.revision, second.obstacle, second.differences) == ("r2", "its file is gone", ())
    assert not second.worse


def test_a_figure_that_is_missing_is_an_obstacle_and_hides_no_other() -> None:
    first, _ = compare(RESULT, "p2", ACCURACY, 0.5)
    assert first.obstacle == "loss: they are not finite"
    assert [each.metric for each in first.worse] == ["accuracy"]
    more = (*ACCURACY, Accuracy("new", 1, 1, threshold("new", min=0)))
    assert compare(RESULT, "p1", more, 0.5)[0].obstacle == "new: they are not finite"
    assert compare(replace(RESULT, message=""), "p1", more, 0.5)[0].obstacle == (
        "new: the comparison Job computed no figure of it"
    )


@pytest.mark.parametrize(
    ("together", "errors", "is_worse"), [(1, 2.326, True), (2, 2.576, True), (4, 2.807, False), (32, 3.421, False)]
)
def test_who_is_judged_by_many_differences_may_be_worse_in_one_by_chance(
    together: int, errors: float, is_worse: bool
) -> None:
    found = Difference("m", 0.9, 0.8726, 0.01, 0.0, 1, 0.0, together)
    assert found.refused_errors == pytest.approx(errors, abs=0.001)
    assert found.noticed == pytest.approx((errors + 1.645) * 0.01, rel=1e-3)
    assert found.is_worse is is_worse


def test_all_differences_of_a_candidate_are_judged_together() -> None:
    marks = (RESULT.marks[0], replace(RESULT.marks[0], revision="r3"))
    found = compare(replace(RESULT, marks=marks), "p1", ACCURACY, 0.5)
    assert {one.together for each in found for one in each.differences} == {4}
    assert found[0].worse[0].refused_errors == pytest.approx(2.81, abs=0.01)


def test_few_samples_tell_nothing() -> None:
    """Of one sample, each draw is the same, and so no difference would be chance."""
    first, second = compare(replace(RESULT, samples=19), "p1", ACCURACY, 0.5)
    assert first.obstacle == "19 samples are too few: let the dataloader give 20 or more"
    assert (first.differences, second.obstacle) == ((), "its file is gone")


def test_a_candidate_that_the_job_did_not_see_is_not_compared() -> None:
    assert compare(RESULT, "other", ACCURACY, 0.5) == ()


@pytest.mark.parametrize(
    ("accuracy", "loss", "expected"), [(0.99, 0.1, True), (0.99, 0.1001, False), (0.95, 0.1, False), (0.99, 0.05, True)]
)
def test_better_is_who_gains_beyond_chance_and_loses_nothing(accuracy: float, loss: float, expected: bool) -> None:
    values = (replace(ACCURACY[0], served=accuracy), replace(ACCURACY[1], served=loss))
    assert compare(RESULT, "p1", values, 0.5)[0].is_better is expected


@pytest.mark.parametrize(
    "mark",
    [
        MarkMetrics("r", (0.9,), ((0.1, 0.1),), (0.0, 0.0)),
        MarkMetrics("r", (0.9, 0.8), ((0.1,),), (0.0, 0.0)),
        MarkMetrics("r", (0.9, 0.8), ((0.1, 0.1), (0.1, 0.1)), (0.0, 0.0)),
        MarkMetrics("r", (0.9, 0.8), ((0.1, 0.1),), (0.0,)),
        MarkMetrics("r", (0.9, 0.8), (), (0.0, 0.0)),
        MarkMetrics("r", noise=(0.0, 0.0)),
    ],
)
def test_tables_of_other_sizes_are_no_result(mark: MarkMetrics) -> None:
    with pytest.raises(DocumentError):
        ComparisonResult(1, ("a", "b"), ("p",), (mark,))


@pytest.mark.parametrize(("error", "noise"), [(-0.1, 0.0), (0.1, -0.1)])
def test_a_negative_standard_error_or_variance_is_no_result(error: float, noise: float) -> None:
    with pytest.raises(DocumentError):
        MarkMetrics("r", (0.9,), ((error,),), (noise,))
