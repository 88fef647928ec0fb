"""Mends what other projects' converters write and a server does not take, without changing what the model computes."""

from collections.abc import Mapping
from typing import Any

import onnx

from triton_converters.graph.opsets import add_missing
from triton_converters.graph.order import sort
from triton_converters.graph.walk import UnusedNames, graphs

LOCALE = "C.UTF-8"
"""The locale with Unicode's letters that every image has. StringNormalizer's default is en_US, which most lack."""


def mend(model: Any) -> bool:
    """Change the model in place; return whether anything was changed.

    Classifiers' lists of dictionaries become tensors, scalars get a dimension, and text is normalized in a locale that
    the server has. A graph gets what ONNX requires and ONNX Runtime does not: a name, the order of computation, and
    the versions of all operator sets that it uses.
    """
    changed = _unzip(model) + _widen(model) + _localize(model)
    changed += sum(sort(graph) for graph in graphs(model.graph))
    changed += add_missing(model, _domains(model))
    if not model.graph.name:
        model.graph.name = "model"
        changed += 1
    return changed > 0


def _unzip(model: Any) -> int:
    """Let outputs that are lists of dictionaries, by class, be tensors [samples, classes]; return how many were.

    scikit-learn's, LightGBM's and XGBoost's converters zip probabilities into them by default. Triton serves tensors
    only, and the dictionary holds nothing but the tensor's values.
    """
    outputs = {value.name: value for value in model.graph.output}
    nodes = [each for each in model.graph.node if (each.domain, each.op_type) == ("ai.onnx.ml", "ZipMap")]
    zipped = [node for node in nodes if node.output[0] in outputs]
    for node in zipped:
        classes = sum(len(attribute.ints) + len(attribute.strings) for attribute in node.attribute)
        tensor = onnx.helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, [None, classes])
        outputs[node.output[0]].type.CopyFrom(tensor)
        node.CopyFrom(onnx.helper.make_node("Identity", node.input, node.output, name=node.name))
    return len(zipped)


def _localize(model: Any) -> int:
    """Set the locale of nodes that normalize text and leave it out; return how many did."""
    nodes = [each for each in model.graph.node if each.op_type == "StringNormalizer"]
    default = [each for each in nodes if all(attribute.name != "locale" for attribute in each.attribute)]
    for node in default:
        node.attribute.append(onnx.helper.make_attribute("locale", LOCALE))
    return len(default)


def _widen(model: Any) -> int:
    """Let inputs and outputs that are scalars have the shape [1]; return how many were.

    Triton has no scalars: "model input cannot have empty reshape for non-batching model as scalar tensors are not
    supported" (core/src/model_config_utils.cc).
    """
    graph = model.graph
    _declare_scalars(model)
    weights = {each.name for each in graph.initializer}
    inputs = [each for each in graph.input if _is_scalar(each) and each.name not in weights]
    outputs = [each for each in graph.output if _is_scalar(each)]
    if not inputs and not outputs:
        return 0
    # In which weights need not be inputs.
    model.ir_version = max(model.ir_version, 4)
    names = UnusedNames(graph)
    given = {each.name for each in inputs}
    inside = {each.name: names.unused(f"{each.name}_scalar") for each in (*inputs, *outputs)}
    _rename(graph, inside)
    none, one = names.unused("shape_of_scalar"), names.unused("shape_of_one")
    for name, sizes in ((none, []), (one, [1])):
        graph.initializer.append(onnx.helper.make_tensor(name, onnx.TensorProto.INT64, [len(sizes)], sizes))
    for each in reversed(inputs):
        graph.node.insert(0, onnx.helper.make_node("Reshape", [each.name, none], [inside[each.name]]))
    for each in outputs:
        if each.name not in given:
            graph.node.append(onnx.helper.make_node("Reshape", [inside[each.name], one], [each.name]))
    for each in (*inputs, *outputs):
        each.type.tensor_type.shape.dim.add().dim_value = 1
    return len(inside)


def _declare_scalars(model: Any) -> None:
    """Declare the outputs without a shape that are scalars by what their nodes compute."""
    undeclared = {each.name for each in model.graph.output if not each.type.tensor_type.HasField("shape")}
    if not undeclared:
        return
    try:
        inferred = onnx.shape_inference.infer_shapes(model).graph.output
    except (ValueError, RuntimeError):
        # Of a graph that onnx does not take, the runtime may still take all.
        return
    scalars = {each.name for each in inferred if each.name in undeclared and _is_scalar(each)}
    for each in model.graph.output:
        if each.name in scalars:
            each.type.tensor_type.shape.SetInParent()


def _is_scalar(value: Any) -> bool:
    kind = value.type.tensor_type
    return value.type.HasField("tensor_type") and kind.HasField("shape") and not kind.shape.dim


def _rename(graph: Any, names: Mapping[str, str]) -> None:
    """Rename tensors in the nodes of a graph, and in the graphs inside those nodes, which see them too.

    The graph's weights are renamed with them, also where they are among its inputs.
    """
    for each in graphs(graph):
        for node in each.node:
            for tensors in (node.input, node.output):
                tensors[:] = [names.get(tensor, tensor) for tensor in tensors]
        for value in each.output if each is not graph else ():
            value.name = names.get(value.name, value.name)
    weights = {tensor.name for tensor in graph.initializer}
    for value in (*graph.initializer, *(each for each in graph.input if each.name in weights)):
        value.name = names.get(value.name, value.name)


def _domains(model: Any) -> frozenset[str]:
    """Return the domains of all nodes but those of functions, which say themselves what they import."""
    return frozenset(node.domain for graph in graphs(model.graph) for node in graph.node)
