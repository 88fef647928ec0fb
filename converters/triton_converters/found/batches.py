"""Whether a graph has a batch dimension: the first axis of every input and output, which is the same open axis."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from triton_converters.contract.formats import SOURCE_FORMATS
from triton_converters.found import axes, protobuf
from triton_converters.found.kinds import SAVED_MODEL, FileKind, kind_of
from triton_converters.found.protobuf import Message

SIGNATURE = "serving_default"
"""The signature of a SavedModel that is served."""

AxisName = str | None
"""An axis: its name if it is open, empty for one without a name; None: it is of one size."""
Axes = Sequence[AxisName]
"""The axes of a tensor; none also if the graph does not tell them."""


def has_batch_dimension(source: Path, path: str) -> bool:
    """Whether the model at ``path`` below the source's directory is a graph with a batch dimension.

    False also if the file does not tell or is no graph; whoever loads it then says what is wrong. Raises OSError.
    """
    place = source / path
    kind = _kind(source, place)
    if kind is not None and kind.format and SOURCE_FORMATS[kind.format].library:
        return True
    first = [shape[0] if shape else None for shape in _shapes(place, kind)]
    names = {each for each in first if each and not axes.UNNAMED.fullmatch(each)}
    return bool(first) and None not in first and len(names) <= 1


def counts_length(source: Path, path: str) -> bool:
    """Whether the first axis of a graph with a batch dimension seems, by the axes' names, to count no samples.

    Only a run can tell. Raises OSError.
    """
    place = source / path
    return any(axes.is_length([name or "" for name in shape]) for shape in _shapes(place, _kind(source, place)))


def _kind(source: Path, place: Path) -> FileKind | None:
    """Return the kind of what lies at a place; None if that is nothing below the source."""
    return kind_of(place) if place.exists() and place.resolve().is_relative_to(source.resolve()) else None


def _shapes(place: Path, kind: FileKind | None) -> list[Axes]:
    """Return the shapes of all inputs and outputs; none if the file does not tell or is no graph."""
    if kind not in _SHAPES:
        return []
    try:
        with protobuf.opened(place / SAVED_MODEL if kind is FileKind.SAVED_MODEL else place) as message:
            return list(_SHAPES[kind](message))
    except ValueError:
        return []


def _of_onnx(model: Message) -> Iterator[Axes]:
    """Yield the shapes of a ModelProto: graph (7) has initializers (5), inputs (11) and outputs (12)."""
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


def _of_value(value: Message) -> Axes:
    """Return the axes of a ValueInfoProto: type (2), tensor_type (1), shape (2), dim (1)."""
    return [
        _axis(dim)
        for kind in value.inner(2)
        for tensor in kind.inner(1)
        for shape in tensor.inner(2)
        for dim in shape.inner(1)
    ]


def _axis(dim: Message) -> AxisName:
    """Return the axis of a TensorShapeProto.Dimension: dim_value (1), dim_param (2)."""
    size = dim.integer(1)
    return dim.text(2) if size is None or size < 0 else None


def _of_saved_model(model: Message) -> Iterator[Axes]:
    """Yield the shapes of the signature: meta_graphs (2), signature_def (5), inputs (1) and outputs (2)."""
    entries = (entry for graph in model.inner(2) for entry in graph.inner(5) if entry.text(1) == SIGNATURE)
    for signature in (each for entry in entries for each in entry.inner(2)):
        for number in (1, 2):
            for tensor in (each for entry in signature.inner(number) for each in entry.inner(2)):
                dims = (dim for shape in tensor.inner(3) for dim in shape.inner(2))
                yield ["" if dim.integer(1) == -1 else None for dim in dims]


_SHAPES: Mapping[FileKind | None, Callable[[Message], Iterator[Axes]]] = {
    FileKind.ONNX: _of_onnx,
    FileKind.SAVED_MODEL: _of_saved_model,
}
