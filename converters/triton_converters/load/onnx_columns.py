"""Where the columns of a table lie, as far as the graph tells: numbers far from there meet few of its branches.

A tree splits at thresholds, a scaler subtracts means, and neighbours and clusters are rows of the table itself. Numbers
between 0 and 1 are all in one leaf of a tree that was made of prices. A column is told by some of its numbers in order,
so that one that is far from the others does not hide them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy
from onnx import TensorProto, numpy_helper

from triton_converters.claim_store.dump import Array

DEVIATIONS = 2.0
"""Standard deviations on either side of a mean."""
MARGIN = 0.1
"""Share of a range that is added on either side, so that its ends are passed."""
MOST = 33
"""Numbers of a column that are kept."""
LARGEST = float(numpy.finfo(numpy.float32).max) / 4
"""Beyond it, a number and its margin may not be finite: some trees split off what is missing at infinity."""
Points = tuple[float, ...]
"""Numbers of a column in ascending order, at least two: between each two lie as many of its rows."""
Columns = list[tuple[str, int]]
"""The columns of a table inside the graph: the input that each comes from, and its place there."""
HandedOn = Callable[[Any, Mapping[str, Columns], Mapping[str, Any]], Columns | None]
"""Returns the columns that a node hands on as they are, by those of tensors and by weights; None: it does not."""
Numbers = list[Array]
"""The numbers that are known of each column; empty: none."""


def points(graph: Any) -> Mapping[str, tuple[Points, ...]]:
    """Return where each column of the inputs that are tables lies; inputs of which nothing is known are left out.

    ``graph``: a GraphProto; its nodes are in the order of computation.
    """
    known = constants(graph)
    widths = widths_by(width, graph)
    found: dict[str, Numbers] = {}
    # The distance to a row is the sum of squares of both, less twice their product.
    squared = {name for node in graph.node if node.op_type == "ReduceSumSquare" for name in node.input}
    for node, origins in readers(graph, widths, known, kept):
        for name in node.input:
            columns = origins.get(name, [])
            if node.op_type != "Gemm" or name in squared:
                for (source, place), numbers in zip(columns, _numbers(node, len(columns), known), strict=True):
                    whole = found.setdefault(source, [numpy.zeros(0)] * widths[source])
                    whole[place] = numpy.concatenate([whole[place], numbers])
    return {name: tuple(map(_points, whole)) for name, whole in found.items() if any(map(len, whole))}


def constants(graph: Any) -> dict[str, Any]:
    """Return the graph's weights by name, but for those in a file of their own: what a table needs is small."""
    return {each.name: each for each in graph.initializer if each.data_location != TensorProto.EXTERNAL}


def widths_by(columns: Callable[[Any], int], graph: Any) -> dict[str, int]:
    """Return how many columns each input has that is a table. ``columns``: counts them; 0: the input is no table."""
    return {each.name: count for each in graph.input if (count := columns(each))}


def readers(
    graph: Any, widths: Mapping[str, int], known: Mapping[str, Any], handed_on: HandedOn
) -> Iterator[tuple[Any, Mapping[str, Columns]]]:
    """Yield the nodes that do something with what they read, and the columns of each tensor that is known by then.

    ``widths``: the number of columns by input; ``known``: weights by name; ``handed_on``: see HandedOn.
    """
    origins: dict[str, Columns] = {name: [(name, place) for place in range(count)] for name, count in widths.items()}
    for node in graph.node:
        if (handed := handed_on(node, origins, known)) is not None:
            origins[node.output[0]] = handed
        else:
            yield node, origins


def width(value: Any) -> int:
    """Return the number of columns of a graph's input; 0: it is no table."""
    dims = value.type.tensor_type.shape.dim
    return dims[1].dim_value if len(dims) == 2 else 0


def kept(node: Any, origins: Mapping[str, Columns], known: Mapping[str, Any]) -> Columns | None:
    """Return the columns that the node hands on as they are; None: it does something else with them."""
    axis = next((each.i for each in node.attribute if each.name == "axis"), 0)
    if node.op_type == "Concat" and axis in (1, -1) and all(name in origins for name in node.input):
        return [column for name in node.input for column in origins[name]]
    if not node.input or node.input[0] not in origins:
        return None
    columns = origins[node.input[0]]
    if node.op_type in ("Cast", "Identity", "Imputer"):
        return columns
    chooses = node.op_type == "ArrayFeatureExtractor" or (node.op_type == "Gather" and axis in (1, -1))
    if chooses and node.input[1] in known:
        chosen = numpy_helper.to_array(known[node.input[1]])
        # A row of places is read as they are by ArrayFeatureExtractor alone.
        chosen = chosen.reshape(-1) if node.op_type == "ArrayFeatureExtractor" else chosen
        if chosen.ndim == 1 and (numpy.abs(chosen) < len(columns)).all():
            return [columns[int(each)] for each in chosen]
    return None


def _numbers(node: Any, columns: int, known: Mapping[str, Any]) -> Numbers:
    """Return what a node that reads a table tells of its columns."""
    try:
        if node.op_type in _READERS:
            return _READERS[node.op_type](node, columns)
        if node.op_type in _COMPARING:
            others = [numpy_helper.to_array(known[name]) for name in node.input if name in known]
            return _compared(node.op_type, others, columns)
    except (KeyError, ValueError, IndexError):
        # A graph that says what cannot be is refused by the runtime.
        pass
    return [numpy.zeros(0)] * columns


def _compared(operator: str, others: Sequence[Array], columns: int) -> Numbers:
    """Return the means that are subtracted from a table, or the rows that it is compared with."""
    if operator == "Sub" and others and others[0].size == columns:
        mean = others[0].ravel().astype(numpy.float64)
        return _around(mean, numpy.maximum(numpy.abs(mean), 1.0))
    rows = [each for each in others if each.ndim == 2 and each.shape[1] == columns and len(each) > 1]
    return list(rows[0].T) if operator != "Sub" and rows else [numpy.zeros(0)] * columns


def _around(middle: Array, distance: Array) -> Numbers:
    return list(numpy.stack([middle - distance, middle + distance], axis=1))


def _trees(node: Any, columns: int) -> Numbers:
    """Return the thresholds of each column."""
    attributes = {each.name: each for each in node.attribute}
    if "nodes_splits" in attributes:
        splits = numpy_helper.to_array(attributes["nodes_splits"].t).astype(numpy.float64)
        features = numpy.array(attributes["nodes_featureids"].ints)
    else:
        branches = numpy.array([each != b"LEAF" for each in attributes["nodes_modes"].strings], dtype=bool)
        splits = numpy.array(attributes["nodes_values"].floats)[branches]
        features = numpy.array(attributes["nodes_featureids"].ints)[branches]
    if len(features) and not 0 <= features.min() <= features.max() < columns:
        raise IndexError(f"{columns} columns")
    return [splits[features == column] for column in range(columns)]


def _scaler(node: Any, columns: int) -> Numbers:
    """Return means and deviations: a Scaler computes (x - offset) * scale."""
    attributes = {each.name: numpy.array(each.floats) for each in node.attribute}
    offset, scale = (numpy.broadcast_to(attributes[name], columns) for name in ("offset", "scale"))
    return _around(offset, DEVIATIONS / numpy.where(scale, numpy.abs(scale), 1.0))


def _support_vectors(node: Any, columns: int) -> Numbers:
    """Return the rows that a support vector machine keeps."""
    attributes = {each.name: numpy.array(each.floats) for each in node.attribute}
    return list(attributes["support_vectors"].reshape(-1, columns).T)


_READERS: Mapping[str, Callable[[Any, int], Numbers]] = {
    "TreeEnsemble": _trees,
    "TreeEnsembleClassifier": _trees,
    "TreeEnsembleRegressor": _trees,
    "Scaler": _scaler,
    "SVMClassifier": _support_vectors,
    "SVMRegressor": _support_vectors,
}
_COMPARING = frozenset({"Sub", "Scan", "CDist", "Gemm"})
"""Operators that compare a table with means, or with rows: neighbours, or the middles of clusters."""


def _points(numbers: Array) -> Points:
    """Return some of the numbers in order, with a margin at both ends; 0 and 1 if none is known."""
    known = numpy.unique(numbers[numpy.abs(numbers) < LARGEST].astype(numpy.float64))
    if not len(known):
        return 0.0, 1.0
    if len(known) > MOST:
        known = known[numpy.linspace(0, len(known) - 1, MOST).round().astype(int)]
    # Next to a number that is far away, the margin is that of its own neighbour.
    gaps = numpy.diff(known) if len(known) > 1 else numpy.array([10 * max(abs(known[0]), 1.0)])
    first, last = (MARGIN * gap * max(1, len(known) - 1) for gap in (gaps[0], gaps[-1]))
    return tuple(float(each) for each in (known[0] - first, *known[1:-1], known[-1] + last))
