"""The user's MetricsCalculator on the framework's and on the served outputs, and its thresholds."""

import math
from pathlib import Path

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from triton_converters.claim_store.dump import Array, Batch
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.contract.request import Entrypoint, Threshold
from triton_converters.gates.accuracy import DataSet, Values, calculate, check, gather, judge

ACCURACY = """
class MetricsCalculator:
    def __init__(self, output="SCORES"):
        self.output = output

    def calc(self, *, ids, y_pred, x, y_real):
        hits = y_pred[self.output].argmax(axis=1) == y_real["LABEL"]
        return {"accuracy": hits.mean(), "samples": len(ids)}
"""
OLDER = """
class MetricsCalculator:
    def __init__(self):
        self.hits = []

    def update(self, ids, y_pred, x, y_real):
        self.hits += list(y_pred["SCORES"].argmax(axis=1) == y_real["LABEL"])

    @property
    def metrics(self):
        return {"accuracy": sum(self.hits) / len(self.hits)}
"""
WITH_BASE = """
from deployment_toolkit.core import BaseMetricsCalculator

class MetricsCalculator(BaseMetricsCalculator):
    def calc(self, *, ids, y_pred, x, y_real):
        return {"accuracy": float((y_pred["SCORES"].argmax(axis=1) == y_real["LABEL"]).mean())}
"""


def array(values: object) -> Array:
    return numpy.array(values, dtype=numpy.float32)


def reference() -> list[Batch]:
    scores = array([[0.9, 0.1], [0.2, 0.8], [0.7, 0.3], [0.6, 0.4]])
    labels = numpy.array([0, 1, 0, 1])
    parts = (slice(0, 3), slice(3, 4))
    ids = numpy.arange(4)
    return [Batch(ids[p], {"X": scores[p]}, {"LABEL": labels[p]}, {"SCORES": scores[p]}) for p in parts]


def data_set() -> DataSet:
    """The framework is right in three of four, the server in two."""
    served = [{"SCORES": row} for row in array([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3], [0.6, 0.4]])]
    return gather(reference(), served, batched=True)


def values(tmp_path: Path, code: str, arguments: dict[str, str] | None = None) -> tuple[Values, Values]:
    (tmp_path / "metrics_of_test.py").write_text(code)
    return calculate(tmp_path, Entrypoint("metrics_of_test.py", arguments or {}), {"precision": "fp32"}, data_set())


@pytest.mark.parametrize("code", [ACCURACY, OLDER, WITH_BASE], ids=["calc", "update", "base class"])
def test_both_sets_of_outputs_are_judged_by_the_users_class(tmp_path: Path, code: str) -> None:
    framework, served = values(tmp_path, code)
    assert (framework["accuracy"], served["accuracy"]) == (0.75, 0.5)


def test_the_class_gets_the_arguments_of_the_spec(tmp_path: Path) -> None:
    with pytest.raises(StageError, match="KeyError: 'NONE'") as error:
        values(tmp_path, ACCURACY, {"output": "NONE"})
    assert error.value.reason is Reason.METRIC_FAILED
    assert "metrics_of_test.py:7" in error.value.message


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("return None", "returned NoneType, not a dict"),
        ("return {'accuracy': 'good'}", "returned a metric that is not a number"),
        ("return {'accuracy': [1, 2]}", "returned a metric that is not a number"),
        ("raise RuntimeError('boom')", "RuntimeError: boom"),
    ],
)
def test_a_calculator_that_fails_is_named(tmp_path: Path, body: str, words: str) -> None:
    code = f"class MetricsCalculator:\n    def calc(self, *, ids, y_pred, x, y_real):\n        {body}\n"
    with pytest.raises(StageError, match=words) as error:
        values(tmp_path, code)
    assert error.value.reason is Reason.METRIC_FAILED


def test_a_calculator_cannot_change_what_the_other_one_sees(tmp_path: Path) -> None:
    code = (
        "class MetricsCalculator:\n    def calc(self, *, ids, y_pred, x, y_real):\n"
        "        total = float(y_real['LABEL'].sum() + x['X'].sum() + ids.sum())\n"
        "        y_real['LABEL'][:] = 0\n        x['X'][:] = 0\n        ids[:] = 0\n"
        "        return {'total': total}\n"
    )
    framework, served = values(tmp_path, code)
    assert framework == served


def test_samples_of_different_lengths_are_padded_with_nan() -> None:
    batches = [
        Batch(numpy.arange(2), {"X": array([[1], [2]])}, {}, {"Y": array([[1], [2]])}),
        Batch(numpy.arange(1), {"X": array([[3, 4, 5]])}, {}, {"Y": array([[3, 4]])}),
    ]
    data = gather(batches, [{"Y": array([1])}, {"Y": array([2])}, {"Y": array([3, 4, 9])}], batched=True)
    assert data.framework["Y"].dtype == numpy.float32
    numpy.testing.assert_array_equal(data.framework["Y"], array([[1, math.nan], [2, math.nan], [3, 4]]))
    numpy.testing.assert_array_equal(data.served["Y"][:, 0], [1, 2, 3])
    assert numpy.isnan(data.served["Y"][0]).tolist() == [False, True, True]


def test_integers_that_need_padding_become_double_precision() -> None:
    batches = [Batch(numpy.arange(1), {}, {}, {"Y": numpy.arange(n).reshape(1, n)}) for n in (1, 2)]
    data = gather(batches, [{"Y": numpy.arange(2)}] * 2, batched=True)
    assert (data.framework["Y"].dtype, data.served["Y"].dtype) == (numpy.float64, numpy.int64)
    assert math.isnan(data.framework["Y"][0, 1])


def test_without_batch_dimension_rows_that_count_the_ids_are_joined() -> None:
    batches = [
        Batch(numpy.arange(n), {"X": numpy.ones((n, 2))}, {"L": numpy.ones(n)}, {"Y": numpy.ones(n)}) for n in (2, 3)
    ]
    data = gather(batches, [batch.outputs for batch in batches], batched=False)
    assert (data.ids.shape, data.x["X"].shape, data.y_real["L"].shape, data.served["Y"].shape) == (
        (5,),
        (5, 2),
        (5,),
        (5,),
    )


def test_without_batch_dimension_other_requests_are_stacked() -> None:
    batches = [Batch(numpy.array([n]), {"X": numpy.ones((2, 3))}, {}, {"Y": numpy.ones(4)}) for n in range(3)]
    data = gather(batches, [batch.outputs for batch in batches], batched=False)
    assert (data.ids.tolist(), data.x["X"].shape, data.framework["Y"].shape) == ([0, 1, 2], (3, 2, 3), (3, 4))


def minimum(metric: str, bound: float) -> Threshold:
    return Threshold(metric, bound, None, None)


@given(st.floats(allow_nan=True), st.floats(allow_nan=True), st.floats(allow_nan=False, allow_infinity=False))
def test_a_threshold_passes_only_finite_values_inside_it(framework: float, served: float, bound: float) -> None:
    for threshold, holds in (
        (Threshold("m", bound, None, None), served >= bound),
        (Threshold("m", None, bound, None), served <= bound),
        (Threshold("m", None, None, abs(bound)), abs(framework - served) <= abs(bound)),
    ):
        (verdict,) = judge({"m": framework}, {"m": served}, [threshold])
        assert verdict.passed == (holds and math.isfinite(served))


def test_all_bounds_of_a_threshold_must_hold() -> None:
    (verdict,) = judge({"m": 0.9}, {"m": 0.8}, [Threshold("m", 0.5, 0.95, 0.05)])
    assert not verdict.passed
    assert verdict.threshold == "minimum 0.5, maximum 0.95, maximumDegradation 0.05"
    with pytest.raises(
        StageError, match=r"m of the served outputs is 0\.8 \(framework 0\.9\), but the threshold is minimum"
    ) as error:
        check([verdict])
    assert error.value.reason is Reason.THRESHOLD_NOT_MET


def test_a_metric_that_nobody_computed_names_those_that_exist() -> None:
    with pytest.raises(
        StageError, match="the metrics entrypoint did not compute the metric 'top5'; it computed: loss, top1"
    ) as error:
        judge({"top1": 1.0, "loss": 0.1}, {"top1": 1.0, "loss": 0.1}, [minimum("top5", 0.5)])
    assert error.value.reason is Reason.METRIC_MISSING


def test_metrics_without_threshold_are_recorded_and_pass() -> None:
    verdicts = judge({"b": 1.0, "a": 2.0, "n": math.nan}, {"b": 0.0, "a": 2.0, "n": math.nan}, [minimum("b", 0.0)])
    assert [(each.metric, each.threshold, each.passed) for each in verdicts] == [
        ("b", "minimum 0", True),
        ("a", "", True),
    ]
    check(verdicts)
