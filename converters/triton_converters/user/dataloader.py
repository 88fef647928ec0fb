"""The user's dataloader; every batch is checked before anything is computed with it."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy

from triton_converters.claim_store.dump import KINDS, Array, Batch, is_name, is_unicode
from triton_converters.contract.conversion_requests import ReferenceRequest
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.model_config.data_types import STRINGS, TRITON_BY_NUMPY, packed, strings, triton_type
from triton_converters.user.user_code import call, running

NO_OUTPUTS: Mapping[str, Array] = {}
NO_TYPES: Mapping[str, str] = {}
DECLARED = ("float16", "float64")
"""Types that an input has only if it is declared so: otherwise they are a mistake, as float64 is NumPy's default."""
_END = object()
"""What the iterator gives at its end; an item that is None is a wrong one, such as of a collate function."""


def batches(
    request: ReferenceRequest,
    source: Path,
    input_names: tuple[str, ...],
    batch_size: int | None = None,
    types: Mapping[str, str] = NO_TYPES,
) -> Iterator[Batch]:
    """Yield at most ``max_samples`` samples in the dataloader's batches; the last batch is cut to fit.

    ``source``: directory of the published source. ``input_names``: the model's. ``batch_size``: the size to ask the
    dataloader for; None: the largest that is served. ``types``: of the inputs that are declared as one of DECLARED, by
    name. Outputs are empty. Raises StageError: DataloaderInvalid, and what
    ``user_code.call`` raises.
    """
    assert request.dataloader is not None
    path = request.dataloader.path
    left = request.max_samples
    first = None
    batch_dimension = request.model.max_batch_size > 0
    iterator = _iterate(request, source, batch_size or request.largest_batch_size)
    while left > 0:
        with running(source, path):
            item = next(iterator, _END)
        if item is _END:
            break
        batch = _checked(item, input_names, types, batch_dimension, f"{path}: ")
        if request.needs_labels and not batch.labels:
            message = f"{path}: accuracy.thresholds are set, but the dataloader yields no labels (the third item)"
            raise StageError(Reason.DATALOADER_INVALID, message)
        first = first or batch
        _check_alike(first, batch, f"{path}: ")
        batch = head(batch, left) if batch_dimension else batch
        left -= batch.samples(batch_dimension)
        yield batch
    if first is None:
        raise StageError(Reason.DATALOADER_INVALID, f"{path}: the dataloader yielded no batch")


def head(batch: Batch, count: int) -> Batch:
    """Return the first ``count`` samples of a batch."""
    groups = (batch.inputs, batch.labels, batch.outputs)
    return Batch(batch.ids[:count], *({name: array[:count] for name, array in group.items()} for group in groups))


def _iterate(request: ReferenceRequest, source: Path, batch_size: int) -> Iterator[Any]:
    """Call get_dataloader_fn, then the function that it returns."""
    entrypoint = request.dataloader
    assert entrypoint is not None
    stage: dict[str, int | str] = {
        "batch_size": batch_size,
        "precision": "fp32",
        "output_format": request.model.format,
    }
    generate = call(source, entrypoint, "get_dataloader_fn", stage)
    if not callable(generate):
        message = f"{entrypoint.path}: get_dataloader_fn returned {type(generate).__name__}, not a function"
        raise StageError(Reason.ENTRYPOINT_INVALID, message)
    with running(source, entrypoint.path):
        return iter(generate())


def _checked(
    item: Any, input_names: tuple[str, ...], types: Mapping[str, str], batch_dimension: bool, where: str
) -> Batch:
    """Return one item as a Batch, after checking its arrays against the model's names and each other."""
    if not isinstance(item, tuple | list) or len(item) != 3:
        raise _invalid(f"{where}a batch must be (ids, inputs, labels), not {_describe(item)}")
    ids, inputs, labels = item
    for kind, group in (("inputs", inputs), ("labels", {} if labels is None else labels)):
        if not isinstance(group, Mapping):
            raise _invalid(
                f"{where}inputs and labels must be dicts of arrays by name, but {kind} are {_describe(group)}"
            )
    if set(inputs) != set(input_names):
        raise _invalid(f"{where}inputs are named {sorted(map(str, inputs))}, but the model's are {sorted(input_names)}")
    batch = Batch(
        _plain(ids, f"{where}ids").reshape(-1),
        {name: _served(inputs[name], types.get(name, "float32"), f"{where}input {name}") for name in input_names},
        _labels(labels or {}, where),
        NO_OUTPUTS,
    )
    if batch_dimension:
        _check_batch_size(batch, where)
        return batch
    # Triton has no scalars, so that models of all frameworks get what a request can hold.
    return replace(batch, inputs={name: array.reshape(array.shape or (1,)) for name, array in batch.inputs.items()})


def _labels(labels: Mapping[Any, Any], where: str) -> dict[str, Array]:
    found: dict[str, Array] = {}
    for key, value in labels.items():
        name = str(key)
        if not is_name(f"labels/{name}"):
            raise _invalid(f"{where}label {name!r:.100} has a name that is too long, or that cannot be printed")
        if name in found:
            raise _invalid(f"{where}two labels are named {name}")
        found[name] = _plain(value, f"{where}label {name}")
    return found


def _check_batch_size(batch: Batch, where: str) -> None:
    sizes = {"ids": len(batch.ids)}
    for kind, group in (("input", batch.inputs), ("label", batch.labels)):
        for name, array in group.items():
            if array.ndim == 0:
                raise _invalid(f"{where}{kind} {name} has no batch dimension; set maxBatchSize to 0 for such a model")
            sizes[f"{kind} {name}"] = len(array)
    if len(set(sizes.values())) != 1:
        raise _invalid(f"{where}batch sizes differ: {', '.join(f'{name} {size}' for name, size in sizes.items())}")
    if not len(batch.ids):
        raise _invalid(f"{where}a batch holds no sample")


def _check_alike(first: Batch, batch: Batch, where: str) -> None:
    """Check that types and ranks of inputs do not change, and that every batch has the same labels."""
    for name, array in batch.inputs.items():
        expected = first.inputs[name]
        if (triton_type(array.dtype), array.ndim) != (triton_type(expected.dtype), expected.ndim):
            message = f"input {name} is {_describe(array)} after {_describe(expected)}; type and rank must not change"
            raise _invalid(f"{where}{message}")
    if batch.labels.keys() != first.labels.keys():
        raise _invalid(f"{where}a batch has labels {sorted(batch.labels)}, but the first had {sorted(first.labels)}")


def _served(value: Any, floating: str, where: str) -> Array:
    """Return an array whose type an input may have; no type is changed silently.

    ``floating``: the type that it must have if it is of floating point.
    """
    array = _plain(_listed(value), where)
    if array.dtype.kind == "S":
        raise _invalid(f"{where} is {array.dtype}, whose zeros at an end NumPy drops: give bytes as dtype=object")
    is_known = array.dtype.kind in STRINGS or array.dtype.name in TRITON_BY_NUMPY
    if is_known and (array.dtype.kind != "f" or array.dtype.name == floating):
        return array
    if is_known:
        raise _invalid(f"{where} is {array.dtype}, but the model takes {floating}; add .astype(numpy.{floating})")
    raise _invalid(f"{where} is {array.dtype}, a type that no model input can have")


def _listed(value: Any) -> Any:
    """Return lists of bytes as objects, which keep the zeros at an end; anything else as it is."""
    first = _first(value)
    return numpy.array(value, dtype=object) if isinstance(first, bytes) and first is not value else value


def _texts(value: Any) -> Any:
    """Return lists of text as objects, none of which is as long as the longest; anything else as it is."""
    first = _first(value)
    if not isinstance(first, str) or first is value:
        return value
    try:
        found = numpy.array(value, dtype=object)
    # Lists of different lengths: NumPy's own words come where they are made an array.
    except ValueError:
        return value
    return found if all(isinstance(each, str) for each in found.flat) else value


def _first(value: Any) -> Any:
    while isinstance(value, list | tuple) and value:
        value = value[0]
    return value


def _plain(value: Any, where: str) -> Array:
    """Return an array of numbers of NumPy's types, of text of a fixed width, or of objects that are bytes."""
    array = _array(_texts(value), where)
    if array.dtype.hasobject and (array := _of_objects(array, where)).dtype.hasobject:
        return array
    if array.dtype.kind not in KINDS:
        raise _invalid(f"{where} is of the type {array.dtype}: give numbers, text or times")
    if array.dtype.kind == "U" and not is_unicode(array):
        raise _invalid(f"{where} holds text that is not Unicode, as names of files may be: encode it in another way")
    return packed(array)


def _of_objects(array: Array, where: str) -> Array:
    """Return Python's objects as an array of text, bytes or numbers."""
    items = list(array.flat)
    try:
        if all(isinstance(each, str | bytes) for each in items):
            return strings(array)
        numbers = numpy.array(items).reshape(array.shape)
    # What numpy.array raises depends on the objects.
    except Exception as error:
        raise _invalid(f"{where}: {error}") from error
    is_number = all(isinstance(each, int | float | complex | numpy.generic) for each in items)
    if numbers.dtype.hasobject or not is_number:
        kinds = ", ".join(sorted({type(each).__name__ for each in items})[:4])
        message = f"its elements are of the types {kinds}: give all as text or bytes, or all as numbers of 64 bits"
        raise _invalid(f"{where}: {message}")
    return numbers


def _array(value: Any, where: str) -> Array:
    try:
        # A copy: many dataloaders fill one buffer again and again, and a batch is kept after the next is asked for.
        return numpy.array(value, order="C")
    # PyTorch raises RuntimeError for a tensor that requires a gradient.
    except Exception as error:
        raise _invalid(f"{where}: {type(value).__name__} cannot be turned into an array: {error}") from error


def _describe(value: Any) -> str:
    if isinstance(value, numpy.ndarray):
        return f"{value.dtype}{list(value.shape)}"
    return f"{type(value).__name__} of {len(value)}" if isinstance(value, tuple | list) else type(value).__name__


def _invalid(message: str) -> StageError:
    return StageError(Reason.DATALOADER_INVALID, message)
