"""Which inputs of an ONNX graph choose among rows or classes, and how many there are: embeddings and one-hot codes."""

from collections.abc import Iterator, Mapping
from math import prod
from typing import Any

from onnx import numpy_helper

_SAME = {"Cast", "Expand", "Flatten", "Identity", "Imputer", "Reshape", "Squeeze", "Tile", "Transpose", "Unsqueeze"}
KEEP_VALUES = _SAME | {"ArrayFeatureExtractor", "Gather", "Slice", "Split"}
"""Operators whose outputs hold values of their first input."""
JOIN_VALUES = {"Concat"}
"""Operators whose output holds the values of all inputs."""
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
    depths, origins = _numbers(graph), _origins(graph)
    found: dict[str, int] = {}
    for node in graph.node:
        if node.op_type == "Constant":
            values = (each.t for each in node.attribute if each.HasField("t"))
            tables |= {name: tuple(value.dims) for name, value in zip(node.output, values, strict=False)}
        for index, count in _choices(node, tables, depths):
            for name in origins.get(index, ()):
                found[name] = min(count, found.get(name, count))
        if node.op_type in KEEP_SHAPE and node.input[0] in tables:
            tables[node.output[0]] = tables[node.input[0]]
    return found


def special(graph: Any) -> Mapping[str, tuple[int, ...]]:
    """Return the single numbers that an input is compared with, such as the one that ends a text, by the input's name.

    ``graph``: as that of ``rows``.
    """
    numbers, origins = _numbers(graph), _origins(graph)
    found: dict[str, set[int]] = {}
    for node in graph.node:
        if node.op_type == "Equal":
            for index, number in (node.input, reversed(node.input)):
                for name in origins.get(index, ()) if number in numbers else ():
                    found.setdefault(name, set()).add(numbers[number])
    return {name: tuple(sorted(each)) for name, each in found.items()}


def _origins(graph: Any) -> dict[str, frozenset[str]]:
    """Return the inputs whose values a tensor holds, by the tensor's name."""
    origins = {each.name: frozenset({each.name}) for each in graph.input}
    for node in graph.node:
        given = node.input if node.op_type in JOIN_VALUES else node.input[:1] if node.op_type in KEEP_VALUES else ()
        held = frozenset[str]().union(*(origins.get(name, ()) for name in given))
        if held:
            origins |= dict.fromkeys(node.output, held)
    return origins


def _numbers(graph: Any) -> dict[str, int]:
    """Return the single integers among weights and constants, by name."""
    given = {each.name: each for each in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant":
            values = (each.t for each in node.attribute if each.HasField("t"))
            given |= dict(zip(node.output, values, strict=False))
    return {name: int(numpy_helper.to_array(each).item()) for name, each in given.items() if _is_number(each)}


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
