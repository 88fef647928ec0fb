"""The user's MetricsCalculator, on one set of outputs: the framework's, or those that a candidate served.

The calculator gets the whole set at once. If a dimension varies between samples, shorter ones are padded with NaN at
the end, and integers become float64 for that. Strings are text; if one of a tensor is none, all are objects of bytes.
Text of very uneven lengths is objects of str, since a fixed width would take many times its memory.
A class that offers only ``update`` and ``metrics`` gets one update.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy

from triton_converters.claim_store.dump import Array, Arrays, Batch
from triton_converters.contract.conversion_requests import Entrypoint
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.model_config.data_types import STRINGS, alike, as_bytes, objects, text
from triton_converters.user import user_code

CLASS = "MetricsCalculator"
Values = Mapping[str, float]


@dataclass(frozen=True)
class DataSet:
    """All samples; the first dimension of every array is the sample."""

    ids: Array
    x: Arrays
    y_real: Arrays
    y_pred: Arrays


def gather(batches: Sequence[Batch], batched: bool, served: Sequence[Arrays] | None = None) -> DataSet:
    """Join the reference's batches, with one entry for each sample, in arrays of their own.

    ``served``: the outputs of each sample as they were served; None: the outputs are the framework's. Without a batch
    dimension (``batched`` false) a batch is one request. If the first dimension of all its arrays is as long as its
    ids, the arrays are joined along it; otherwise each becomes one entry.
    """
    along = batched or all(
        array.ndim > 0 and len(array) == len(batch.ids)
        for batch in batches
        for group in (batch.inputs, batch.labels, batch.outputs)
        for array in group.values()
    )
    answers: Sequence[Arrays] = [batch.outputs for batch in batches]
    if served is not None:
        # One by one: the served shapes may differ within a batch of the reference.
        answers = [{name: array[None] for name, array in each.items()} for each in served] if batched else served
    return DataSet(
        ids=_concatenated(alike(*[batch.ids if along else batch.ids[:1] for batch in batches])),
        x=_join([batch.inputs for batch in batches], along),
        y_real=_join([batch.labels for batch in batches], along),
        y_pred=_join(answers, along),
    )


def calculate(source: Path, entrypoint: Entrypoint, arguments: Mapping[str, int | str], data: DataSet) -> Values:
    """Return the metrics by name, from a calculator of their own.

    ``arguments``: the stage's arguments by name. Raises StageError: MetricFailed, and what ``user_code.call`` raises.
    """
    calculator = user_code.call(source, entrypoint, CLASS, arguments)
    path = entrypoint.path
    given = {"ids": data.ids, "y_pred": data.y_pred, "x": data.x, "y_real": data.y_real}
    with user_code.running(source, path, Reason.METRIC_FAILED):
        if callable(getattr(calculator, "calc", None)):
            values = calculator.calc(**given)
        else:
            calculator.update(**given)
            values = calculator.metrics
    if not isinstance(values, Mapping):
        raise StageError(Reason.METRIC_FAILED, f"{path}: {CLASS} returned {type(values).__name__}, not a dict")
    try:
        return {str(name): float(value) for name, value in values.items()}
    # PyTorch raises RuntimeError for a vector, and an integer may be too large.
    except Exception as error:
        raise StageError(
            Reason.METRIC_FAILED, f"{path}: {CLASS} returned a metric that is not a number: {error}"
        ) from error


def _join(parts: Sequence[Arrays], along: bool) -> dict[str, Array]:
    """Concatenate along the first dimension, or stack; pad every other dimension to its largest size."""
    names = parts[0].keys() if parts else ()
    return {name: _pad([part[name] if along else part[name][None] for part in parts], name) for name in names}


def _pad(arrays: Sequence[Array], name: str) -> Array:
    """Join arrays of one tensor. Raises StageError(MetricFailed) if they have other ranks, or numbers and text."""
    arrays = alike(*arrays)
    for kinds in ([_dimensions(each) for each in arrays], [_kind(each) for each in arrays]):
        if other := next((each for each in kinds if each != kinds[0]), None):
            message = f"{name} has {kinds[0]} in one batch and {other} in another: give all batches the same"
            raise StageError(Reason.METRIC_FAILED, message)
    shapes = {array.shape[1:] for array in arrays}
    if len(shapes) > 1:
        largest = tuple(max(sizes) for sizes in zip(*shapes, strict=True))
        # What is padded has the width of the longest text.
        unpadded = [as_bytes(array) if array.dtype.kind in STRINGS else array for array in arrays]
        arrays = [_padded(array, largest) for array in unpadded]
    return _concatenated(arrays)


def _concatenated(arrays: Sequence[Array]) -> Array:
    whole = numpy.concatenate(arrays)
    return text(whole) if whole.dtype.hasobject else whole


def _padded(array: Array, largest: Sequence[int]) -> Array:
    ends = [(0, 0), *((0, target - size) for target, size in zip(largest, array.shape[1:], strict=True))]
    kind = array.dtype.kind
    if kind == "O":
        return numpy.pad(array, ends, constant_values=objects([b""], (1,)))
    if kind == "S":
        return numpy.pad(array, ends, constant_values=array.dtype.type())
    if kind in "mM":
        return numpy.pad(array, ends, constant_values=array.dtype.type("NaT"))
    floating = array if kind in "fc" else array.astype(numpy.float64)
    return numpy.pad(floating, ends, constant_values=numpy.nan)


def _dimensions(array: Array) -> str:
    return f"{array.ndim} dimension{'' if array.ndim == 1 else 's'}"


def _kind(array: Array) -> str:
    return {"U": "text", "S": "bytes", "O": "bytes", "m": "durations", "M": "times"}.get(array.dtype.kind, "numbers")
