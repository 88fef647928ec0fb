"""ONNX graphs made by hand: seeded weights, real architectures."""

from collections.abc import Sequence
from typing import Any

import numpy
from onnx import TensorProto, helper, numpy_helper


class Graph:
    """Collects nodes; every method gives the name of what it adds."""

    def __init__(self) -> None:
        self.random = numpy.random.default_rng(0)
        self.nodes: list[Any] = []
        self.weights: list[Any] = []

    def constant(self, values: Any) -> str:
        name = f"c{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(numpy.asarray(values), name))
        return name

    def weight(self, *shape: int) -> str:
        fan_in = int(numpy.prod(shape[1:])) or 1
        return self.constant((self.random.standard_normal(shape) * (2 / fan_in) ** 0.5).astype(numpy.float32))

    def add(self, kind: str, *inputs: str, **attributes: Any) -> str:
        name = f"{kind}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [f"{name}_out"], name=name, **attributes))
        return f"{name}_out"

    def conv(self, x: str, inputs: int, outputs: int, size: int, stride: int = 1, rank: int = 2) -> str:
        weights = self.weight(outputs, inputs, *[size] * rank), self.constant(numpy.zeros(outputs, numpy.float32))
        return self.add(
            "Conv", x, *weights, kernel_shape=[size] * rank, strides=[stride] * rank, pads=[size // 2] * 2 * rank
        )

    def model(
        self,
        inputs: dict[str, tuple[int, Sequence[Any]]],
        outputs: dict[str, tuple[str, int, Sequence[Any]]],
        opset: int = 17,
    ) -> Any:
        """``outputs``: by name, the tensor that it is, its type and its shape."""
        for name, (tensor, _, _) in outputs.items():
            self.nodes.append(helper.make_node("Identity", [tensor], [name], name=f"{name}_identity"))
        graph = helper.make_graph(
            self.nodes,
            "graph",
            [helper.make_tensor_value_info(name, *kind) for name, kind in inputs.items()],
            [helper.make_tensor_value_info(name, kind, shape) for name, (_, kind, shape) in outputs.items()],
            self.weights,
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def resnet50(classes: int = 1000) -> Any:
    """ResNet-50 v1.5, batch normalisation folded into the convolutions; x [batch, 3, 224, 224], y [batch, classes]."""
    graph = Graph()
    x = graph.add("Relu", graph.conv("x", 3, 64, 7, 2))
    x = graph.add("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    inputs = 64
    for stage, blocks in enumerate((3, 4, 6, 3)):
        width = 64 * 2**stage
        for block in range(blocks):
            stride = 2 if stage and not block else 1
            y = graph.add("Relu", graph.conv(x, inputs, width, 1))
            y = graph.add("Relu", graph.conv(y, width, width, 3, stride))
            y = graph.conv(y, width, 4 * width, 1)
            shortcut = x if block else graph.conv(x, inputs, 4 * width, 1, stride)
            x = graph.add("Relu", graph.add("Add", y, shortcut))
            inputs = 4 * width
    x = graph.add("Flatten", graph.add("GlobalAveragePool", x))
    x = graph.add("Gemm", x, graph.weight(2048, classes), graph.weight(classes))
    return graph.model(
        {"x": (TensorProto.FLOAT, ["batch", 3, 224, 224])}, {"y": (x, TensorProto.FLOAT, ["batch", classes])}
    )


def unet3d() -> Any:
    """A small 3D U-Net with instance normalisation, as nnU-Net's; x [batch, 4, d, h, w] to y [batch, 3, d, h, w]."""
    graph = Graph()

    def block(x: str, inputs: int, outputs: int, stride: int = 1) -> str:
        x = graph.conv(x, inputs, outputs, 3, stride, rank=3)
        ones, zeros = numpy.ones(outputs, numpy.float32), numpy.zeros(outputs, numpy.float32)
        x = graph.add("InstanceNormalization", x, graph.constant(ones), graph.constant(zeros), epsilon=1e-5)
        return graph.add("LeakyRelu", x, alpha=0.01)

    first = block("x", 4, 8)
    second = block(first, 8, 16, 2)
    deepest = block(second, 16, 32, 2)
    scales = graph.constant(numpy.array([1, 1, 2, 2, 2], numpy.float32))
    up = graph.add(
        "Resize", deepest, "", scales, mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor"
    )
    second = block(graph.add("Concat", up, second, axis=1), 48, 16)
    up = graph.add("ConvTranspose", second, graph.weight(16, 8, 2, 2, 2), strides=[2, 2, 2], kernel_shape=[2, 2, 2])
    first = block(graph.add("Concat", up, first, axis=1), 16, 8)
    y = graph.conv(first, 8, 3, 1, rank=3)
    return graph.model(
        {"x": (TensorProto.FLOAT, ["batch", 4, "d", "h", "w"])},
        {"y": (y, TensorProto.FLOAT, ["batch", 3, "d", "h", "w"])},
    )


def transformer(width: int = 32, heads: int = 4) -> Any:
    """A masked encoder: tokens [batch, n] int64 to features [batch, n, width] and the length [batch] int64 of each."""
    graph = Graph()
    single = numpy.float32

    def dense(x: str, inputs: int, outputs: int) -> str:
        return graph.add("Add", graph.add("MatMul", x, graph.weight(inputs, outputs)), graph.weight(outputs))

    def split(x: str, order: list[int]) -> str:
        shape = graph.constant(numpy.array([0, 0, heads, width // heads]))
        return graph.add("Transpose", graph.add("Reshape", x, shape), perm=order)

    def norm(x: str) -> str:
        return graph.add(
            "LayerNormalization",
            x,
            graph.constant(numpy.ones(width, single)),
            graph.constant(numpy.zeros(width, single)),
        )

    padding = graph.add("Equal", "tokens", graph.constant(numpy.int64(0)))
    x = graph.add("Gather", graph.weight(64, width), "tokens")
    for _ in range(2):
        query, key, value = (dense(x, width, width) for _ in range(3))
        scores = graph.add("MatMul", split(query, [0, 2, 1, 3]), split(key, [0, 2, 3, 1]))
        scores = graph.add("Div", scores, graph.constant(single((width / heads) ** 0.5)))
        mask = graph.add("Unsqueeze", padding, graph.constant(numpy.array([1, 2])))
        weights = graph.add("Softmax", graph.add("Where", mask, graph.constant(single(-1e4)), scores), axis=-1)
        mixed = graph.add("Transpose", graph.add("MatMul", weights, split(value, [0, 2, 1, 3])), perm=[0, 2, 1, 3])
        mixed = graph.add("Reshape", mixed, graph.constant(numpy.array([0, 0, width])))
        x = norm(graph.add("Add", x, dense(mixed, width, width)))
        x = norm(graph.add("Add", x, dense(graph.add("Relu", dense(x, width, 2 * width)), 2 * width, width)))
    present = graph.add("Cast", graph.add("Not", padding), to=TensorProto.FLOAT)
    counted = graph.add("ReduceSum", present, graph.constant(numpy.array([1])), keepdims=0)
    x = graph.add("Mul", x, graph.add("Unsqueeze", present, graph.constant(numpy.array([2]))))
    return graph.model(
        {"tokens": (TensorProto.INT64, ["batch", "n"])},
        {
            "features": (x, TensorProto.FLOAT, ["batch", "n", width]),
            "length": (graph.add("Cast", counted, to=TensorProto.INT64), TensorProto.INT64, ["batch"]),
        },
    )


def inputs(name: str, batch: int = 2) -> dict[str, Any]:
    """A seeded batch for the model of that name."""
    random = numpy.random.default_rng(1)
    if name == "transformer":
        tokens = random.integers(1, 64, (batch, 11))
        tokens[:, 8:] = 0
        return {"tokens": tokens}
    shape = (3, 224, 224) if name == "resnet50" else (4, 8, 16, 12)
    return {"x": random.standard_normal((batch, *shape)).astype(numpy.float32)}


MODELS = {"resnet50": resnet50, "unet3d": unet3d, "transformer": transformer}
