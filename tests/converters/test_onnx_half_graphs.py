"""Sound graphs of every kind that tools write are cast to fp16, and answer in it what they answer in fp32."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.converters.onnx_models import Graph
from triton_converters.convert.onnx_precision import to_fp16
from triton_converters.convert.task import ConversionWarning

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
ROWS = ["n", 3]
Case = tuple[Any, dict[str, Any]]
X = numpy.array([[1.5, -2.0, 3.0]], numpy.float32)


def run(model: Any, feed: dict[str, Any]) -> list[Any]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    # As it is written: optimizers undo casts.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return list(session.run(None, feed))


def graph_of(nodes: list[Any], outputs: dict[str, list[Any]], *weights: Any) -> Any:
    """A graph of one input x, float32[n, 3]; ``outputs``: their shapes."""
    return helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("x", FLOAT, ["n", 3])],
        [helper.make_tensor_value_info(name, FLOAT, shape) for name, shape in outputs.items()],
        list(weights),
    )


def model_of(graph: Any, opset: int = 17, version: int = 8) -> Any:
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=version)


def weight(name: str, values: Any) -> Any:
    return numpy_helper.from_array(numpy.asarray(values, numpy.float32), name)


def of_ir_3() -> Case:
    """PyTorch's exporter wrote weights among the inputs, as IR version 3 asks for, until 2020."""
    graph = graph_of([helper.make_node("Mul", ["x", "w"], ["y"])], {"y": ROWS}, weight("w", [2, 3, 4]))
    graph.input.append(helper.make_tensor_value_info("w", FLOAT, [3]))
    return model_of(graph, 9, 3), {"x": X}


def filled_by_default() -> Case:
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("ConstantOfShape", ["s"], ["zeros"]),
        helper.make_node("Sub", ["zeros", "x"], ["y"]),
    ]
    return model_of(graph_of(nodes, {"y": ROWS})), {"x": X}


def window(kind: str) -> Callable[[], Case]:
    def case() -> Case:
        size = numpy_helper.from_array(numpy.int64(3), "size")
        nodes = [helper.make_node(kind, ["size"], ["w"]), helper.make_node("Mul", ["x", "w"], ["y"])]
        return model_of(graph_of(nodes, {"y": ROWS}, size)), {"x": X}

    return case


def random(kind: str, **attributes: Any) -> Callable[[], Case]:
    def case() -> Case:
        """Noise that is multiplied by 0, so that both answers are known."""
        nodes = [
            helper.make_node(kind, [], ["noise"], shape=[1, 3], **attributes),
            helper.make_node("Mul", ["noise", "zero"], ["nothing"]),
            helper.make_node("Add", ["x", "nothing"], ["y"]),
        ]
        return model_of(graph_of(nodes, {"y": ROWS}, weight("zero", [0]))), {"x": X}

    return case


def sequence_by_default() -> Case:
    nodes = [
        helper.make_node("SequenceEmpty", [], ["none"]),
        helper.make_node("SequenceInsert", ["none", "x"], ["some"]),
        helper.make_node("ConcatFromSequence", ["some"], ["y"], axis=0),
    ]
    return model_of(graph_of(nodes, {"y": ROWS})), {"x": X}


def of_trees_only() -> Case:
    """A graph of ai.onnx.ml alone imports no other operators, so no casts."""
    node = helper.make_node("Scaler", ["x"], ["y"], domain="ai.onnx.ml", offset=[1.0] * 3, scale=[2.0] * 3)
    model = helper.make_model(
        graph_of([node], {"y": ROWS}), opset_imports=[helper.make_opsetid("ai.onnx.ml", 3)], ir_version=8
    )
    return model, {"x": X}


def returning_a_weight(shape: tuple[int, ...]) -> Callable[[], Case]:
    def case() -> Case:
        values = numpy.full(shape, 2.5, numpy.float32)
        nodes = [helper.make_node("Mul", ["x", "w"], ["y"])]
        return model_of(graph_of(nodes, {"y": ROWS, "w": [*shape]}, weight("w", values))), {"x": X}

    return case


def returning_a_constant() -> Case:
    nodes = [
        helper.make_node("Constant", [], ["k"], value=weight("k", [1.5, 2.5])),
        helper.make_node("Neg", ["x"], ["y"]),
    ]
    return model_of(graph_of(nodes, {"y": ROWS, "k": [2]})), {"x": X}


def with_names_that_a_cast_would_take() -> Case:
    nodes = [
        helper.make_node("Neg", ["x"], ["x_fp16"]),
        helper.make_node("Abs", ["x"], ["x_fp32"]),
        helper.make_node("Add", ["x_fp16", "x_fp32"], ["y_fp16"]),
        helper.make_node("Mul", ["y_fp16", "x"], ["y"]),
    ]
    return model_of(graph_of(nodes, {"y": ROWS})), {"x": X}


def with_sparse_weights() -> Case:
    values = weight("w", [2.0, 3.0])
    sparse = helper.make_sparse_tensor(values, numpy_helper.from_array(numpy.array([0, 2])), [3])
    graph = graph_of([helper.make_node("Mul", ["x", "w"], ["y"])], {"y": ROWS})
    graph.sparse_initializer.append(sparse)
    return model_of(graph), {"x": X}


def with_a_sparse_constant() -> Case:
    values, places = weight("k", [2.0, 3.0]), numpy_helper.from_array(numpy.array([[0, 0], [0, 2]]))
    constant = helper.make_node("Constant", [], ["k"], sparse_value=helper.make_sparse_tensor(values, places, [1, 3]))
    return model_of(graph_of([constant, helper.make_node("Mul", ["x", "k"], ["y"])], {"y": ROWS})), {"x": X}


def with_a_size_in_float() -> Case:
    """A length of 3,001 is 3,000 in fp16. PyTorch exports torch.floor(length * scale) so."""
    graph = Graph()
    length = graph.add("Gather", graph.add("Shape", "x"), graph.constant(numpy.array([1])))
    scaled = graph.add("Mul", graph.add("Cast", length, to=FLOAT), graph.constant(numpy.float32(1)))
    whole = graph.add("Cast", graph.add("Floor", scaled), to=INT64)
    shape = graph.add("Concat", graph.constant(numpy.array([1, 1])), whole, axis=0)
    y = graph.add("Reshape", "x", shape)
    model = graph.model({"x": (FLOAT, [1, "n"])}, {"y": (y, FLOAT, [1, 1, "n"])})
    return model, {"x": numpy.ones((1, 3001), numpy.float32)}


def with_lengths_in_float() -> Case:
    """Lengths are an input; those of the features are computed in float, and compared with positions."""
    graph = Graph()
    half = graph.add("Div", graph.add("Cast", "lengths", to=FLOAT), graph.constant(numpy.float32(2)))
    frames = graph.add("Cast", graph.add("Ceil", half), to=INT64)
    is_end = graph.add("Equal", graph.add("Cast", "lengths", to=FLOAT), graph.constant(numpy.float32(3001)))
    model = graph.model(
        {"lengths": (INT64, ["batch"])},
        {"frames": (frames, INT64, ["batch"]), "ends": (is_end, TensorProto.BOOL, ["batch"])},
    )
    return model, {"lengths": numpy.array([3001, 3000, 4099])}


def with_a_scale_in_float() -> Case:
    """What Resize multiplies sizes by is computed of sizes: 3,001 / 1,500 in fp16 gives another size."""
    graph = Graph()
    target = graph.add("Gather", graph.add("Shape", "y"), graph.constant(numpy.array([2])))
    own = graph.add("Gather", graph.add("Shape", "x"), graph.constant(numpy.array([2])))
    scale = graph.add("Div", graph.add("Cast", target, to=FLOAT), graph.add("Cast", own, to=FLOAT))
    scales = graph.add("Concat", graph.constant(numpy.ones(2, numpy.float32)), scale, axis=0)
    z = graph.add("Resize", "x", "", scales, mode="nearest")
    model = graph.model({"x": (FLOAT, [1, 1, "n"]), "y": (FLOAT, [1, 1, "m"])}, {"z": (z, FLOAT, [1, 1, "k"])})
    return model, {"x": numpy.ones((1, 1, 1500), numpy.float32), "y": numpy.ones((1, 1, 3001), numpy.float32)}


def with_class_numbers_in_float() -> Case:
    """Class 3,001 is class 3,000 in fp16."""
    graph = Graph()
    best = graph.add("ArgMax", "x", axis=1, keepdims=0)
    classes = graph.add("Unsqueeze", graph.add("Cast", best, to=FLOAT), graph.constant(numpy.array([1])))
    model = graph.model({"x": (FLOAT, ["n", 4000])}, {"y": (classes, FLOAT, ["n", 1])})
    return model, {"x": numpy.eye(4000, dtype=numpy.float32)[[3, 2049, 3001]]}


def with_row_numbers_in_float() -> Case:
    """A table of float32 has a column that chooses among the rows of another one."""
    graph = Graph()
    column = graph.add("Gather", "x", graph.constant(numpy.array(1)), axis=1)
    chosen = graph.add("Cast", graph.add("Floor", column), to=INT64)
    rows = graph.constant(numpy.arange(4000, dtype=numpy.float32)[:, None] % 7)
    model = graph.model({"x": (FLOAT, ["n", 3])}, {"y": (graph.add("Gather", rows, chosen), FLOAT, ["n", 1])})
    return model, {"x": numpy.array([[0.5, 2049, 1], [0.5, 3001, 1]], numpy.float32)}


def with_an_input_returned() -> Case:
    """The number of a sample comes back next to its answer."""
    graph = Graph()
    number = graph.add("Reshape", "id", graph.constant(numpy.array([-1, 1])))
    model = graph.model(
        {"id": (FLOAT, ["n"]), "x": (FLOAT, ["n", 3])},
        {"number": (number, FLOAT, ["n", 1]), "y": (graph.add("Relu", "x"), FLOAT, ["n", 3])},
    )
    return model, {"id": numpy.array([123_457], numpy.float32), "x": X}


def with_two_kept_in_a_row() -> Case:
    """What one operator without fp16 gives, another one takes."""
    graph = Graph()
    limits = [graph.constant(numpy.float32(value)) for value in (0, 3, 1)]
    counted = graph.add("Range", *limits)
    y = graph.add("Add", "x", graph.add("MeanVarianceNormalization", counted, axes=[0]))
    graph.nodes += [helper.make_node("Identity", [counted], ["copy"])]
    model = graph.model({"x": (FLOAT, ["n", 3])}, {"y": (y, FLOAT, ["n", 3])})
    return model, {"x": X}


def with_bits_taken_for_a_number() -> Case:
    graph = Graph()
    bits = graph.add("BitCast", graph.add("Neg", "x"), to=TensorProto.INT32)
    model = graph.model({"x": (FLOAT, ["n", 3])}, {"y": (bits, TensorProto.INT32, ["n", 3])}, opset=26)
    return model, {"x": X}


def with_an_addition_in_place() -> Case:
    """ONNX Runtime's CPU adds to places of a tensor in fp32 alone."""
    graph = Graph()
    y = graph.add(
        "ScatterND", graph.add("Neg", "x"), graph.constant(numpy.array([[0]])), graph.weight(1, 3), reduction="add"
    )
    return graph.model({"x": (FLOAT, ["n", 3])}, {"y": (y, FLOAT, ["n", 3])}, opset=18), {"x": X}


CASES = {
    "IR 3": of_ir_3,
    "ConstantOfShape": filled_by_default,
    **{kind: window(kind) for kind in ("HannWindow", "HammingWindow", "BlackmanWindow")},
    "RandomNormal": random("RandomNormal"),
    "RandomUniform": random("RandomUniform"),
    "SequenceEmpty": sequence_by_default,
    "ai.onnx.ml": of_trees_only,
    "a weight returned": returning_a_weight((3,)),
    "a number returned": returning_a_weight(()),
    "a constant returned": returning_a_constant,
    "names": with_names_that_a_cast_would_take,
    "sparse weights": with_sparse_weights,
    "sparse constant": with_a_sparse_constant,
    "size": with_a_size_in_float,
    "lengths": with_lengths_in_float,
    "scale": with_a_scale_in_float,
    "class numbers": with_class_numbers_in_float,
    "row numbers": with_row_numbers_in_float,
    "an input returned": with_an_input_returned,
    "kept twice": with_two_kept_in_a_row,
    "bits": with_bits_taken_for_a_number,
    "addition in place": with_an_addition_in_place,
}


@pytest.mark.parametrize("name", CASES)
def test_a_sound_graph_is_cast(name: str) -> None:
    model, feed = CASES[name]()
    before = run(model, feed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConversionWarning)
        half = to_fp16(onnx.ModelProto.FromString(model.SerializeToString()))
    onnx.checker.check_model(half)
    assert [(each.name, each.type.tensor_type.elem_type) for each in half.graph.output] == [
        (each.name, each.type.tensor_type.elem_type) for each in model.graph.output
    ]
    for expected, answer in zip(before, run(half, feed), strict=True):
        assert (answer.dtype, answer.shape) == (expected.dtype, expected.shape)
        if expected.dtype.kind == "f" and not numpy.array_equal(expected, numpy.round(expected)):
            numpy.testing.assert_allclose(answer, expected, rtol=2e-3, atol=2e-3)
        else:
            numpy.testing.assert_array_equal(answer, expected)


def test_a_graph_of_which_nothing_can_be_fp16_says_so() -> None:
    model, _ = of_trees_only()
    with pytest.warns(ConversionWarning, match="no operator of the graph computes in fp16"):
        half = to_fp16(model)
    assert [node.op_type for node in half.graph.node] == ["Scaler"]


@pytest.mark.parametrize("operator", ["ArgMax", "TopK"])
def test_the_place_of_the_largest_integer_needs_every_digit(operator: str) -> None:
    """The end of a text has its largest number, and CLIP asks for its place: beyond 2,048, fp16 lacks most integers."""
    graph = Graph()
    given = graph.add("Cast", "ids", to=FLOAT)
    most = [graph.constant(numpy.array([1]))] if operator == "TopK" else []
    graph.nodes.append(
        helper.make_node(operator, [given, *most], ["most", "place"] if most else ["place"], name="largest", axis=1)
    )
    half = to_fp16(graph.model({"ids": (INT64, ["n", 3])}, {"y": ("place", INT64, ["n", 1])}))
    (taken,) = (node.input[0] for node in half.graph.node if node.op_type == operator)
    (cast,) = (node for node in half.graph.node if taken in node.output)
    assert (list(cast.input), cast.attribute[0].i) == (["ids"], FLOAT)


@pytest.mark.parametrize("operator", ["ArgMax", "Greater", "Cast"])
def test_a_layer_that_judges_integers_is_no_count(operator: str) -> None:
    """A table of weights makes scores of them, and the class of the best one needs no fp32."""
    graph = Graph()
    scores = graph.add("MatMul", graph.add("Cast", "x", to=FLOAT), graph.weight(8, 5))
    scores = graph.add("Add", scores, graph.weight(5))
    more = {
        "ArgMax": ((), {"axis": 1}),
        "Greater": ((graph.constant(numpy.float32(0)),), {}),
        "Cast": ((), {"to": INT64}),
    }
    given, attributes = more[operator]
    y = graph.add(operator, scores, *given, **attributes)
    kind = TensorProto.BOOL if operator == "Greater" else INT64
    half = to_fp16(graph.model({"x": (INT64, ["n", 8])}, {"y": (y, kind, ["n", None])}))
    assert {tensor.data_type for tensor in half.graph.initializer} == {TensorProto.FLOAT16}


def test_a_mask_of_integers_is_computed_in_fp16_so_that_it_stays_finite() -> None:
    """It counts nothing: what is added to the scores must not be cast from fp32, where it is beyond fp16."""
    graph = Graph()
    hidden = graph.add("Sub", graph.constant(numpy.float32(1)), graph.add("Cast", "mask", to=FLOAT))
    scores = graph.add("Add", "x", graph.add("Mul", hidden, graph.constant(numpy.float32(-1e9))))
    model = graph.model({"x": (FLOAT, ["n"]), "mask": (INT64, ["n"])}, {"y": (scores, FLOAT, ["n"])})
    half = to_fp16(model)
    (answer,) = run(half, {"x": numpy.array([1, 2], numpy.float32), "mask": numpy.array([0, 1])})
    assert numpy.isfinite(answer).all()
    assert answer[1] == 2
