"""The accuracy gate: the user's MetricsCalculator on the framework's and on the served outputs, against thresholds.

The calculator gets the whole set at once. If a dimension varies between samples, shorter ones are padded with NaN at
the end, and integers become float64 for that. A class that offers only ``update`` and ``metrics`` gets one update.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy

from triton_converters.claim_store.dump import Array, Arrays, Batch
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.contract.request import Entrypoint, Threshold
from triton_converters.contract.results import Accuracy
from triton_converters.user import user_code

CLASS = "MetricsCalculator"
Values = Mapping[str, float]


@dataclass(frozen=True)
class DataSet:
    """All samples; the first dimension of every array is the sample."""

    ids: Array
    x: Arrays
    y_real: Arrays
    framework: Arrays
    served: Arrays


def gather(batches: Sequence[Batch], served: Sequence[Arrays], batched: bool) -> DataSet:
    """Join the reference's batches and the served outputs, with one entry for each sample.

    Without a batch dimension (``batched`` false) a batch is one request. If the first dimension of all its arrays is as
    long as its ids, the arrays are joined along it; otherwise each becomes one entry.
    """
    answers: Sequence[Arrays]
    if batched:
        along = True
        # One by one: the served shapes may differ within a batch of the reference.
        answers = [{name: array[None] for name, array in sample.items()} for sample in served]
    else:
        groups = [(batch.inputs, batch.labels, batch.outputs) for batch in batches]
        along = all(
            array.ndim > 0 and len(array) == len(batch.ids)
            for batch, three in zip(batches, groups, strict=True)
            for group in three
            for array in group.values()
        )
        answers = served
    return DataSet(
        ids=numpy.concatenate([batch.ids if along else batch.ids[:1] for batch in batches]),
        x=_join([batch.inputs for batch in batches], along),
        y_real=_join([batch.labels for batch in batches], along),
        framework=_join([batch.outputs for batch in batches], along),
        served=_join(answers, along),
    )


def calculate(
    source: Path, entrypoint: Entrypoint, arguments: Mapping[str, int | str], data: DataSet
) -> tuple[Values, Values]:
    """Return the metrics of the framework's and of the served outputs, each from its own calculator.

    ``arguments``: the stage's arguments by name. Raises StageError: MetricFailed, and what ``user_code.call`` raises.
    """
    framework, served = (
        _calculate(user_code.call(source, entrypoint, CLASS, arguments), source, entrypoint.path, data, outputs)
        for outputs in (data.framework, data.served)
    )
    return framework, served


def judge(framework: Values, served: Values, thresholds: Sequence[Threshold]) -> tuple[Accuracy, ...]:
    """Return every metric with its verdict: first those with a threshold, in that order, then the others by name.

    A metric without a threshold passes, and is left out if either value is not finite. Raises
    StageError(MetricMissing) if a threshold's metric was not computed.
    """
    for threshold in thresholds:
        if threshold.metric not in framework or threshold.metric not in served:
            known = ", ".join(sorted(served)) or "none"
            message = f"the metrics entrypoint did not compute the metric {threshold.metric!r}; it computed: {known}"
            raise StageError(Reason.METRIC_MISSING, message)
    bound = {threshold.metric for threshold in thresholds}
    free = sorted(name for name in served if name in framework and name not in bound)
    return (
        *(_judge(threshold, framework[threshold.metric], served[threshold.metric]) for threshold in thresholds),
        *(
            Accuracy(name, framework[name], served[name], "", True)
            for name in free
            if math.isfinite(framework[name]) and math.isfinite(served[name])
        ),
    )


def check(accuracy: Sequence[Accuracy]) -> None:
    """Raise StageError(ThresholdNotMet), which names every metric outside its threshold, if there is one."""
    failed = [each for each in accuracy if not each.passed]
    if failed:
        parts = [
            f"{each.metric} of the served outputs is {each.served:.6g} (framework {each.framework:.6g}), but the"
            f" threshold is {each.threshold}"
            for each in failed
        ]
        raise StageError(Reason.THRESHOLD_NOT_MET, "; ".join(parts))


def _judge(threshold: Threshold, framework: float, served: float) -> Accuracy:
    degradation = abs(framework - served)
    # Written so that NaN never passes.
    bounds = [
        ("minimum", threshold.minimum, threshold.minimum is None or served >= threshold.minimum),
        ("maximum", threshold.maximum, threshold.maximum is None or served <= threshold.maximum),
        (
            "maximumDegradation",
            threshold.maximum_degradation,
            threshold.maximum_degradation is None or degradation <= threshold.maximum_degradation,
        ),
    ]
    asked = [(f"{name} {value:g}", holds) for name, value, holds in bounds if value is not None]
    passed = bool(asked) and all(holds for _, holds in asked) and math.isfinite(served)
    return Accuracy(threshold.metric, framework, served, ", ".join(words for words, _ in asked), passed)


def _calculate(calculator: Any, source: Path, path: str, data: DataSet, outputs: Arrays) -> Values:
    """Return metrics by name; what both calculators get is copied, so that one cannot change it for the other."""
    arguments = {
        "ids": data.ids.copy(),
        "y_pred": outputs,
        "x": _copy(data.x),
        "y_real": _copy(data.y_real),
    }
    with user_code.running(source, path, Reason.METRIC_FAILED):
        if callable(getattr(calculator, "calc", None)):
            values = calculator.calc(**arguments)
        else:
            calculator.update(**arguments)
            values = calculator.metrics
    if not isinstance(values, Mapping):
        raise StageError(Reason.METRIC_FAILED, f"{path}: {CLASS} returned {type(values).__name__}, not a dict")
    try:
        return {str(name): float(value) for name, value in values.items()}
    except (TypeError, ValueError) as error:
        raise StageError(
            Reason.METRIC_FAILED, f"{path}: {CLASS} returned a metric that is not a number: {error}"
        ) from error


def _copy(arrays: Arrays) -> dict[str, Array]:
    return {name: array.copy() for name, array in arrays.items()}


def _join(parts: Sequence[Arrays], along: bool) -> dict[str, Array]:
    """Concatenate along the first dimension, or stack; pad every other dimension to its largest size."""
    names = parts[0].keys() if parts else ()
    return {name: _pad([part[name] if along else part[name][None] for part in parts]) for name in names}


def _pad(arrays: Sequence[Array]) -> Array:
    shapes = {array.shape[1:] for array in arrays}
    if len(shapes) > 1:
        largest = tuple(max(sizes) for sizes in zip(*shapes, strict=True))
        padded = []
        for array in arrays:
            floating = array if array.dtype.kind in "fU" else array.astype(numpy.float64)
            ends = [(0, 0), *((0, target - size) for target, size in zip(largest, array.shape[1:], strict=True))]
            padded.append(numpy.pad(floating, ends, constant_values="" if array.dtype.kind == "U" else numpy.nan))
        arrays = padded
    return numpy.concatenate(arrays)
