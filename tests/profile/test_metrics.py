"""The user's MetricsCalculator on the framework's and on the served outputs."""

import math
from pathlib import Path

import numpy
import pytest

from triton_converters.claim_store.dump import Array, Batch
from triton_converters.contract.conversion_requests import Entrypoint
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.user.metrics import Values, calculate, gather

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


SERVED = [{"SCORES": row} for row in array([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3], [0.6, 0.4]])]
"""The framework is right in three of four, the server in two."""


def values(tmp_path: Path, code: str, arguments: dict[str, str] | None = None) -> tuple[Values, Values]:
    (tmp_path / "metrics_of_test.py").write_text(code)
    entrypoint, batches = Entrypoint("metrics_of_test.py", arguments or {}), reference()
    framework, candidate = (
        calculate(tmp_path, entrypoint, {"precision": "fp32"}, gather(batches, True, served))
        for served in (None, SERVED)
    )
    return framework, candidate


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
        ("return {'accuracy': 10**400}", "returned a metric that is not a number"),
        (
            "return {'accuracy': type('Tensor', (), {'__float__': lambda self: exec('raise RuntimeError(2)')})()}",
            "returned a metric that is not a number",
        ),
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
    framework = gather(batches, True).y_pred["Y"]
    served = gather(batches, True, [{"Y": array([1])}, {"Y": array([2])}, {"Y": array([3, 4, 9])}]).y_pred["Y"]
    assert framework.dtype == numpy.float32
    numpy.testing.assert_array_equal(framework, array([[1, math.nan], [2, math.nan], [3, 4]]))
    numpy.testing.assert_array_equal(served[:, 0], [1, 2, 3])
    assert numpy.isnan(served[0]).tolist() == [False, True, True]


def test_integers_that_need_padding_become_double_precision() -> None:
    batches = [Batch(numpy.arange(1), {}, {}, {"Y": numpy.arange(n).reshape(1, n)}) for n in (1, 2)]
    framework = gather(batches, True).y_pred["Y"]
    served = gather(batches, True, [{"Y": numpy.arange(2)}] * 2).y_pred["Y"]
    assert (framework.dtype, served.dtype) == (numpy.float64, numpy.int64)
    assert math.isnan(framework[0, 1])


def test_without_batch_dimension_rows_that_count_the_ids_are_joined() -> None:
    batches = [
        Batch(numpy.arange(n), {"X": numpy.ones((n, 2))}, {"L": numpy.ones(n)}, {"Y": numpy.ones(n)}) for n in (2, 3)
    ]
    data = gather(batches, False, [batch.outputs for batch in batches])
    assert (data.ids.shape, data.x["X"].shape, data.y_real["L"].shape, data.y_pred["Y"].shape) == (
        (5,),
        (5, 2),
        (5,),
        (5,),
    )


def test_without_batch_dimension_other_requests_are_stacked() -> None:
    batches = [Batch(numpy.array([n]), {"X": numpy.ones((2, 3))}, {}, {"Y": numpy.ones(4)}) for n in range(3)]
    data = gather(batches, False)
    assert (data.ids.tolist(), data.x["X"].shape, data.y_pred["Y"].shape) == ([0, 1, 2], (3, 2, 3), (3, 4))


@pytest.mark.parametrize(
    ("first", "second", "padded"),
    [
        ([[1.5 + 1j]], [[1, 2j]], [[1.5 + 1j, math.nan], [1, 2j]]),
        ([[b"a"]], [[b"b", b"cd"]], [[b"a", b""], [b"b", b"cd"]]),
        ([["a"]], [["b", "cd"]], [["a", ""], ["b", "cd"]]),
        ([[True]], [[True, False]], [[1.0, math.nan], [1.0, 0.0]]),
    ],
)
def test_what_is_padded_keeps_its_values(first: object, second: object, padded: object) -> None:
    batches = [Batch(numpy.arange(1), {}, {"L": numpy.array(each)}, {}) for each in (first, second)]
    found = gather(batches, True).y_real["L"]
    numpy.testing.assert_array_equal(found, numpy.array(padded, found.dtype))


def test_times_are_padded_with_no_time() -> None:
    days = numpy.array([["2026-01-01", "2026-01-02"]], "datetime64[D]")
    batches = [Batch(numpy.arange(1), {}, {"L": days[:, :size]}, {}) for size in (1, 2)]
    found = gather(batches, True).y_real["L"]
    assert numpy.isnat(found).tolist() == [[False, True], [False, False]]


@pytest.mark.parametrize(
    ("second", "words"),
    [
        ([[1], [2]], "1 dimension in one batch and 2 dimensions in another"),
        (["a", "b"], "numbers in one batch and text in another"),
    ],
)
def test_arrays_that_cannot_be_joined_are_named(second: object, words: str) -> None:
    batches = [Batch(numpy.arange(2), {}, {"L": numpy.array(each)}, {}) for each in ([1, 2], second)]
    with pytest.raises(StageError, match=f"L has {words}") as error:
        gather(batches, True)
    assert error.value.reason is Reason.METRIC_FAILED
