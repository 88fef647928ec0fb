"""A network of ResNet-18's shape, with weights drawn by chance: for speed, never for accuracy."""

from typing import Any

import numpy
from onnx import TensorProto, helper, numpy_helper

SIDE = 112
"""Pixels of a side: with 224 a request takes four times as long, and all sweeps take minutes."""
CHANNELS = (64, 128, 256, 512)
CLASSES = 1000


def residual_network(seed: int = 0) -> Any:
    """Return the graph: `image` float32 [batch, 3, SIDE, SIDE] to `scores` float32 [batch, CLASSES]."""
    random = numpy.random.default_rng(seed)
    weights, nodes = [], []

    def add(kind: str, inputs: list[str], output: str, **attributes: Any) -> str:
        nodes.append(helper.make_node(kind, inputs, [output], **attributes))
        return output

    def weight(name: str, *shape: int) -> str:
        values = random.normal(0, numpy.prod(shape[1:]) ** -0.5, shape).astype(numpy.float32)
        weights.append(numpy_helper.from_array(values, name))
        return name

    def conv(at: str, name: str, sizes: tuple[int, int, int], stride: int) -> str:
        into, out, kernel = sizes
        pads = [kernel // 2] * 4
        given = [at, weight(f"w{name}", out, into, kernel, kernel)]
        return add("Conv", given, f"c{name}", kernel_shape=[kernel, kernel], pads=pads, strides=[stride, stride])

    at = add("Relu", [conv("image", "stem", (3, CHANNELS[0], 7), 2)], "stem")
    at = add("MaxPool", [at], "pooled", kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2])
    into = CHANNELS[0]
    for stage, out in enumerate(CHANNELS):
        for block in range(2):
            name, stride = f"{stage}{block}", 2 if stage and not block else 1
            first = add("Relu", [conv(at, f"{name}a", (into, out, 3), stride)], f"r{name}")
            second = conv(first, f"{name}b", (out, out, 3), 1)
            shortcut = at if into == out else conv(at, f"{name}s", (into, out, 1), stride)
            at = add("Relu", [add("Add", [second, shortcut], f"a{name}")], f"o{name}")
            into = out
    at = add("Flatten", [add("GlobalAveragePool", [at], "average")], "features")
    add("MatMul", [at, weight("head", into, CLASSES)], "scores")
    inputs = [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 3, SIDE, SIDE])]
    outputs = [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["batch", CLASSES])]
    graph = helper.make_graph(nodes, "residual", inputs, outputs, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
