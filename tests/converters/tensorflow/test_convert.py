"""Every format and precision, over models of every kind: the file answers what the framework answered."""

from collections.abc import Callable

import numpy
import onnx
import pytest

from tests.converters.tensorflow.cases import MAX_BATCH_SIZE, REFERENCE, converted, run_file
from triton_converters.claim_store.dump import Batch, read_batches
from triton_converters.claim_store.inspection import read
from triton_converters.claim_store.replay import read_result
from triton_converters.contract import layout
from triton_converters.contract.results import ConvertResult, ReferenceResult, Signature
from triton_converters.gates.precision import check_precision

pytestmark = pytest.mark.tensorflow
Convert = Callable[..., ConvertResult]
FORMATS = ["tf-savedmodel", "onnx"]
KINDS = ["Classifier", "Recommender", "Masked", "Points", "Pair", "Parts", "Attention"]
TOLERANCE = {"fp32": 1e-5, "fp16": 2e-2}


def signature() -> Signature:
    return read_result(layout.reference_directory(REFERENCE), "reference", REFERENCE, ReferenceResult).signature


def batches() -> list[Batch]:
    return list(read_batches(layout.reference_directory(REFERENCE)))


def assert_agrees(format_name: str, precision: str, batch: Batch, rows: slice | None) -> None:
    """The file's outputs for some rows of a batch are the framework's."""
    inputs = {name: array if rows is None else array[rows] for name, array in batch.inputs.items()}
    answers = run_file(format_name, inputs, signature())
    for name, expected in batch.outputs.items():
        wanted = expected if rows is None else expected[rows]
        assert answers[name].shape == wanted.shape
        assert answers[name].dtype == wanted.dtype
        if wanted.dtype.kind == "f":
            numpy.testing.assert_allclose(answers[name], wanted, atol=TOLERANCE[precision], rtol=TOLERANCE[precision])
        else:
            assert numpy.mean(answers[name] == wanted) >= (1.0 if precision == "fp32" else 0.5)


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
@pytest.mark.parametrize("format_name", FORMATS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_file_answers_what_the_framework_answered(
    convert: Convert, kind: str, format_name: str, precision: str
) -> None:
    result = convert(kind, format_name, precision)
    batched = MAX_BATCH_SIZE.get(kind, 4) > 0
    for batch in batches():
        for rows in (slice(0, 1), slice(0, 4)) if batched else (None,):
            assert_agrees(format_name, precision, batch, rows)
    assert result.data_types[0] == {"fp32": "FP32", "fp16": "FP16"}[precision]
    assert check_precision(converted(format_name), format_name, precision) == result.data_types
    assert result.max_absolute_error is not None
    assert result.max_absolute_error <= TOLERANCE[precision]
    assert result.warnings == ()


@pytest.mark.parametrize("format_name", FORMATS)
@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_recurrent_layers_take_any_length(convert: Convert, format_name: str, precision: str) -> None:
    result = convert("Recurrent", format_name, precision)
    for batch in batches():
        assert_agrees(format_name, precision, batch, slice(0, 2))
    assert result.data_types[0] == {"fp32": "FP32", "fp16": "FP16"}[precision]


@pytest.mark.parametrize("format_name", FORMATS)
@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_both_sides_of_a_branch_are_kept(convert: Convert, format_name: str, precision: str) -> None:
    convert("Branching", format_name, precision)
    signs = set()
    for batch in batches():
        signs.add(float(numpy.sign(batch.inputs["x"].sum())))
        assert_agrees(format_name, precision, batch, slice(0, 4))
    assert signs == {1.0, -1.0}


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_a_savedmodel_declares_the_signature(convert: Convert, precision: str) -> None:
    convert("Masked", "tf-savedmodel", precision)
    assert read(converted("tf-savedmodel").parent).tensors == (
        "mask BOOL[-1, -1]", "steps FP32[-1, -1, 4]", "summary FP32[-1, 3]", "tags FP32[-1, -1, 3]",
    )  # fmt: skip


def test_an_onnx_file_has_the_signature_s_names_order_and_varying_dimensions(convert: Convert) -> None:
    convert("Masked", "onnx", "fp16")
    graph = onnx.load(str(converted("onnx"))).graph
    shapes = {
        value.name: [dim.dim_value or dim.dim_param for dim in value.type.tensor_type.shape.dim]
        for value in (*graph.input, *graph.output)
    }
    assert shapes == {
        "steps": ["batch", "steps_1", 4],
        "mask": ["batch", "mask_1"],
        "tags": ["batch", "tags_1", 3],
        "summary": ["batch", 3],
    }


@pytest.mark.parametrize("opset", [12, 15, 18, 20])
def test_tf2onnx_writes_the_asked_opset(convert: Convert, opset: int) -> None:
    convert("Classifier", "onnx", opset=opset)
    model = onnx.load(str(converted("onnx")))
    assert {entry.version for entry in model.opset_import if not entry.domain} == {opset}
    assert_agrees("onnx", "fp32", batches()[0], slice(0, 3))


def test_all_weights_of_an_fp16_savedmodel_are_fp16_but_for_what_fp16_cannot_hold(convert: Convert) -> None:
    assert convert("Classifier", "tf-savedmodel", "fp16").data_types == ("FP16",)


def test_a_weight_beyond_fp16_stays_fp32_with_a_warning(convert: Convert) -> None:
    result = convert("Overflowing", "tf-savedmodel", "fp16")
    assert result.data_types == ("FP16", "FP32")
    assert any("outside the range of fp16 (65504); it stays fp32" in warning for warning in result.warnings)
    assert_agrees("tf-savedmodel", "fp16", batches()[0], slice(0, 4))
