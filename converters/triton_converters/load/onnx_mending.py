"""Mends what other projects' converters write and a server does not take, without changing what the model computes."""

from collections.abc import Iterator, Mapping
from typing import Any

import onnx

LOCALE = "C.UTF-8"
"""The locale with Unicode's letters that every image has. StringNormalizer's default is en_US, which most lack."""


def mend(model: Any) -> bool:
    """Change the model in place; return whether anything was changed.

    Classifiers' lists of dictionaries become tensors, scalars get a dimension, text is normalized in a locale that the
    server has, and a graph gets a name, which ONNX requires and ONNX Runtime does not.
    """
    changed = _unzip(model) + _widen(model) + _localize(model)
    if not model.graph.name:
        model.graph.name, changed = "model", changed + 1
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
    weights = {each.name for each in graph.initializer}
    computed = {name for node in graph.node for name in node.output}
    inputs = [each for each in graph.input if _is_scalar(each) and each.name not in weights]
    outputs = [each for each in graph.output if _is_scalar(each) and each.name in computed]
    if not inputs and not outputs:
        return 0
    inside = {each.name: _unused(model, f"{each.name}_scalar") for each in (*inputs, *outputs)}
    _rename(graph, inside)
    none, one = (_shape(model, name, sizes) for name, sizes in (("shape_of_scalar", []), ("shape_of_one", [1])))
    for each in reversed(inputs):
        graph.node.insert(0, onnx.helper.make_node("Reshape", [each.name, none], [inside[each.name]]))
    for each in outputs:
        graph.node.append(onnx.helper.make_node("Reshape", [inside[each.name], one], [each.name]))
    for each in (*inputs, *outputs):
        each.type.tensor_type.shape.dim.add().dim_value = 1
    return len(inside)


def _is_scalar(value: Any) -> bool:
    kind = value.type.tensor_type
    return value.type.HasField("tensor_type") and kind.HasField("shape") and not kind.shape.dim


def _shape(model: Any, name: str, sizes: list[int]) -> str:
    """Add a shape as a constant of the graph; return its name."""
    free = _unused(model, name)
    model.graph.initializer.append(onnx.helper.make_tensor(free, onnx.TensorProto.INT64, [len(sizes)], sizes))
    return free


def _unused(model: Any, name: str) -> str:
    """Return the name, or a longer one if the graph has it."""
    names = {
        each.name for values in (model.graph.initializer, model.graph.input, model.graph.output) for each in values
    }
    for graph in _graphs(model.graph):
        names |= {each for node in graph.node for each in (*node.input, *node.output)}
    while name in names:
        name += "_"
    return name


def _rename(graph: Any, names: Mapping[str, str]) -> None:
    """Rename tensors in the nodes of a graph, and in the graphs inside those nodes, which see them too."""
    for each in _graphs(graph):
        for node in each.node:
            for tensors in (node.input, node.output):
                tensors[:] = [names.get(tensor, tensor) for tensor in tensors]


def _graphs(graph: Any) -> Iterator[Any]:
    """Yield a graph and all graphs inside its nodes."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            for inner in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
                yield from _graphs(inner)
