"""Where the columns of a table lie, as far as the graph tells: numbers far from there meet few of its branches.

A tree splits at thresholds, a scaler subtracts means, and neighbours and clusters are rows of the table itself. Numbers
between 0 and 1 are all in one leaf of a tree that was made of prices.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy
from onnx import TensorProto, numpy_helper

from triton_converters.claim_store.dump import Array

DEVIATIONS = 2.0
"""Standard deviations on either side of a mean."""
MARGIN = 0.1
"""Share of a range that is added on either side, so that its ends are passed."""
Range = tuple[float, float]
Limits = tuple[Array, Array]
"""The lowest and the highest number of each column, [columns]; NaN: not known."""


def ranges(graph: Any) -> Mapping[str, tuple[Range, ...]]:
    """Return a range for each column of the inputs that are tables; inputs of which nothing is known are left out.

    ``graph``: a GraphProto; its nodes are in the order of computation.
    """
    # Weights in a file of their own are no table's: those are small.
    known = {each.name: each for each in graph.initializer if each.data_location != TensorProto.EXTERNAL}
    origins = {each.name: (each.name, numpy.arange(count)) for each in graph.input if (count := _columns(each))}
    found: dict[str, Limits] = {}
    # The distance to a row is the sum of squares of both, less twice their product.
    squared = {name for node in graph.node if node.op_type == "ReduceSumSquare" for name in node.input}
    for node in graph.node:
        for place, name in enumerate(node.input):
            if name not in origins:
                continue
            source, columns = origins[name]
            if (kept := _kept(node, place, columns, known)) is not None:
                origins[node.output[0]] = source, kept
            elif (node.op_type != "Gemm" or name in squared) and (limits := _limits(node, len(columns), known)):
                found[source] = _joined(found.get(source), limits, columns, len(origins[source][1]))
    return {name: tuple(_widened(*each) for each in zip(*limits, strict=True)) for name, limits in found.items()}


def _columns(value: Any) -> int:
    """Return the number of columns of a graph's input; 0: it is no table."""
    dims = value.type.tensor_type.shape.dim
    return dims[1].dim_value if len(dims) == 2 else 0


def _kept(node: Any, place: int, columns: Array, known: Mapping[str, Any]) -> Array | None:
    """Return the columns that the node hands on as they are; None: it does something else with them."""
    if node.op_type in ("Cast", "Identity"):
        return columns
    attributes = {each.name: each for each in node.attribute}
    axis = attributes["axis"].i if "axis" in attributes else 0
    if node.op_type == "Gather" and place == 0 and axis in (1, -1) and node.input[1] in known:
        chosen = numpy_helper.to_array(known[node.input[1]])
        if chosen.ndim == 1 and (numpy.abs(chosen) < len(columns)).all():
            found: Array = columns[chosen]
            return found
    return None


def _limits(node: Any, columns: int, known: Mapping[str, Any]) -> Limits | None:
    """Return what a node that reads a table tells of its columns; None: nothing."""
    try:
        if node.op_type in _READERS:
            return _READERS[node.op_type](node, columns)
        if node.op_type not in _COMPARING:
            return None
        others = [numpy_helper.to_array(known[name]) for name in node.input if name in known]
    except (KeyError, ValueError, IndexError):
        # A graph that says what cannot be is refused by the runtime.
        return None
    if node.op_type == "Sub" and others and others[0].size == columns:
        mean = others[0].ravel().astype(numpy.float64)
        return _around(mean, numpy.maximum(numpy.abs(mean), 1.0))
    rows = [each for each in others if each.ndim == 2 and each.shape[1] == columns and len(each) > 1]
    return (rows[0].min(axis=0), rows[0].max(axis=0)) if node.op_type != "Sub" and rows else None


def _around(middle: Array, distance: Array) -> Limits:
    return middle - distance, middle + distance


def _trees(node: Any, columns: int) -> Limits:
    """Return the smallest and the largest threshold of each column."""
    attributes = {each.name: each for each in node.attribute}
    if "nodes_splits" in attributes:
        splits = numpy_helper.to_array(attributes["nodes_splits"].t).astype(numpy.float64)
        features = numpy.array(attributes["nodes_featureids"].ints)
    else:
        branches = numpy.array([each != b"LEAF" for each in attributes["nodes_modes"].strings], dtype=bool)
        splits = numpy.array(attributes["nodes_values"].floats)[branches]
        features = numpy.array(attributes["nodes_featureids"].ints)[branches]
    low, high = numpy.full(columns, numpy.nan), numpy.full(columns, numpy.nan)
    numpy.fmin.at(low, features, splits)
    numpy.fmax.at(high, features, splits)
    return low, high


def _scaler(node: Any, columns: int) -> Limits:
    """Return means and deviations: a Scaler computes (x - offset) * scale."""
    attributes = {each.name: numpy.array(each.floats) for each in node.attribute}
    offset, scale = (numpy.broadcast_to(attributes[name], columns) for name in ("offset", "scale"))
    return _around(offset, DEVIATIONS / numpy.where(scale, numpy.abs(scale), 1.0))


def _support_vectors(node: Any, columns: int) -> Limits:
    """Return the ends of the rows that a support vector machine keeps."""
    attributes = {each.name: numpy.array(each.floats) for each in node.attribute}
    rows = attributes["support_vectors"].reshape(-1, columns)
    return rows.min(axis=0), rows.max(axis=0)


_READERS: Mapping[str, Callable[[Any, int], Limits]] = {
    "TreeEnsemble": _trees,
    "TreeEnsembleClassifier": _trees,
    "TreeEnsembleRegressor": _trees,
    "Scaler": _scaler,
    "SVMClassifier": _support_vectors,
    "SVMRegressor": _support_vectors,
}
_COMPARING = frozenset({"Sub", "Scan", "CDist", "Gemm"})
"""Operators that compare a table with means, or with rows: neighbours, or the middles of clusters."""


def _joined(one: Limits | None, other: Limits, columns: Array, count: int) -> Limits:
    """Return the limits that hold both; ``other`` is of these columns of ``count``."""
    low, high = one or (numpy.full(count, numpy.nan), numpy.full(count, numpy.nan))
    numpy.fmin.at(low, columns, other[0])
    numpy.fmax.at(high, columns, other[1])
    return low, high


def _widened(low: float, high: float) -> Range:
    """Return a range with its margin; from 0 to 1 if it is not known."""
    if not (numpy.isfinite(low) and numpy.isfinite(high)):
        return 0.0, 1.0
    margin = MARGIN * (high - low) or max(abs(low), 1.0)
    return float(low - margin), float(high + margin)
