"""fp16 is put into an ONNX graph: all computes in it that can, the interface stays, only single numbers are clamped."""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from tests.converters.onnx_models import MODELS, Graph, inputs
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.convert.onnx_precision import to_fp16
from triton_converters.convert.task import ConversionWarning

FLOAT = TensorProto.FLOAT


def run(model: Any, feed: dict[str, Any]) -> list[Any]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return list(session.run(None, feed))


def cast(model: Any) -> Any:
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    return to_fp16(copy)


def interface(model: Any) -> list[Any]:
    return [*model.graph.input, *model.graph.output]


@pytest.mark.parametrize("name", MODELS)
def test_real_architectures_answer_in_fp16_what_they_answer_in_fp32(name: str) -> None:
    model, feed = MODELS[name](), inputs(name)
    half = cast(model)
    assert interface(half) == interface(model)
    assert FLOAT not in {
        tensor.data_type for tensor in half.graph.initializer if tensor.name.endswith("_fp32") is False
    }
    for single, answer in zip(run(model, feed), run(half, feed), strict=True):
        assert answer.dtype == single.dtype
        scale = float(numpy.abs(single).max())
        assert 0 <= numpy.abs(answer - single).max() <= 2e-2 * scale


def test_the_scales_of_resize_keep_all_their_digits() -> None:
    graph = Graph()
    scales = graph.constant(numpy.array([1, 1, 1.7, 1.7], numpy.float32))
    y = graph.add("Resize", "x", "", scales, mode="linear")
    half = cast(graph.model({"x": (FLOAT, [1, 1, 10, 10])}, {"y": (y, FLOAT, [1, 1, 17, 17])}))
    kept = {tensor.name: tensor for tensor in half.graph.initializer}[f"{scales}_fp32"]
    assert onnx.numpy_helper.to_array(kept).tolist() == numpy.array([1, 1, 1.7, 1.7], numpy.float32).tolist()
    assert run(half, {"x": numpy.ones((1, 1, 10, 10), numpy.float32)})[0].shape == (1, 1, 17, 17)


def test_an_operator_without_fp16_stays_in_fp32_between_casts() -> None:
    graph = Graph()
    doubled = graph.add("Add", "boxes", "boxes")
    limits = [graph.constant(numpy.array([value], kind)) for value, kind in ((3, numpy.int64), (0.5, numpy.float32))]
    chosen = graph.add("NonMaxSuppression", doubled, "scores", *limits)
    half = cast(
        graph.model(
            {"boxes": (FLOAT, [1, 4, 4]), "scores": (FLOAT, [1, 1, 4])},
            {"chosen": (chosen, TensorProto.INT64, [None, 3])},
        )
    )
    boxes = numpy.array([[[0, 0, 1, 1], [0, 0, 1, 1.01], [2, 2, 3, 3], [4, 4, 5, 5]]], numpy.float32)
    answer = run(half, {"boxes": boxes, "scores": numpy.array([[[0.9, 0.8, 0.7, 0.6]]], numpy.float32)})[0]
    assert answer[:, 2].tolist() == [0, 2, 3]


def test_an_output_that_others_read_and_an_input_that_is_returned() -> None:
    graph = Graph()
    first = graph.add("Mul", "x", "x")
    model = graph.model(
        {"x": (FLOAT, ["n"])}, {"a": (first, FLOAT, ["n"]), "b": ("a", FLOAT, ["n"]), "c": ("x", FLOAT, ["n"])}
    )
    answers = run(cast(model), {"x": numpy.array([1, 2, 3], numpy.float32)})
    assert [answer.tolist() for answer in answers] == [[1, 4, 9], [1, 4, 9], [1, 2, 3]]
    assert {answer.dtype.name for answer in answers} == {"float32"}


def branch(names: Sequence[str], factor: float) -> Any:
    factors = helper.make_node("Constant", [], [f"{names[0]}_k"], value_float=factor)
    nodes = [factors, helper.make_node("Mul", ["x", f"{names[0]}_k"], [names[0]])]
    return helper.make_graph(nodes, names[0], [], [helper.make_tensor_value_info(names[0], FLOAT, ["n"])])


def test_the_bodies_of_control_flow_are_cast_too() -> None:
    graph = Graph()
    y = graph.add("If", "flag", then_branch=branch(["t"], 2.0), else_branch=branch(["e"], 0.5))
    half = cast(
        graph.model({"flag": (TensorProto.BOOL, []), "x": (FLOAT, ["n"])}, {"y": (graph.add("Neg", y), FLOAT, ["n"])})
    )
    x = numpy.array([1, 3], numpy.float32)
    assert run(half, {"flag": numpy.array(True), "x": x})[0].tolist() == [-2, -6]
    assert run(half, {"flag": numpy.array(False), "x": x})[0].tolist() == [-0.5, -1.5]
    node = next(node for node in half.graph.node if node.op_type == "If")
    for attribute in node.attribute:
        assert [tensor.data_type for tensor in attribute.g.initializer] == [TensorProto.FLOAT16]
        assert attribute.g.output[0].type.tensor_type.elem_type == TensorProto.FLOAT16


def test_a_number_that_masks_is_clamped_so_that_what_it_does_not_mask_stays_finite() -> None:
    graph = Graph()
    masked = graph.add("Mul", "mask", graph.constant(numpy.float32(-1e9)))
    y = graph.add("Add", "x", masked)
    half = cast(graph.model({"x": (FLOAT, ["n"]), "mask": (FLOAT, ["n"])}, {"y": (y, FLOAT, ["n"])}))
    answer = run(half, {"x": numpy.array([1, 2], numpy.float32), "mask": numpy.array([0, 1], numpy.float32)})[0]
    assert answer[0] == 1
    assert -65505 < answer[1] < -65000


LOWEST = float(numpy.finfo(numpy.float32).min)
CAUSAL = numpy.triu(numpy.full((2, 2), LOWEST, numpy.float32), 1)


@pytest.mark.parametrize(
    "masks",
    [numpy.full(1, -1e9), numpy.full((1, 1), LOWEST), numpy.full((2, 2), -1e9), CAUSAL, CAUSAL[None]],
    ids=["one", "lowest", "filled", "causal", "causal, of a batch"],
)
def test_a_mask_of_any_shape_stays_finite(masks: Any) -> None:
    graph = Graph()
    hidden = graph.add("Mul", "mask", graph.constant(masks.astype(numpy.float32)))
    model = graph.model(
        {"x": (FLOAT, [2, 2]), "mask": (FLOAT, [2, 2])}, {"y": (graph.add("Add", "x", hidden), FLOAT, None)}
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        half = cast(model)
    x, mask = numpy.ones((2, 2), numpy.float32), numpy.array([[0, 0], [1, 1]], numpy.float32)
    answer = run(half, {"x": x, "mask": mask})[0].reshape(2, 2)
    assert numpy.isfinite(answer).all()
    assert answer[0].tolist() == [1, 1]


@pytest.mark.parametrize("value", [-1e9, LOWEST])
def test_a_tensor_that_is_filled_with_a_mask_stays_finite(value: float) -> None:
    graph = Graph()
    fill = onnx.numpy_helper.from_array(numpy.array([value], numpy.float32))
    filled = graph.add("ConstantOfShape", graph.add("Shape", "x"), value=fill)
    y = graph.add("Add", "x", graph.add("Mul", "mask", filled))
    half = cast(graph.model({"x": (FLOAT, ["n"]), "mask": (FLOAT, ["n"])}, {"y": (y, FLOAT, ["n"])}))
    answer = run(half, {"x": numpy.array([1, 2], numpy.float32), "mask": numpy.array([0, 1], numpy.float32)})[0]
    assert answer[0] == 1
    assert -65505 < answer[1] < -65000


def test_a_small_number_that_guards_a_division_does_not_become_zero() -> None:
    graph = Graph()
    norm = graph.add("ReduceL2", "x", axes=[1], keepdims=1)
    y = graph.add("Div", "x", graph.add("Add", norm, graph.constant(numpy.float32(1e-12))))
    model = graph.model({"x": (FLOAT, ["n", 2])}, {"y": (y, FLOAT, ["n", 2])})
    with pytest.warns(ConversionWarning, match="1e-12 is too small for fp16 and becomes 6.104e-05"):
        half = cast(model)
    answer = run(half, {"x": numpy.array([[3, 4], [0, 0]], numpy.float32)})[0]
    assert answer[0] == pytest.approx([0.6, 0.8], rel=1e-3)
    assert answer[1].tolist() == [0, 0]


@pytest.mark.parametrize(
    ("number", "expected"), [(1e-12, 2**-14), (-1e-12, -(2**-14)), (2**-14, 2**-14), (0.0, 0.0), (-0.0, 0.0)]
)
@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_a_small_number_keeps_its_sign_and_zero_stays_zero(
    number: float, expected: float, shape: tuple[int, ...]
) -> None:
    graph = Graph()
    y = graph.add("Add", "x", graph.constant(numpy.full(shape, number, numpy.float32)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        half = cast(graph.model({"x": (FLOAT, [1, 1])}, {"y": (y, FLOAT, [1, 1])}))
    assert onnx.numpy_helper.to_array(half.graph.initializer[0]).item() == expected


def test_a_filled_tensor_of_a_small_number_is_not_filled_with_zeros() -> None:
    graph = Graph()
    small = onnx.numpy_helper.from_array(numpy.array([1e-12], numpy.float32))
    filled = graph.add("ConstantOfShape", graph.add("Shape", "x"), value=small)
    model = graph.model({"x": (FLOAT, ["n"])}, {"y": (graph.add("Div", "x", filled), FLOAT, ["n"])})
    with pytest.warns(ConversionWarning, match="1e-12 is too small for fp16"):
        half = cast(model)
    assert run(half, {"x": numpy.zeros(2, numpy.float32)})[0].tolist() == [0, 0]


def test_a_small_factor_is_not_enlarged_because_it_would_scale_everything() -> None:
    graph = Graph()
    y = graph.add("Mul", "samples", graph.constant(numpy.float32(2**-15)))
    model = graph.model({"samples": (FLOAT, ["n"])}, {"y": (y, FLOAT, ["n"])})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        half = cast(model)
    assert run(half, {"samples": numpy.array([16384], numpy.float32)})[0].tolist() == [0.5]


@pytest.mark.parametrize(
    ("factor", "words"),
    [
        (numpy.float32(3e-9), r"\(3e-09\) is too small for fp16 and becomes 0"),
        (numpy.array([1, 3e-9, 2], numpy.float32), "1 values of .* are too small for fp16 and become 0"),
    ],
)
def test_a_factor_that_becomes_zero_is_a_warning(factor: Any, words: str) -> None:
    graph = Graph()
    y = graph.add("Mul", "x", graph.constant(factor))
    model = graph.model({"x": (FLOAT, ["n", 3])}, {"y": (y, FLOAT, ["n", 3])})
    with pytest.warns(ConversionWarning, match=words):
        half = cast(model)
    assert 0 in run(half, {"x": numpy.ones((1, 3), numpy.float32)})[0]


@pytest.mark.parametrize(("weights", "warned"), [([[1e-9, 2e-9]], True), ([[1e-9, 1.0]], False), ([[0, 0]], False)])
def test_a_weight_is_lost_if_all_of_it_is(weights: list[list[float]], warned: bool) -> None:
    graph = Graph()
    y = graph.add("MatMul", "x", graph.constant(numpy.array(weights, numpy.float32)))
    model = graph.model({"x": (FLOAT, ["n", 1])}, {"y": (y, FLOAT, ["n", 2])})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        cast(model)
    assert [str(each.message) for each in caught if "become 0" in str(each.message)] == (
        [f"2 values of {model.graph.initializer[0].name} are too small for fp16 and become 0"] if warned else []
    )


def test_a_type_that_a_node_produces_is_changed_with_it() -> None:
    graph = Graph()
    mask = graph.add("Cast", "mask", to=FLOAT)
    zeros = graph.add(
        "ConstantOfShape", graph.add("Shape", "x"), value=onnx.numpy_helper.from_array(numpy.zeros(1, numpy.float32))
    )
    y = graph.add("Add", graph.add("Mul", "x", mask), zeros)
    model = graph.model({"x": (FLOAT, ["n"]), "mask": (TensorProto.INT32, ["n"])}, {"y": (y, FLOAT, ["n"])})
    answer = run(cast(model), {"x": numpy.array([5, 6], numpy.float32), "mask": numpy.array([1, 0], numpy.int32)})[0]
    assert answer.tolist() == [5, 0]


def test_a_weight_beyond_fp16_becomes_infinite_with_a_warning_and_a_small_one_is_not_enlarged() -> None:
    graph = Graph()
    weight = graph.constant(numpy.array([70000.0, 1e-9, 1e-7], numpy.float32))
    model = graph.model({"x": (FLOAT, ["n"])}, {"y": (graph.add("Mul", "x", weight), FLOAT, ["n"])})
    with pytest.warns(ConversionWarning, match="values outside the range of fp16 \\(65504\\)"):
        half = cast(model)
    values = onnx.numpy_helper.to_array(half.graph.initializer[0]).astype(numpy.float32)
    assert numpy.isinf(values[0])
    assert values[1] == 0
    assert values[2] == pytest.approx(1e-7, rel=0.2)


def test_a_graph_in_fp16_already_stays_as_it_is() -> None:
    half = cast(MODELS["transformer"]())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = cast(half)
    feed = inputs("transformer")
    for one, other in zip(run(half, feed), run(again, feed), strict=True):
        assert numpy.array_equal(one, other)


def test_an_operator_of_unknown_types_is_named() -> None:
    graph = Graph()
    graph.nodes.append(helper.make_node("Gelu", ["x"], ["z"], domain="com.microsoft"))
    model = graph.model({"x": (FLOAT, ["n"])}, {"y": ("z", FLOAT, ["n"])})
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    with pytest.raises(StageError) as caught:
        cast(model)
    assert caught.value.reason is Reason.CONVERSION_UNSUPPORTED
    assert "the operator Gelu of com.microsoft" in caught.value.message
