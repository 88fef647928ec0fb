"""What does not convert has a reason that says what to do; nothing half-made stays on the claim."""

import errno
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
import torch
from onnx import TensorProto, helper

from tests.converters.run_stage import run_convert
from tests.converters.torch.cases import CONVERSION, REFERENCE, REVISION, model_code, request
from triton_converters.claim_store.revision import model_file
from triton_converters.contract import layout
from triton_converters.contract.envelope import MESSAGE_LIMIT_BYTES, Outcome
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import ConvertResult, ReferenceResult, Signature, Tensor
from triton_converters.convert import torchscript
from triton_converters.convert.onnx_graph import check_signature
from triton_converters.gates.precision import check_precision, weight_data_types
from triton_converters.incoming import documents
from triton_converters.stages.convert import produce

pytestmark = pytest.mark.torch
Convert = Callable[..., ConvertResult]


def refusal(convert: Convert, *arguments: object, **named: object) -> StageError:
    with pytest.raises(StageError) as caught:
        convert(*arguments, **named)
    assert caught.value.final
    for folder in ("candidates", "revisions"):
        directory = layout.ROOT / folder
        assert not directory.exists() or list(directory.iterdir()) == []
    return caught.value


def test_python_that_script_does_not_know_fails_and_names_the_line(convert: Convert) -> None:
    error = refusal(convert, "Python", "ts-script")
    assert error.reason is Reason.CONVERSION_FAILED
    assert error.message.startswith("ts-script fp32: UnsupportedNodeError: Lambda aren't supported")
    assert re.search(r"\(at model\.py:\d+\)$", error.message)


def test_the_same_model_traces(convert: Convert) -> None:
    assert convert("Python", "ts-trace").data_types == ("FP32",)


@pytest.mark.parametrize("exporter", ["TorchScript", "Dynamo"])
def test_an_operator_that_onnx_does_not_have_is_named(convert: Convert, exporter: str) -> None:
    error = refusal(convert, "Exotic", "onnx", exporter=exporter, opset=18)
    assert error.reason is Reason.CONVERSION_FAILED
    assert "bessel_j0" in error.message


def test_an_opset_that_no_exporter_writes_is_unsupported(convert: Convert) -> None:
    error = refusal(convert, "Attention", "onnx", opset=11)
    assert "TorchScript, opset 11" in error.message
    assert "Dynamo, opset 11: the Dynamo exporter writes opset 18" in error.message
    assert "opset 11 was requested" in error.message
    assert "spec.models[].onnx.opset" in error.message


def test_an_opset_that_one_exporter_does_not_know_is_written_by_the_other(convert: Convert) -> None:
    (warning,) = convert("Classifier", "onnx", exporter="TorchScript", opset=23).warnings
    assert warning.startswith(
        "the graph was exported by Dynamo with opset 23, because this failed: exporter TorchScript"
    )
    assert "opset 23 was requested" in warning


def test_a_dimension_that_the_dynamo_exporter_fixes_is_left_open_by_the_other(convert: Convert) -> None:
    """torch 2.6 unrolls recurrent layers over the example's length."""
    warning = convert("Recurrent", "onnx", exporter="Dynamo", opset=18).warnings[0]
    assert warning.startswith(
        "the graph was exported by TorchScript with opset 18, because this failed: exporter Dynamo"
    )


def test_a_length_that_the_tracing_exporter_fixes_inside_the_graph_is_left_open_by_the_other(convert: Convert) -> None:
    """Nothing in the graph's interface shows it: a Reshape inside nn.MultiheadAttention holds the length."""
    warning = convert("Attention", "onnx").warnings[0]
    assert warning.startswith(
        "the graph was exported by Dynamo with opset 17, because this failed: exporter TorchScript"
    )
    assert "the exporter fixed a size" in warning


def test_the_lowest_operator_set_with_the_operators_is_used(convert: Convert) -> None:
    convert("Folding", "onnx")
    graph = onnx.load(str(model_file(REVISION, "small", "onnx")))
    assert [entry.version for entry in graph.opset_import if entry.domain == ""] == [18]


@pytest.mark.parametrize("exporter", ["TorchScript", "Dynamo"])
@pytest.mark.parametrize("name", ["embedding", "linear", "model.table.weight"])
def test_an_output_may_have_a_name_that_the_graph_gives_to_a_tensor_of_its_own(
    convert: Convert, exporter: str, name: str
) -> None:
    result = convert("Looked", "onnx", exporter=exporter, opset=18, outputs=name)
    assert result.max_absolute_error is not None
    assert result.max_absolute_error < 1e-5


@pytest.mark.parametrize("format_name", ["ts-trace", "ts-script"])
@pytest.mark.parametrize("names", [{"inputs": "IN__1,IN__0"}, {"outputs": "OUT__3,OUT__4"}])
def test_names_that_triton_s_pytorch_backend_reads_as_other_positions(
    convert: Convert, format_name: str, names: dict[str, str]
) -> None:
    kind = "Recommender"
    loader = {"rename": names["inputs"]} if "inputs" in names else {}
    error = refusal(convert, kind, format_name, loader=loader, **names)
    assert error.reason is Reason.CONVERSION_UNSUPPORTED
    assert next(iter(names.values())).replace(",", ", ") in error.message


def test_onnx_takes_any_names(convert: Convert) -> None:
    assert convert("Recommender", "onnx", outputs="OUT__3,OUT__4").data_types == ("FP32",)


@pytest.mark.parametrize(
    ("names", "parameters", "fits"),
    [
        (["INPUT__0", "INPUT__1"], [], True),
        (["INPUT__1", "INPUT__0"], [], False),
        (["INPUT__1"], [], False),
        (["a__"], [], True),
        (["a__", "b__"], [], False),
        (["a", "b__1"], [], True),
        (["b__1", "a"], [], True),
        (["a__x", "b__y"], [], True),
        (["a__0__1", "b__1"], [], True),
        (["x"], [], True),
        (["a", "b"], ["a", "b"], True),
        (["b", "a"], ["a", "b"], False),
        (["b", "a"], ["argument_1", "b"], True),
        (["b__0", "a__1"], ["a__1", "b__0"], False),
    ],
)
def test_the_naming_convention(names: list[str], parameters: list[str], fits: bool) -> None:
    if fits:
        torchscript.check_names(names, "input", parameters)
    else:
        with pytest.raises(StageError) as caught:
            torchscript.check_names(names, "input", parameters)
        assert caught.value.reason is Reason.CONVERSION_UNSUPPORTED


def exported(
    *, batch: str | int = "batch", width: str | int = 4, kind: int = TensorProto.FLOAT, name: str = "x"
) -> onnx.ModelProto:
    x = helper.make_tensor_value_info(name, kind, [batch, width])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", "anything"])
    graph = helper.make_graph([helper.make_node("Identity", [name], ["y"])], "g", [x], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


SIGNATURE = Signature((Tensor("x", "FP32", (4,)),), (Tensor("y", "FP32", (4,)),), 8)


def test_a_symbol_is_accepted_where_the_signature_is_static() -> None:
    check_signature(exported(), SIGNATURE, 17)
    check_signature(exported(width="w"), SIGNATURE, 17)


@pytest.mark.parametrize(
    ("model", "opset", "reason", "words"),
    [
        (exported(batch=3), 17, Reason.CONVERSION_FAILED, "[3, 4]"),
        (exported(width=5), 17, Reason.CONVERSION_FAILED, "[-1, 5]"),
        (exported(kind=TensorProto.FLOAT16), 17, Reason.CONVERSION_FAILED, "float16"),
        (exported(name="input.1"), 17, Reason.CONVERSION_FAILED, "['input.1']"),
        (exported(), 15, Reason.CONVERSION_UNSUPPORTED, "wrote opset 17"),
    ],
)
def test_an_exported_graph_that_differs_from_the_signature(
    model: onnx.ModelProto, opset: int, reason: Reason, words: str
) -> None:
    with pytest.raises(StageError) as caught:
        check_signature(model, SIGNATURE, opset)
    assert caught.value.reason is reason
    assert words in caught.value.message


def test_an_input_that_one_exporter_drops_is_kept_by_the_other(convert: Convert) -> None:
    (warning,) = convert("Unused", "onnx").warnings
    assert "inputs are ['x'], but the signature's are ['x', 'ignored']" in warning


@pytest.mark.parametrize(("format_name", "exporter"), [("ts-trace", ""), ("ts-script", ""), ("onnx", "Dynamo")])
def test_an_input_that_is_not_used_is_kept_by_the_others(convert: Convert, format_name: str, exporter: str) -> None:
    assert convert("Unused", format_name, "fp32", exporter, 18).data_types == ("FP32",)


def test_a_lost_reference_is_asked_for_again(convert: Convert, published: Path) -> None:
    with pytest.raises(StageError) as caught:
        run_convert(request(model_code("Classifier"), "onnx"))
    assert caught.value.reason is Reason.INPUT_MISSING
    assert not caught.value.final


def test_a_lost_source_is_asked_for_again(refer: Callable[..., ReferenceResult], published: Path) -> None:
    refer("Classifier")
    shutil.rmtree(published)
    for run in (lambda: run_convert(request(model_code("Classifier"), "onnx")), lambda: refer("Classifier")):
        with pytest.raises(StageError) as caught:
            run()
        assert caught.value.reason is Reason.INPUT_MISSING
        assert not caught.value.final
        shutil.rmtree(layout.reference_directory(REFERENCE), ignore_errors=True)


def test_a_conversion_is_done_once_for_several_revisions(convert: Convert, monkeypatch: pytest.MonkeyPatch) -> None:
    convert("Classifier", "onnx")
    monkeypatch.setattr(produce, "write_model", None)
    from dataclasses import replace

    again = replace(request(model_code("Classifier"), "onnx"), key="2" * 16)
    result = run_convert(again)
    assert result.file_sha256
    inodes = {model_file(key, "small", "onnx").stat().st_ino for key in (REVISION, "2" * 16)}
    assert len(inodes) == 1


@pytest.mark.parametrize("format_name", ["ts-trace", "ts-script", "onnx"])
def test_a_file_labelled_with_another_precision_is_caught(convert: Convert, format_name: str) -> None:
    convert("Classifier", format_name, "fp32")
    path = model_file(REVISION, "small", format_name)
    assert weight_data_types(path, format_name) == ("FP32",)
    with pytest.raises(StageError) as caught:
        check_precision(path, format_name, "fp16")
    assert caught.value.reason is Reason.PRECISION_MISMATCH


def test_constants_of_a_trace_count_as_weights(tmp_path: Path) -> None:
    table = torch.randn(64, 64).half()
    traced = torch.jit.trace(lambda x: x + table.float().sum() + table.sum(), torch.ones(2))
    traced.save(str(tmp_path / "model.pt"))
    assert torchscript.weight_data_types(tmp_path / "model.pt")[0] == "FP16"


def test_a_torchscript_file_that_was_exchanged_is_noticed_without_loading_it(convert: Convert) -> None:
    convert("Classifier", "ts-script", "fp32")
    path = model_file(REVISION, "small", "ts-script")
    path.unlink()
    path.write_bytes(b"another file")
    with pytest.raises(StageError) as caught:
        weight_data_types(path, "ts-script")
    assert caught.value.reason is Reason.MODEL_LOAD_FAILED


def test_a_full_disk_is_said_to_be_full(tmp_path: Path) -> None:
    (tmp_path / "model.pt").symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left") as caught:
        torchscript.save(torch.jit.trace(torch.nn.Linear(64, 64), torch.ones(1, 64)), tmp_path / "model.pt")
    assert caught.value.errno == errno.ENOSPC


def test_warnings_are_few_and_short(convert: Convert) -> None:
    result = convert("Branching", "ts-trace", "fp16")
    assert len(result.warnings) <= documents.WARNINGS
    assert all(len(warning) <= documents.WARNING_CHARACTERS for warning in result.warnings)
    longest = ConvertResult(
        "a" * 64,
        1,
        ("FP16",),
        1.0,
        ("w" * documents.WARNING_CHARACTERS,) * documents.WARNINGS,
        "10.13.3.9",
        1e-6,
        "c" * 32,
        gpu="g" * documents.GPU_CHARACTERS,
    )
    assert len(Outcome("convert", REVISION, longest).to_json().encode()) < MESSAGE_LIMIT_BYTES
    assert layout.reference_directory(REFERENCE).is_dir()
    assert layout.candidate_directory(CONVERSION).is_dir()
