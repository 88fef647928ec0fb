"""Which inputs of an ONNX graph index tables, such as embeddings, and how many rows these have."""

from collections.abc import Mapping
from typing import Any

KEEP_VALUES = {"Cast", "Expand", "Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze"}
"""Operators whose output holds the values of their first input."""
KEEP_SHAPE = {"Cast", "DequantizeLinear", "Identity"}
"""Operators whose output has the shape of their first input."""


def rows(graph: Any) -> Mapping[str, int]:
    """Return the number of rows of the smallest table that an input indexes, by the input's name.

    ``graph``: an ``onnx.GraphProto``; its nodes are in the order of computation.
    """
    tables = {each.name: tuple(each.dims) for each in graph.initializer}
    origin = {each.name: each.name for each in graph.input}
    found: dict[str, int] = {}
    for node in graph.node:
        if node.op_type == "Constant":
            values = (each.t for each in node.attribute if each.HasField("t"))
            tables |= {name: tuple(value.dims) for name, value in zip(node.output, values, strict=False)}
        elif node.op_type == "Gather":
            shape, name = tables.get(node.input[0]), origin.get(node.input[1])
            axis = next((each.i for each in node.attribute if each.name == "axis"), 0)
            if shape and name:
                found[name] = min(shape[axis], found.get(name, shape[axis]))
        if node.op_type in KEEP_VALUES and node.input[0] in origin:
            origin[node.output[0]] = origin[node.input[0]]
        if node.op_type in KEEP_SHAPE and node.input[0] in tables:
            tables[node.output[0]] = tables[node.input[0]]
    return found
