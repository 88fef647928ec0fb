"""The inputs and outputs that an ONNX file declares, read without the library onnx."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from triton_converters.found import protobuf
from triton_converters.found.kinds import FileKind, kind_of
from triton_converters.found.protobuf import Message

TYPES = (
    *("", "FP32", "UINT8", "INT8", "UINT16", "INT16", "INT32", "INT64", "BYTES"),
    *("BOOL", "FP16", "FP64", "UINT32", "UINT64", "", "", "BF16"),
)
"""The names that Triton gives the types of TensorProto.DataType, by their numbers; empty: it has none."""


@dataclass(frozen=True)
class Declared:
    """An input or output of a graph."""

    name: str
    data_type: str
    """The type as Triton names it; empty: the graph does not tell it."""
    dims: tuple[int, ...] | None
    """All sizes, with that of the batch, if it has one; -1: open. None: the graph does not tell them."""

    def fits(self, other: "Declared") -> bool:
        """Whether ``other`` has the same name and type, and sizes that agree."""
        if (self.name, self.data_type) != (other.name, other.data_type) or self.dims is None or other.dims is None:
            return False
        sizes = zip(self.dims, other.dims, strict=False)
        return len(self.dims) == len(other.dims) and all(own == size or -1 in (own, size) for own, size in sizes)


@dataclass(frozen=True)
class Graph:
    """What an ONNX file declares."""

    inputs: tuple[Declared, ...]
    outputs: tuple[Declared, ...]


def of_onnx(path: Path) -> Graph | None:
    """Return what a file declares; None: it is no ONNX graph, or does not tell. Raises OSError."""
    if kind_of(path) is not FileKind.ONNX:
        return None
    try:
        with protobuf.opened(path) as model:
            graph = next(model.inner(7), None)
            if graph is None:
                return None
            # Older graphs list their weights among the inputs.
            weights = {tensor.text(8) for tensor in graph.inner(5)}
            inputs = tuple(each for each in map(_declared, graph.inner(11)) if each.name not in weights)
            outputs = tuple(map(_declared, graph.inner(12)))
    except ValueError:
        return None
    return Graph(inputs, outputs) if inputs and outputs else None


def _declared(value: Message) -> Declared:
    """Return a ValueInfoProto: name (1), type (2), of that tensor_type (1), of that elem_type (1) and shape (2)."""
    tensors = [tensor for kind in value.inner(2) for tensor in kind.inner(1)]
    shapes = [shape for tensor in tensors for shape in tensor.inner(2)]
    numbers = [tensor.integer(1) or 0 for tensor in tensors]
    dims = tuple(_sizes(shapes[0])) if shapes else None
    data_type = TYPES[numbers[0]] if numbers and 0 <= numbers[0] < len(TYPES) else ""
    return Declared(value.text(1), data_type, dims)


def _sizes(shape: Message) -> Iterator[int]:
    """Yield the sizes of a TensorShapeProto: dim (1), of that dim_value (1)."""
    for dim in shape.inner(1):
        size = dim.integer(1)
        yield -1 if size is None or size < 0 else size
