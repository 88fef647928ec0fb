"""The data types an ONNX file really holds."""

from pathlib import Path

import numpy
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.gates.precision import check_precision, weight_data_types

X, Y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", 4]) for name in "XY")


def initializer(name: str, kind: str, *shape: int) -> onnx.TensorProto:
    return numpy_helper.from_array(numpy.ones(shape, kind), name)


def write(path: Path, nodes: list[onnx.NodeProto], *weights: onnx.TensorProto) -> Path:
    model = helper.make_model(
        helper.make_graph(nodes, "g", [X], [Y], list(weights)), opset_imports=[helper.make_opsetid("", 17)]
    )
    onnx.save(model, str(path / "model.onnx"))
    return path / "model.onnx"


IDENTITY = helper.make_node("Identity", ["X"], ["Y"])


@pytest.mark.parametrize(
    ("weights", "types"),
    [
        ([("float32", 4, 4)], ("FP32",)),
        ([("float16", 4, 4)], ("FP16",)),
        ([("float16", 4, 4), ("float32", 4)], ("FP16", "FP32")),
        ([("float16", 4), ("float32", 4, 4), ("int64", 100)], ("FP32", "FP16")),
        ([("int64", 4)], ()),
    ],
)
def test_types_are_ordered_by_their_elements(tmp_path: Path, weights: list[tuple], types: tuple[str, ...]) -> None:
    tensors = [initializer(f"w{number}", *weight) for number, weight in enumerate(weights)]
    assert weight_data_types(write(tmp_path, [IDENTITY], *tensors), "onnx") == types


def test_constants_and_subgraphs_count(tmp_path: Path) -> None:
    constant = helper.make_node("Constant", [], ["w"], value=initializer("w", "float16", 5))
    branch = helper.make_graph([constant], "b", [], [helper.make_tensor_value_info("w", TensorProto.FLOAT16, [5])])
    choose = helper.make_node("If", ["c"], ["w"], then_branch=branch, else_branch=branch)
    condition = numpy_helper.from_array(numpy.array(True), "c")
    assert weight_data_types(write(tmp_path, [choose, IDENTITY], condition), "onnx") == ("FP16",)


def test_a_weight_that_is_cast_before_its_use_is_what_it_is_cast_to(tmp_path: Path) -> None:
    cast = helper.make_node("Cast", ["w"], ["v"], to=TensorProto.FLOAT)
    path = write(tmp_path, [cast, IDENTITY], initializer("w", "float16", 4, 4))
    assert weight_data_types(path, "onnx") == ("FP32",)
    with pytest.raises(StageError) as caught:
        check_precision(path, "onnx", "fp16")
    assert caught.value.reason is Reason.PRECISION_MISMATCH


@pytest.mark.parametrize(("kind", "asked"), [("float32", "fp16"), ("float16", "fp32"), ("float64", "fp16")])
def test_another_precision_than_the_label_is_refused(tmp_path: Path, kind: str, asked: str) -> None:
    path = write(tmp_path, [IDENTITY], initializer("w", kind, 4, 4))
    with pytest.raises(StageError) as caught:
        check_precision(path, "onnx", asked)
    assert caught.value.reason is Reason.PRECISION_MISMATCH
    assert asked in caught.value.message


def test_double_precision_passes_for_fp32(tmp_path: Path) -> None:
    path = write(tmp_path, [IDENTITY], initializer("w", "float64", 4, 4))
    assert check_precision(path, "onnx", "fp32") == ("FP64",)


@pytest.mark.parametrize(("asked", "passes"), [("fp16", True), ("fp32", False)])
def test_most_elements_decide(tmp_path: Path, asked: str, passes: bool) -> None:
    weights = [initializer("w", "float16", 4, 4), initializer("scales", "float32", 4)]
    path = write(tmp_path, [IDENTITY], *weights)
    if passes:
        assert check_precision(path, "onnx", asked) == ("FP16", "FP32")
    else:
        with pytest.raises(StageError) as caught:
            check_precision(path, "onnx", asked)
        assert "FP16, FP32" in caught.value.message


@pytest.mark.parametrize(("kind", "asked"), [("float32", "fp32"), ("float16", "fp16"), ("int64", "fp16")])
def test_the_labelled_precision_passes(tmp_path: Path, kind: str, asked: str) -> None:
    path = write(tmp_path, [IDENTITY], initializer("w", kind, 4, 4))
    assert check_precision(path, "onnx", asked) == weight_data_types(path, "onnx")


@pytest.mark.parametrize("content", [b"", b"not a protobuf at all", None])
def test_a_file_that_cannot_be_parsed_has_a_reason(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "model.onnx"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(StageError) as caught:
        weight_data_types(path, "onnx")
    assert caught.value.reason is Reason.MODEL_LOAD_FAILED
    assert "model.onnx" in caught.value.message


def test_single_numbers_and_what_an_operator_reads_in_fp32_alone_are_no_weights(tmp_path: Path) -> None:
    """Numbers that count sizes stay fp32 in an fp16 file, and so do the scales of Resize."""
    scales = numpy_helper.from_array(numpy.array([1, 1, 2, 2], numpy.float32), "scales")
    nodes = [helper.make_node("Resize", ["X", "", "scales"], ["r"]), helper.make_node("Mul", ["r", "number"], ["Y"])]
    path = write(tmp_path, nodes, scales, initializer("number", "float32", 1))
    assert check_precision(path, "onnx", "fp16") == ()


def test_a_graph_that_only_returns_a_weight_can_be_read(tmp_path: Path) -> None:
    path = write(tmp_path, [], initializer("Y", "float32", 3, 4))
    assert weight_data_types(path, "onnx") == ("FP32",)
