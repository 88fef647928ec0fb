"""Every format and precision, over models of every kind: the file answers what the framework answered."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy
import onnx
import pytest

from tests.converters.run_stage import run_convert
from tests.converters.torch.cases import (
    CONVERSION,
    MAX_BATCH_SIZE,
    REFERENCE,
    REVISION,
    model_code,
    request,
    run_file,
)
from triton_converters.claim_store.dump import Batch, read_batches
from triton_converters.claim_store.replay import read_result
from triton_converters.claim_store.revision import model_file
from triton_converters.contract import layout
from triton_converters.contract.results import ConvertResult, ReferenceResult, Signature
from triton_converters.gates.precision import weight_data_types

pytestmark = pytest.mark.torch
Convert = Callable[..., ConvertResult]
FORMATS = [("ts-trace", ""), ("ts-script", ""), ("onnx", "TorchScript"), ("onnx", "Dynamo")]
KINDS = ["Classifier", "Recommender", "Masked", "Points"]
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
        if wanted.dtype.kind == "f":
            numpy.testing.assert_allclose(answers[name], wanted, atol=TOLERANCE[precision], rtol=TOLERANCE[precision])
        else:
            assert numpy.mean(answers[name] == wanted) >= (1.0 if precision == "fp32" else 0.5)


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
@pytest.mark.parametrize(("format_name", "exporter"), FORMATS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_file_answers_what_the_framework_answered(
    convert: Convert, kind: str, format_name: str, exporter: str, precision: str
) -> None:
    opset = 18 if exporter == "Dynamo" else 17
    result = convert(kind, format_name, precision, exporter or "TorchScript", opset)
    batched = MAX_BATCH_SIZE.get(kind, 4) > 0
    for batch in batches():
        for rows in (slice(0, 1), slice(0, 3), slice(0, 4)) if batched else (None,):
            assert_agrees(format_name, precision, batch, rows)
    expected = {"fp32": "FP32", "fp16": "FP16"}[precision]
    assert result.data_types[0] == expected
    assert result.max_absolute_error is not None
    assert weight_data_types(model_file(REVISION, "small", format_name), format_name) == result.data_types


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
@pytest.mark.parametrize(("format_name", "exporter"), FORMATS)
def test_attention_takes_any_length(convert: Convert, format_name: str, exporter: str, precision: str) -> None:
    convert("Attention", format_name, precision, exporter or "TorchScript", 18)
    for batch in batches():
        assert_agrees(format_name, precision, batch, slice(0, 2))


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_attention_of_one_length_exports_by_torchscript(convert: Convert, precision: str) -> None:
    """Of varying ones that exporter of torch 2.6 fixes a size inside the graph, and Dynamo's is used."""
    warnings = convert("Attention", "onnx", precision, loader={"batches": "1"}).warnings
    assert not any("exported by" in each for each in warnings)
    assert_agrees("onnx", precision, batches()[0], slice(0, 2))


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
@pytest.mark.parametrize("format_name", ["ts-trace", "ts-script", "onnx"])
def test_recurrent_layers_take_any_length(convert: Convert, format_name: str, precision: str) -> None:
    convert("Recurrent", format_name, precision)
    for batch in batches():
        assert_agrees(format_name, precision, batch, slice(0, 2))


@pytest.mark.parametrize("exporter", ["TorchScript", "Dynamo"])
@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_every_weight_in_an_onnx_file_is_of_the_asked_precision(
    convert: Convert, exporter: str, precision: str
) -> None:
    result = convert("Classifier", "onnx", precision, exporter, 18)
    assert result.data_types == ({"fp32": "FP32", "fp16": "FP16"}[precision],)


@pytest.mark.parametrize("exporter", ["TorchScript", "Dynamo"])
def test_an_onnx_file_has_the_signature_s_names_and_varying_dimensions(convert: Convert, exporter: str) -> None:
    convert("Masked", "onnx", "fp16", exporter, 18)
    graph = onnx.load(str(model_file(REVISION, "small", "onnx"))).graph
    shapes = {
        value.name: [
            dim.dim_value if dim.HasField("dim_value") else dim.dim_param for dim in value.type.tensor_type.shape.dim
        ]
        for value in (*graph.input, *graph.output)
    }
    assert list(shapes) == ["steps", "mask", "tags", "summary"]
    steps = shapes["steps"]
    assert isinstance(steps[0], str)
    assert isinstance(steps[1], str)
    assert steps[2] == 4
    assert steps[0] != steps[1]
    assert all(isinstance(shape[0], str) for shape in shapes.values())


def test_without_batch_dimension_and_with_one_size_everything_is_static(convert: Convert) -> None:
    convert("Points", "onnx", loader={"batches": "2"})
    assert signature().inputs[0].dims == (-1, 3)
    graph = onnx.load(str(model_file(REVISION, "small", "onnx"))).graph
    assert [dim.dim_value for dim in graph.output[0].type.tensor_type.shape.dim] == [3]


@pytest.mark.parametrize("opset", [12, 15, 17, 20])
def test_the_torchscript_exporter_writes_the_asked_opset(convert: Convert, opset: int) -> None:
    convert("Classifier", "onnx", opset=opset)
    model = onnx.load(str(model_file(REVISION, "small", "onnx")))
    assert {entry.version for entry in model.opset_import if not entry.domain} == {opset}
    assert_agrees("onnx", "fp32", batches()[0], slice(0, 3))


@pytest.mark.parametrize("opset", [17, 18, 20])
def test_the_dynamo_exporter_s_graph_is_converted_to_the_asked_opset(convert: Convert, opset: int) -> None:
    convert("Recommender", "onnx", "fp32", "Dynamo", opset)
    model = onnx.load(str(model_file(REVISION, "small", "onnx")))
    assert {entry.version for entry in model.opset_import if not entry.domain} == {opset}
    assert_agrees("onnx", "fp32", batches()[0], slice(0, 3))


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_a_script_keeps_both_sides_of_a_branch(convert: Convert, precision: str) -> None:
    convert("Branching", "ts-script", precision)
    signs = set()
    for batch in batches():
        signs.add(float(numpy.sign(batch.inputs["x"].sum())))
        assert_agrees("ts-script", precision, batch, slice(0, 4))
    assert signs == {1.0, -1.0}


@pytest.mark.parametrize("format_name", ["ts-trace", "onnx"])
def test_a_trace_freezes_the_branch_and_says_so(convert: Convert, format_name: str) -> None:
    """Which is no failure here: the served gate compares with both sides."""
    result = convert("Branching", format_name)
    assert any("Converting a tensor to a Python boolean" in warning for warning in result.warnings), result.warnings
    positive, negative, _ = batches()
    assert_agrees(format_name, "fp32", positive, slice(0, 4))
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        assert_agrees(format_name, "fp32", negative, slice(0, 4))


@pytest.mark.parametrize(
    ("kind", "format_name", "instances", "warned"),
    [
        ("Positions", "ts-trace", "KIND_GPU", True),
        ("Positions", "ts-trace", "KIND_AUTO", False),
        ("Positions", "ts-script", "KIND_GPU", False),
        ("Recurrent", "ts-trace", "KIND_GPU", True),
        ("Classifier", "ts-trace", "KIND_GPU", False),
    ],
)
def test_a_trace_for_a_gpu_that_names_the_cpu_says_so(
    refer: Callable[..., ReferenceResult], kind: str, format_name: str, instances: str, warned: bool
) -> None:
    """Before what the tracer says, of which only the first lines are kept. PyTorch's own recurrent layers do it too."""
    refer(kind)
    asked = request(model_code(kind), format_name)
    result = run_convert(replace(asked, config=replace(asked.config, instance_group_kind=instances)))
    assert any(line.startswith("the trace names the CPU") for line in result.warnings[:1]) == warned, result.warnings


def test_fp16_that_overflows_converts_with_a_warning_and_is_not_clamped(convert: Convert) -> None:
    for format_name in ("ts-trace", "onnx"):
        result = convert("Overflowing", format_name, "fp16")
        assert any("scale has values outside the range of fp16" in warning for warning in result.warnings)
        answers = run_file(format_name, {"x": batches()[0].inputs["x"][:2]}, signature())
        assert not numpy.isfinite(answers["y"]).any()
        (layout.candidate_directory(CONVERSION) / "result.json").unlink()
        (layout.revision_directory(REVISION) / "result.json").unlink()


def test_a_max_batch_size_of_one_stays_a_varying_dimension(convert: Convert, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MAX_BATCH_SIZE, "Classifier", 1)
    convert("Classifier", "onnx", "fp32", "Dynamo", 18)
    graph = onnx.load(str(model_file(REVISION, "small", "onnx"))).graph
    assert not graph.input[0].type.tensor_type.shape.dim[0].HasField("dim_value")
    assert_agrees("onnx", "fp32", batches()[0], slice(0, 1))


def test_a_source_with_a_folder_named_triton_does_not_confuse_torch(convert: Convert, published: Path) -> None:
    (published / "triton").mkdir()
    (published / "triton" / "__init__.py").write_text("")
    assert convert("Points", "onnx", "fp32", "Dynamo", 18).data_types == ("FP32",)
