"""A network that multiplies by the same matrix again and again: 20 layers take about 1 ms of one core."""

import numpy
from onnx import NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

WIDTH = 1024


def over_features(layers: int) -> bytes:
    """An ONNX file: input `x`, WIDTH numbers a sample."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", WIDTH])
    return _file([], {}, x, ["batch", WIDTH], layers)


def over_words(layers: int, words: int) -> bytes:
    """An ONNX file: input `word`, a number below ``words``. ONNX Runtime answers a higher one with an error."""
    word = helper.make_tensor_value_info("word", TensorProto.INT64, ["batch", 1])
    table = numpy.random.default_rng(1).standard_normal((words, WIDTH)).astype(numpy.float32)
    lookup = helper.make_node("Gather", ["table", "word"], ["x"], axis=0)
    return _file([lookup], {"table": table}, word, ["batch", 1, WIDTH], layers)


def _file(
    nodes: list[NodeProto],
    tables: dict[str, numpy.ndarray],
    entry: ValueInfoProto,
    shape: list[int | str],
    layers: int,
) -> bytes:
    weights = numpy.random.default_rng(0).standard_normal((WIDTH, WIDTH)).astype(numpy.float32) / WIDTH**0.5
    last = "x"
    for layer in range(layers):
        end = "y" if layer == layers - 1 else f"h{layer}"
        nodes += [
            helper.make_node("MatMul", [last, "weights"], [f"m{layer}"]),
            helper.make_node("Tanh", [f"m{layer}"], [end]),
        ]
        last = end
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)
    constants = [numpy_helper.from_array(value, name) for name, value in ({"weights": weights} | tables).items()]
    made = helper.make_graph(nodes, "deep", [entry], [y], constants)
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return bytes(model.SerializeToString())
