"""Cast a frozen TensorFlow graph to fp16 without changing its inputs and outputs.

It does to the file what TensorFlow's mixed precision does to a graph on a GPU: weights become fp16, operators with an
fp16 kernel compute in fp16, and casts are inserted around operators, inputs and outputs that stay fp32.
"""

import functools
import warnings
from collections.abc import Iterator
from typing import Any

import numpy
import tensorflow as tf
from tensorflow.python.framework import kernels, op_def_registry

from triton_converters.convert.masks import FP16_LIMIT, is_wide
from triton_converters.convert.task import ConversionWarning, warn_of_lost
from triton_converters.convert.tf_graph import FrozenGraph

KEPT = frozenset(
    {
        "Bitcast",
        "Cast",
        "Cumprod",
        "Cumsum",
        "Exp",
        "Expm1",
        "L2Loss",
        "Mean",
        "Placeholder",
        "Pow",
        "Prod",
        "Range",
        "Sum",
    }
)
"""Operators that stay in fp32.

Sums and powers exceed the range or the eleven bits of fp16; TensorFlow's auto_mixed_precision_lists.h denies them too.
What the model casts itself, and what computes sizes (Range), stays as it is; Bitcast needs 32 bits.
"""
FLOAT, HALF = tf.float32.as_datatype_enum, tf.float16.as_datatype_enum


def halve(frozen: FrozenGraph) -> FrozenGraph:
    """Return the graph with fp16 weights and computation.

    A constant beyond 65,504 stays fp32, and so do the operators that take it: the model masks or scales with a scalar;
    a weight causes a warning.
    """
    wide = _wide_constants(frozen.graph)
    graph = tf.compat.v1.GraphDef()
    graph.versions.CopyFrom(frozen.graph.versions)
    for node in frozen.graph.node:
        made = graph.node.add()
        made.CopyFrom(node)
        made.attr.pop("_class", None)
        made.attr.pop("_output_shapes", None)
        if node.name not in wide and not wide.intersection(map(_source, node.input)):
            _narrow(made)
    _cast(graph, {_source(name) for name in frozen.outputs})
    return FrozenGraph(graph, frozen.inputs, frozen.outputs)


def _wide_constants(graph: Any) -> set[str]:
    """Return the names of the constants that stay fp32, and of the identities after them."""
    wide = set()
    for node in graph.node:
        if node.op == "Const" and node.attr["dtype"].type == FLOAT:
            values = tf.make_ndarray(node.attr["value"].tensor)
            if is_wide(values):
                wide.add(node.name)
                if values.ndim:
                    message = f"{node.name} has values outside the range of fp16 ({FP16_LIMIT:.0f}); it stays fp32"
                    warnings.warn(message, ConversionWarning, stacklevel=2)
    before = -1
    while before != len(wide):
        before = len(wide)
        wide |= {node.name for node in graph.node if node.op == "Identity" and _source(node.input[0]) in wide}
    return wide


def _narrow(node: Any) -> None:
    """Turn the node's fp32 into fp16 if TensorFlow has a kernel for that."""
    if node.op == "Const":
        if node.attr["dtype"].type == FLOAT:
            values = tf.make_ndarray(node.attr["value"].tensor)
            halved = values.astype(numpy.float16)
            warn_of_lost(node.name, values, halved)
            node.attr["dtype"].type = HALF
            node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(halved))
        return
    if node.op in KEPT:
        return
    definition = op_def_registry.get(node.op)
    types = {each.name: node.attr[each.name].type for each in definition.attr if each.type == "type"}
    allowed = {each.name: each.allowed_values.list.type for each in definition.attr}
    narrowed = {
        name: HALF if kind == FLOAT and (not allowed[name] or HALF in allowed[name]) else kind
        for name, kind in types.items()
    }
    if narrowed != types and _has_kernel(node.op, tuple(sorted(narrowed.items()))):
        for name, kind in narrowed.items():
            node.attr[name].type = kind


@functools.cache
def _has_kernel(operator: str, types: tuple[tuple[str, int], ...]) -> bool:
    """Whether any device of this TensorFlow computes the operator in these types."""
    given = dict(types)
    return any(
        all(given.get(each.name) in (None, *each.allowed_values.list.type) for each in kernel.constraint)
        for kernel in kernels.get_registered_kernels_for_op(operator).kernel
    )


def _cast(graph: Any, outputs: set[str]) -> None:
    """Insert casts between tensors of one type and readers of the other; outputs become fp32."""
    nodes = {node.name: node for node in graph.node}
    produced = {name: list(_types(op_def_registry.get(node.op).output_arg, node)) for name, node in nodes.items()}
    casts: dict[tuple[str, int], str] = {}
    for node in list(graph.node):
        expected = list(_types(op_def_registry.get(node.op).input_arg, node))
        for index, wanted in enumerate(expected):
            name = node.input[index]
            source, _, port = name.partition(":")
            given = produced[source][int(port or 0)]
            if given == wanted or {given, wanted} != {FLOAT, HALF}:
                continue
            if (name, wanted) not in casts:
                casts[name, wanted] = f"{source}/{port or 0}/cast_{tf.as_dtype(wanted).name}"
                made = graph.node.add(op="Cast", name=casts[name, wanted], input=[name])
                made.attr["SrcT"].type, made.attr["DstT"].type = given, wanted
            node.input[index] = casts[name, wanted]
    for name in outputs:
        if produced[name] == [HALF]:
            _widen_output(graph, nodes[name])


def _widen_output(graph: Any, node: Any) -> None:
    """Turn the identity that ends the graph into the cast back to fp32; it keeps its name."""
    assert node.op == "Identity", f"{node.name} is {node.op}"
    node.op = "Cast"
    del node.attr["T"]
    node.attr["SrcT"].type, node.attr["DstT"].type = HALF, FLOAT


def _types(arguments: Any, node: Any) -> Iterator[int]:
    """Yield the type of each of a node's inputs or outputs, from its operator's definition."""
    for argument in arguments:
        if argument.type_list_attr:
            yield from node.attr[argument.type_list_attr].list.type
            continue
        kind = argument.type or node.attr[argument.type_attr].type
        yield from [kind] * (node.attr[argument.number_attr].i if argument.number_attr else 1)


def _source(tensor: str) -> str:
    """Return the node's name from ``name``, ``name:1`` or the control input ``^name``."""
    return tensor.removeprefix("^").partition(":")[0]
