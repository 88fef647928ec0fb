"""ONNX files of the linear model, of its mutants, and of models with other shapes; made without torch."""

from collections.abc import Callable, Sequence

import numpy
import onnx
from linear_model import CLASSES, FEATURES, weights
from onnx import NodeProto, ValueInfoProto, numpy_helper
from onnx.helper import (
    make_graph,
    make_model,
    make_node,
    make_opsetid,
    make_tensor_value_info,
)

from triton_converters.claim_store.dump import Array

FLOAT, INT64, BOOL = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64, onnx.TensorProto.BOOL
STRING = onnx.TensorProto.STRING
Shape = Sequence[str | int]


def value(name: str, shape: Shape, kind: int = FLOAT) -> ValueInfoProto:
    return make_tensor_value_info(name, kind, list(shape))


def model(
    nodes: list[NodeProto], inputs: list[ValueInfoProto], outputs: list[ValueInfoProto], constants: dict[str, Array]
) -> bytes:
    """A file of operator set 17, and 3 of ai.onnx.ml."""
    initializers = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = make_graph(nodes, "test", inputs, outputs, initializers)
    operators = [make_opsetid("", 17), make_opsetid("ai.onnx.ml", 3)]
    made = make_model(graph, opset_imports=operators, ir_version=8)
    onnx.checker.check_model(made)
    return bytes(made.SerializeToString())


def linear(matrix: Array | None = None, names: tuple[str, str] = ("LOGITS", "SCALED"), rows: int = -1) -> bytes:
    """The linear model; ``names``: of the plain and of the scaled logits; ``rows``: a batch size frozen in the graph.

    The frozen size is hidden from shape inference behind the input's values, as a traced ``int(x.max())`` would be.
    """
    plain, scaled = names
    nodes = [
        make_node("Mul", ["FEATURES", "zero"], ["zeros"]),
        make_node("ReduceMax", ["zeros"], ["nothing"], keepdims=0),
        make_node("Cast", ["nothing"], ["none"], to=INT64),
        make_node("Add", ["shape", "none"], ["runtime_shape"]),
        make_node("Reshape", ["FEATURES", "runtime_shape"], ["rows"]),
        make_node("MatMul", ["rows", "weights"], [plain]),
        make_node("Mul", [plain, "three"], ["times"]),
        make_node("Add", ["times", "one"], [scaled]),
        make_node("ArgMax", [plain], ["CLASS"], axis=1, keepdims=1),
    ]
    outputs = [value(plain, ["N", CLASSES]), value(scaled, ["N", CLASSES]), value("CLASS", ["N", 1], INT64)]
    constants = {
        "weights": weights() if matrix is None else matrix.astype(numpy.float32),
        "three": numpy.array(3, dtype=numpy.float32),
        "one": numpy.array(1, dtype=numpy.float32),
        "zero": numpy.array(0, dtype=numpy.float32),
        "shape": numpy.array([rows, FEATURES]),
    }
    return model(nodes, [value("FEATURES", ["N", FEATURES])], outputs, constants)


def half(make: Callable[[Array], bytes]) -> bytes:
    """A file whose weights are float16, cast where they are used."""
    full = onnx.load_from_string(make(weights()))
    stored = next(each for each in full.graph.initializer if each.name == "weights")
    narrow = numpy_helper.to_array(stored).astype(numpy.float16)
    stored.CopyFrom(numpy_helper.from_array(narrow, "weights"))
    matmul = next(node for node in full.graph.node if node.op_type == "MatMul")
    rows, plain = matmul.input[0], matmul.output[0]
    position = list(full.graph.node).index(matmul)
    matmul.input[0], matmul.output[0] = "narrow_rows", "narrow_logits"
    full.graph.node.insert(position, make_node("Cast", [rows], ["narrow_rows"], to=onnx.TensorProto.FLOAT16))
    full.graph.node.insert(position + 2, make_node("Cast", ["narrow_logits"], [plain], to=FLOAT))
    onnx.checker.check_model(full)
    return bytes(full.SerializeToString())


def doubling(shape: Shape) -> bytes:
    """Y = 2 X in any shape."""
    nodes = [make_node("Mul", ["X", "two"], ["Y"])]
    constants = {"two": numpy.array(2, dtype=numpy.float32)}
    return model(nodes, [value("X", shape)], [value("Y", shape)], constants)


def translation(known: dict[str, str]) -> bytes:
    """Words in, and out as they are and translated; for a word that is not known, nothing."""
    keys, values = list(known), list(known.values())
    nodes = [
        make_node("Identity", ["WORDS"], ["SAME"]),
        make_node(
            "LabelEncoder",
            ["WORDS"],
            ["FOREIGN"],
            domain="ai.onnx.ml",
            keys_strings=keys,
            values_strings=values,
            default_string="",
        ),
    ]
    outputs = [value(name, ["N", 2], STRING) for name in ("SAME", "FOREIGN")]
    return model(nodes, [value("WORDS", ["N", 2], STRING)], outputs, {})


def bumpy() -> bytes:
    """A request takes as many rounds of a matrix product as its largest input says."""
    body = make_graph(
        [
            make_node("MatMul", ["state", "matrix"], ["next"]),
            make_node("Identity", ["go"], ["go_on"]),
        ],
        "body",
        [value("round", [], INT64), value("go", [], BOOL), value("state", [128, 128])],
        [value("go_on", [], BOOL), value("next", [128, 128])],
        [numpy_helper.from_array(numpy.eye(128, dtype=numpy.float32), "matrix")],
    )
    nodes = [
        make_node("ReduceMax", ["ROUNDS"], ["most"], keepdims=0),
        make_node("Loop", ["most", "", "matrix_0"], ["last"], body=body),
        make_node("ReduceMax", ["last"], ["largest"], keepdims=0),
        make_node("Cast", ["ROUNDS"], ["rounds"], to=FLOAT),
        make_node("Mul", ["rounds", "largest"], ["DONE"]),
    ]
    constants = {"matrix_0": numpy.eye(128, dtype=numpy.float32)}
    return model(nodes, [value("ROUNDS", ["N", 1], INT64)], [value("DONE", ["N", 1])], constants)
