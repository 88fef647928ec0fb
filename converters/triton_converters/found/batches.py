"""Whether a graph has a batch dimension: the first axis of every input and output, which is the same open axis."""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from triton_converters.found import protobuf
from triton_converters.found.kinds import SAVED_MODEL, Kind, kind_of
from triton_converters.found.protobuf import Message

NUMBERED = re.compile(r"unk__\d+|(p2o\.)?DynamicDimension\.\d+|.+_dim_0")
"""The names that tf2onnx, Paddle2ONNX and PyTorch (`Softmax4195_dim_0`) make up: each open axis has another one, also
where sizes are equal."""
SIGNATURE = "serving_default"
"""The signature of a SavedModel that is served."""

Axis = str | None
"""A first axis: its name if it is open, empty for one without a name; None: it is of one size, or there is none."""


def has_batch_dimension(source: Path, path: str) -> bool:
    """Whether the model at ``path`` below the source's directory is a graph with a batch dimension.

    False also if the file does not tell or is no graph; whoever loads it then says what is wrong. Raises OSError.
    """
    place = source / path
    if not place.exists() or not place.resolve().is_relative_to(source.resolve()):
        return False
    kind = kind_of(place)
    if kind not in _AXES:
        return False
    try:
        with protobuf.opened(place / SAVED_MODEL if kind is Kind.SAVED_MODEL else place) as message:
            axes = list(_AXES[kind](message))
    except ValueError:
        return False
    names = {each for each in axes if each and not NUMBERED.fullmatch(each)}
    return bool(axes) and None not in axes and len(names) <= 1


def _of_onnx(model: Message) -> Iterator[Axis]:
    """Yield the first axes of a ModelProto: graph (7) has initializers (5), inputs (11) and outputs (12)."""
    for graph in model.inner(7):
        # Older graphs list their weights among the inputs.
        weights = {tensor.text(8) for tensor in graph.inner(5)}
        for value in graph.inner(11):
            if value.text(1) not in weights:
                yield _of_value(value)
        for value in graph.inner(12):
            if not _is_list(value):
                yield _of_value(value)


def _is_list(value: Message) -> bool:
    """Whether a ValueInfoProto is a sequence: type (2), sequence_type (4). It becomes a tensor of probabilities."""
    return any(True for kind in value.inner(2) for _ in kind.inner(4))


def _of_value(value: Message) -> Axis:
    """Return the first axis of a ValueInfoProto: type (2), tensor_type (1), shape (2), dim (1)."""
    dims = (
        dim
        for kind in value.inner(2)
        for tensor in kind.inner(1)
        for shape in tensor.inner(2)
        for dim in shape.inner(1)
    )
    first = next(dims, None)
    if first is None:
        return None
    size = first.integer(1)
    return first.text(2) if size is None or size < 0 else None


def _of_saved_model(model: Message) -> Iterator[Axis]:
    """Yield the first axes of the signature: meta_graphs (2), signature_def (5), inputs (1) and outputs (2)."""
    entries = (entry for graph in model.inner(2) for entry in graph.inner(5) if entry.text(1) == SIGNATURE)
    for signature in (each for entry in entries for each in entry.inner(2)):
        for number in (1, 2):
            for tensor in (each for entry in signature.inner(number) for each in entry.inner(2)):
                dims = (dim for shape in tensor.inner(3) for dim in shape.inner(2))
                first = next(dims, None)
                yield "" if first is not None and first.integer(1) == -1 else None


_AXES: Mapping[Kind | None, Callable[[Message], Iterator[Axis]]] = {
    Kind.ONNX: _of_onnx,
    Kind.SAVED_MODEL: _of_saved_model,
}
