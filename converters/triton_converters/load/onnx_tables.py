"""Which inputs of an ONNX graph choose among rows or classes, and how many there are: embeddings and one-hot codes."""

from collections.abc import Iterator, Mapping
from math import prod
from typing import Any

from onnx import numpy_helper

KEEP_VALUES = {"Cast", "Expand", "Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze"}
"""Operators whose output holds the values of their first input."""
KEEP_SHAPE = {"Cast", "DequantizeLinear", "Identity"}
"""Operators whose output has the shape of their first input."""
CHOOSING = {"Gather": ((1, 0),), "GatherElements": ((1, 0),), "EmbedLayerNormalization": ((0, 2), (1, 4))}
"""Operators that choose rows of a table: the places of the index and of the table among their inputs."""


def rows(graph: Any) -> Mapping[str, int]:
    """Return the number of rows of the smallest table that an input indexes, by the input's name.

    Numbers that an input is compared with are a table too: of a one-hot code. ``graph``: an ``onnx.GraphProto``; its
    nodes are in the order of computation.
    """
    tables = {each.name: tuple(each.dims) for each in graph.initializer}
    depths = {each.name: int(numpy_helper.to_array(each).item()) for each in graph.initializer if _is_number(each)}
    origin = {each.name: each.name for each in graph.input}
    found: dict[str, int] = {}
    for node in graph.node:
        if node.op_type == "Constant":
            values = (each.t for each in node.attribute if each.HasField("t"))
            tables |= {name: tuple(value.dims) for name, value in zip(node.output, values, strict=False)}
        for index, count in _choices(node, tables, depths):
            if name := origin.get(index):
                found[name] = min(count, found.get(name, count))
        if node.op_type in KEEP_VALUES and node.input[0] in origin:
            origin[node.output[0]] = origin[node.input[0]]
        if node.op_type in KEEP_SHAPE and node.input[0] in tables:
            tables[node.output[0]] = tables[node.input[0]]
    return found


def _choices(node: Any, tables: Mapping[str, tuple[int, ...]], depths: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    """Yield the tensor that chooses among rows or numbers of a table, and how many these are."""
    axis = next((each.i for each in node.attribute if each.name == "axis"), 0)
    for index, table in CHOOSING.get(node.op_type, ()):
        if len(node.input) > table and tables.get(node.input[table]):
            yield node.input[index], tables[node.input[table]][axis]
    if node.op_type == "GatherND" and tables.get(node.input[0]):
        yield node.input[1], min(tables[node.input[0]])
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
