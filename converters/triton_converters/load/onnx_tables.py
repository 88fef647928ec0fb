"""Which inputs of an ONNX graph choose among rows or classes, and how many there are: embeddings and one-hot codes."""

from collections.abc import Iterable, Iterator, Mapping
from math import prod
from typing import Any

from onnx import numpy_helper

from triton_converters.graph.walk import bodies, graphs

_SAME = {"Cast", "Expand", "Flatten", "Identity", "Imputer", "Reshape", "Squeeze", "Tile", "Transpose", "Unsqueeze"}
KEPT = dict.fromkeys(_SAME | {"ArrayFeatureExtractor", "Gather", "Slice", "Split"}, slice(1)) | {"Concat": slice(None)}
"""Operators whose outputs hold values of some of their inputs, and which inputs these are."""
MADE = {
    **KEPT,
    **dict.fromkeys(("Abs", "BitShift", "Ceil", "Clip", "Div", "Floor", "Mod", "Neg", "Round"), slice(1)),
    **dict.fromkeys(("Add", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Max", "Min", "Mul", "Sub", "Sum"), slice(None)),
    **dict.fromkeys(("Compress", "Dropout", "GatherElements", "GatherND", "Pad", "ReverseSequence", "Trilu"), slice(1)),
    **dict.fromkeys(("ConcatFromSequence", "ReduceMax", "ReduceMin", "SequenceAt", "SplitToSequence"), slice(1)),
    "SequenceConstruct": slice(None),
    **dict.fromkeys(("ScatterElements", "ScatterND"), slice(0, None, 2)),
    "Where": slice(1, None),
}
"""Operators whose outputs hold values of some of their inputs, or other numbers that are made of these."""
KEEP_SHAPE = {"Cast", "DequantizeLinear", "Identity"}
"""Operators whose output has the shape of their first input."""
CHOOSING = {
    **dict.fromkeys(("Gather", "GatherBlockQuantized", "GatherElements", "ScatterElements"), ((1, 0),)),
    "EmbedLayerNormalization": ((0, 2), (1, 4), (8, 3)),
}
"""Operators that choose rows of a table: the places of the index and of the table among their inputs."""
SEVERAL = {"GatherND", "ScatterND"}
"""Operators whose second input is an index into as many dimensions of the first as only shapes tell."""
COUNTED = {
    **dict.fromkeys(("Expand", "OneHot", "Pad", "Reshape", "ReverseSequence", "Split", "Tile", "TopK"), slice(1, 2)),
    **dict.fromkeys(("GRU", "LSTM", "RNN"), slice(4, 5)),
    **dict.fromkeys(("ConstantOfShape", "Loop"), slice(1)),
    "GroupQueryAttention": slice(5, 7),
    "Range": slice(None),
    "Resize": slice(2, None),
}
"""Operators that take sizes, lengths or counts, and which of their inputs these are."""
UNKNOWN = 2**16
"""How many rows a table is taken to have that the graph computes."""


def rows(graph: Any) -> Mapping[str, int]:
    """Return the number of rows of the smallest table that an input indexes as it is, by the input's name.

    Numbers that an input is compared with are a table too: of a one-hot code. ``graph``: an ``onnx.GraphProto``; its
    nodes are in the order of computation.
    """
    origins = _origins(graph, KEPT)
    found: dict[str, int] = {}
    for index, count, is_clear in _choices(graph):
        for name in origins.get(index, ()) if is_clear else ():
            found[name] = min(count, found.get(name, count))
    return found


def about(graph: Any) -> Mapping[str, int]:
    """Return about how many rows there are where numbers that are made of an input choose some, by the input's name.

    Only the model knows what it takes there, also where the table is computed or lies in the body of an If or a loop.
    An input that is a size or a count too is none of these. ``graph``: as that of ``rows``.
    """
    kept, made = _origins(graph, KEPT), _origins(graph, MADE)
    most: dict[str, int] = {}
    unclear = set[str]()
    for index, count, is_clear in _choices(graph):
        for name in made.get(index, ()):
            most[name] = max(count, most.get(name, 0))
            unclear |= set() if is_clear and name in kept.get(index, ()) else {name}
    for node in _nodes(graph):
        for size in node.input[COUNTED[node.op_type]] if node.op_type in COUNTED else ():
            unclear -= made.get(size, set())
    return {name: most[name] or UNKNOWN for name in unclear}


def special(graph: Any) -> Mapping[str, tuple[int, ...]]:
    """Return the single numbers that an input is compared with, such as the one that ends a text, by the input's name.

    ``graph``: as that of ``rows``.
    """
    numbers = _numbers(graph)
    origins = _origins(graph, KEPT)
    found: dict[str, set[int]] = {}
    for node in _nodes(graph):
        if node.op_type == "Equal":
            for index, number in (node.input, reversed(node.input)):
                for name in origins.get(index, ()) if number in numbers else ():
                    found.setdefault(name, set()).add(numbers[number])
    return {name: tuple(sorted(each)) for name, each in found.items()}


def _graphs(graph: Any) -> list[Any]:
    """Return the graph and those inside its nodes, each after the one that it may read from."""
    return list(graphs(graph))[::-1]


def _nodes(graph: Any) -> Iterator[Any]:
    return (node for each in _graphs(graph) for node in each.node)


def _origins(graph: Any, followed: Mapping[str, slice]) -> dict[str, frozenset[str]]:
    """Return the inputs whose values a tensor holds, or is made of, by the tensor's name."""
    origins = {each.name: frozenset({each.name}) for each in graph.input}

    def union(names: Iterable[str]) -> frozenset[str]:
        return frozenset[str]().union(*(origins.get(name, ()) for name in names))

    def follow(nodes: Iterable[Any]) -> None:
        for node in nodes:
            held = union(node.input[followed.get(node.op_type, slice(0))])
            origins.update(dict.fromkeys(node.output, held) if held else {})
            for body in bodies(node):
                origins.update({each.name: union([name]) for each, name in zip(body.input, node.input, strict=False)})
                follow(body.node)
                # The first output of a Loop's body tells whether it goes on.
                inner = body.output[1 if node.op_type == "Loop" else 0 :]
                for name, each in zip(node.output, inner, strict=False):
                    origins[name] = union([name, each.name])

    follow(graph.node)
    return origins


def _constants(graph: Any) -> dict[str, Any]:
    """Return weights and constants by name, as ``onnx.TensorProto``."""
    given = {each.name: each for inner in _graphs(graph) for each in inner.initializer}
    for node in _nodes(graph):
        if node.op_type == "Constant":
            values = (each.t for each in node.attribute if each.HasField("t"))
            given |= dict(zip(node.output, values, strict=False))
    return given


def _numbers(graph: Any) -> dict[str, int]:
    """Return the single integers among weights and constants, by name."""
    given = _constants(graph).items()
    numbers = {name: int(numpy_helper.to_array(each).item()) for name, each in given if _is_number(each)}
    for node in _nodes(graph):
        if node.op_type in _SAME and node.input[0] in numbers:
            numbers[node.output[0]] = numbers[node.input[0]]
    return numbers


def _choices(graph: Any) -> Iterator[tuple[str, int, bool]]:
    """Yield each tensor that chooses among rows or numbers, how many these are, and whether all of them are valid.

    The number is 0 of a table that is computed. What lies in a body is not clear: two of them may use one name.
    """
    tables = {name: tuple(each.dims) for name, each in _constants(graph).items()}
    depths = _numbers(graph)
    for inner in _graphs(graph):
        for node in inner.node:
            if node.op_type in KEEP_SHAPE and node.input[0] in tables:
                tables[node.output[0]] = tables[node.input[0]]
            for index, count in _chosen(node, tables, depths):
                yield index, count, bool(count) and inner is graph and node.op_type not in SEVERAL


def _chosen(node: Any, tables: Mapping[str, tuple[int, ...]], depths: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    axis = next((each.i for each in node.attribute if each.name == "axis"), 0)
    for index, table in CHOOSING.get(node.op_type, ()):
        if len(node.input) > max(index, table):
            sizes = tables.get(node.input[table])
            yield node.input[index], sizes[axis] if sizes else 0
    if node.op_type in SEVERAL:
        yield node.input[1], max(tables.get(node.input[0], ()), default=0)
    elif node.op_type == "OneHot" and node.input[1] in depths:
        yield node.input[0], depths[node.input[1]]
    elif node.op_type == "Equal":
        for index, numbers in (node.input, reversed(node.input)):
            if (count := prod(tables.get(numbers, ()))) > 1:
                yield index, count


def _is_number(tensor: Any) -> bool:
    """Whether a weight is a single integer, and in the graph's own file."""
    is_integer = tensor.data_type in (tensor.INT32, tensor.INT64) and tensor.data_location != tensor.EXTERNAL
    return is_integer and prod(tensor.dims) == 1
