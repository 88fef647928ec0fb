"""Probabilities as a tensor: converters of scikit-learn, LightGBM and XGBoost zip them into dictionaries by default."""

from typing import Any

import onnx

DOMAIN, OPERATOR = "ai.onnx.ml", "ZipMap"


def unzip(model: Any) -> bool:
    """Let outputs that are lists of dictionaries, by class, be tensors [samples, classes]; return whether any was.

    Triton serves tensors only, and the dictionary holds nothing but the tensor's values.
    """
    outputs = {value.name: value for value in model.graph.output}
    nodes = [each for each in model.graph.node if (each.domain, each.op_type) == (DOMAIN, OPERATOR)]
    zipped = [node for node in nodes if node.output[0] in outputs]
    for node in zipped:
        classes = sum(len(attribute.ints) + len(attribute.strings) for attribute in node.attribute)
        tensor = onnx.helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, [None, classes])
        outputs[node.output[0]].type.CopyFrom(tensor)
        node.CopyFrom(onnx.helper.make_node("Identity", node.input, node.output, name=node.name))
    return bool(zipped)
