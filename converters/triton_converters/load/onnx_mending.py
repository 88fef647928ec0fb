"""Mends what other projects' converters write and a server does not take, without changing what the model computes."""

from typing import Any

import onnx

LOCALE = "C.UTF-8"
"""The locale with Unicode's letters that every image has. StringNormalizer's default is en_US, which most lack."""


def mend(model: Any) -> bool:
    """Change the model in place; return whether anything was changed.

    Classifiers' lists of dictionaries become tensors, text is normalized in a locale that the server has, and a graph
    gets a name, which ONNX requires and ONNX Runtime does not.
    """
    changed = _unzip(model) + _localize(model)
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
