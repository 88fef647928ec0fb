"""The constants of an ONNX graph: as weights, and in fp16."""

import math
import warnings
from collections.abc import Iterable
from typing import Any

import numpy
from onnx import TensorProto, helper, numpy_helper

from triton_converters.convert.masks import FP16_LIMIT, clamped, is_mask, is_wide
from triton_converters.convert.task import ConversionWarning, warn_of_lost

FP16_SMALLEST = float(numpy.finfo(numpy.float16).smallest_normal)
"""The smallest normal number. Its inverse, about 16,000, is finite in fp16; that of a smaller number may not be."""


def lift(graph: Any) -> None:
    """Turn Constant nodes and sparse weights into weights, and remove weights from the inputs."""
    for sparse in graph.sparse_initializer:
        graph.initializer.append(numpy_helper.from_array(_dense(sparse), sparse.values.name))
    del graph.sparse_initializer[:]
    weights = {tensor.name for tensor in graph.initializer}
    for value in [value for value in graph.input if value.name in weights]:
        graph.input.remove(value)
    kept = []
    for node in graph.node:
        values = _constant(node)
        if values is None:
            kept.append(node)
        else:
            graph.initializer.append(numpy_helper.from_array(values, node.output[0]))
    del graph.node[:]
    graph.node.extend(kept)


def _constant(node: Any) -> Any:
    """Return the array of a Constant node of tensors or floats; None for any other node."""
    if node.op_type != "Constant" or node.domain:
        return None
    for attribute in node.attribute:
        value = helper.get_attribute_value(attribute)
        if attribute.name == "value":
            return numpy_helper.to_array(value)
        if attribute.name == "sparse_value":
            return _dense(value)
        if attribute.name in ("value_float", "value_floats"):
            return numpy.array(value, dtype=numpy.float32)
    return None


def _dense(sparse: Any) -> Any:
    """Return the array of a SparseTensorProto, whose places are numbers in the whole array, or one for each axis."""
    values = numpy_helper.to_array(sparse.values)
    places = numpy_helper.to_array(sparse.indices)
    dense = numpy.zeros(tuple(sparse.dims), values.dtype)
    if places.ndim == 1:
        dense.reshape(-1)[places] = values
    else:
        dense[tuple(places.T)] = values
    return dense


def halve(tensor: Any, is_factor: bool) -> None:
    """Turn a weight into fp16, with warnings of what that loses.

    A single number that is too small for fp16 becomes FP16_SMALLEST, unless it is a factor.
    """
    values = numpy_helper.to_array(tensor)
    if is_wide(values) and not is_mask(values):
        message = f"{tensor.name} has values outside the range of fp16 ({FP16_LIMIT:.0f})"
        warnings.warn(message, ConversionWarning, stacklevel=4)
    halved = _narrow(values if is_factor else _enlarge(values))
    warn_of_lost(tensor.name, values, halved, is_factor)
    tensor.CopyFrom(numpy_helper.from_array(halved, tensor.name))


def halve_attribute(tensor: Any) -> None:
    """Turn the constant of a node's attribute into fp16."""
    tensor.CopyFrom(numpy_helper.from_array(_narrow(_enlarge(numpy_helper.to_array(tensor))), tensor.name))


def _narrow(values: Any) -> Any:
    """Return values in fp16. What masks or scales (-1e9 times 0 must stay 0) is clamped; a weight is not."""
    if is_wide(values) and is_mask(values):
        values = clamped(values)
    with numpy.errstate(over="ignore"):
        return values.astype(numpy.float16)


def _enlarge(values: Any) -> Any:
    """Return the values; a single number that is too small for fp16 becomes the smallest normal one, with its sign.

    Such a number (1e-12) guards a division or a logarithm; as 0 it would let NaN through.
    """
    if values.size != 1 or not 0 < abs(number := values.item()) < FP16_SMALLEST:
        return values
    enlarged = math.copysign(FP16_SMALLEST, number)
    message = f"the constant {number:.4g} is too small for fp16 and becomes {enlarged:.4g}"
    warnings.warn(message, ConversionWarning, stacklevel=5)
    return numpy.full_like(values, enlarged)


def factors(nodes: Iterable[Any]) -> frozenset[str]:
    """Return the names that only Mul reads: enlarged, such a number would scale the result; rounded to 0, lose it."""
    multiplied: set[str] = set()
    read: set[str] = set()
    for node in nodes:
        (multiplied if node.op_type == "Mul" else read).update(node.input)
    return frozenset(multiplied - read)


def is_half(weights: Iterable[Any]) -> bool:
    """Whether weights are fp16 rather than fp32, by elements."""
    elements = {TensorProto.FLOAT: 0, TensorProto.FLOAT16: 0}
    for tensor in weights:
        if tensor.data_type in elements:
            elements[tensor.data_type] += math.prod(tensor.dims)
    return elements[TensorProto.FLOAT16] > elements[TensorProto.FLOAT]
