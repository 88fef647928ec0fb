"""TorchScript and ONNX files as sources: what a user brings without Python code converts into what Triton serves."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy
import onnx
import pytest
import torch

from tests.converters.onnx_models import transformer
from tests.converters.run_stage import run_convert, run_reference
from tests.converters.torch.cases import REFERENCE, REVISION, SOURCE, model_code, request, run_file
from tests.converters.torch.user.model import Branching, Classifier, Recommender
from triton_converters.claim_store.dump import read_batches
from triton_converters.claim_store.replay import read_result
from triton_converters.claim_store.revision import model_file
from triton_converters.contract import layout
from triton_converters.contract.conversion_requests import Entrypoint, ModelCode, ReferenceRequest
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import ConvertResult, ReferenceResult
from triton_converters.convert import onnx_graph, tensorrt_library
from triton_converters.convert.tensorrt_library import Engine, Library, Shapes
from triton_converters.found.kinds import FileKind, kind_of
from triton_converters.gates.precision import weight_data_types
from triton_converters.load import torchscript

pytestmark = pytest.mark.torch
Convert = Callable[..., ConvertResult]
NAMES = {"Classifier": "INPUT__0", "Recommender": "INPUT__0,INPUT__1", "Branching": "INPUT__0"}


class Stubborn(torch.nn.Module):
    """Multiplies by a matrix whose type nobody names: it is fp32, whatever the weights are."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.matmul(self.linear(x), torch.eye(x.size(1)))


class Choosing(torch.nn.Module):
    """Takes a number besides its tensor."""

    def forward(self, x: torch.Tensor, which: int) -> torch.Tensor:
        return x[which]


@pytest.fixture
def bring(published: Path) -> Callable[[torch.nn.Module, str, str], ModelCode]:
    """Saves a module as the source's model.pt and runs the reference stage on it."""

    def run(module: torch.nn.Module, kind: str, format_name: str) -> ModelCode:
        module.eval()
        names = NAMES[kind]
        arrays = load_batch(published, kind, names)
        if format_name == "ts-trace":
            saved = torch.jit.trace(module, tuple(torch.from_numpy(array) for array in arrays))
        else:
            saved = torch.jit.script(module)
        saved.save(str(published / "model.pt"))
        code = ModelCode(format_name, Entrypoint("model.pt", {}), 4)
        loader = Entrypoint("loader.py", {"kind": kind, "rename": names})
        run_reference(ReferenceRequest(REFERENCE, SOURCE, code, loader, 64, needs_labels=False))
        return code

    return run


def load_batch(published: Path, kind: str, names: str) -> list[numpy.ndarray]:
    from triton_converters.user.user_code import call

    loader = Entrypoint("loader.py", {"kind": kind, "rename": names})
    return list(next(iter(call(published, loader, "get_dataloader_fn", {"batch_size": 4})()))[1].values())


def check(format_name: str, precision: str, result: ConvertResult) -> None:
    """The file answers what the source's file answered, in the weights it says it has."""
    home = layout.reference_directory(REFERENCE)
    signature = read_result(home, "reference", REFERENCE, ReferenceResult).signature
    tolerance = {"fp32": 1e-5, "fp16": 2e-2}[precision]
    for batch in read_batches(home):
        for rows in (slice(0, 1), slice(0, 3)):
            answers = run_file(format_name, {name: array[rows] for name, array in batch.inputs.items()}, signature)
            for name, expected in batch.outputs.items():
                if expected.dtype.kind == "f":
                    numpy.testing.assert_allclose(answers[name], expected[rows], atol=tolerance, rtol=tolerance)
    assert result.data_types[0] == {"fp32": "FP32", "fp16": "FP16"}[precision]
    assert result.max_absolute_error is not None
    assert result.max_absolute_error <= tolerance
    assert weight_data_types(model_file(REVISION, "small", format_name), format_name) == result.data_types


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
@pytest.mark.parametrize("target", ["ts-trace", "ts-script", "onnx"])
@pytest.mark.parametrize("source", ["ts-trace", "ts-script"])
@pytest.mark.parametrize("module", [Classifier, Recommender])
def test_a_torchscript_file_converts(
    bring: Callable[..., ModelCode], module: type[torch.nn.Module], source: str, target: str, precision: str
) -> None:
    code = bring(module(), module.__name__, source)
    check(target, precision, run_convert(request(code, target, precision)))


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_a_scripted_file_keeps_both_sides_of_a_branch(bring: Callable[..., ModelCode], precision: str) -> None:
    code = bring(Branching(), "Branching", "ts-script")
    check("ts-script", precision, run_convert(request(code, "ts-script", precision)))


def test_a_file_whose_types_are_fixed_is_refused_in_fp16_with_what_to_do(bring: Callable[..., ModelCode]) -> None:
    code = bring(Stubborn(), "Branching", "ts-script")
    with pytest.raises(StageError) as caught:
        run_convert(request(code, "ts-trace", "fp16"))
    assert caught.value.reason is Reason.CONVERSION_UNSUPPORTED
    assert caught.value.message.startswith("model.pt does not run in fp16, because some of its types are fixed: ")
    assert "format onnx or trt" in caught.value.message
    check("onnx", "fp16", run_convert(request(code, "onnx", "fp16")))


def test_a_file_which_dynamo_does_not_read_is_exported_by_torchscript(bring: Callable[..., ModelCode]) -> None:
    code = bring(Classifier(), "Classifier", "ts-trace")
    check("onnx", "fp32", run_convert(request(code, "onnx", exporter="Dynamo")))


def refused(source: Path, path: str = "model.pt") -> StageError:
    with pytest.raises(StageError) as caught:
        torchscript.load(source, ModelCode("ts-script", Entrypoint(path, {}), 4), "onnx")
    return caught.value


def test_what_is_no_torchscript_file_has_a_reason(published: Path) -> None:
    (published / "model.pt").write_bytes(b"no archive")
    assert refused(published).reason is Reason.CHECKPOINT_INVALID
    assert refused(published, "other.pt").reason is Reason.ENTRYPOINT_INVALID
    assert refused(published, "../model.pt").reason is Reason.ENTRYPOINT_INVALID
    torch.save({"weights": torch.ones(2)}, published / "model.pt")
    assert refused(published).reason is Reason.CHECKPOINT_INVALID


def test_a_file_in_training_mode_or_with_other_inputs_than_tensors_is_refused(published: Path) -> None:
    torch.jit.script(Classifier().train()).save(str(published / "model.pt"))
    assert refused(published).reason is Reason.ENTRYPOINT_INVALID

    torch.jit.script(Choosing().eval()).save(str(published / "model.pt"))
    error = refused(published)
    assert error.reason is Reason.ENTRYPOINT_INVALID
    assert "forward takes int" in error.message


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_the_optimiser_s_graph_answers_the_same(refer: Callable[..., ReferenceResult], precision: str) -> None:
    refer("Classifier")
    asked = request(model_code("Classifier"), "onnx", precision)
    plain = run_convert(replace(asked, conversion_key="b" * 16, key="2" * 16))
    result = run_convert(replace(asked, onnx_optimized=True))
    check("onnx", precision, result)
    operators = [node.op_type for node in onnx.load(str(model_file(REVISION, "small", "onnx"))).graph.node]
    assert "BatchNormalization" not in operators
    assert result.data_types == plain.data_types


def test_an_onnx_source_needs_no_torch(mount: Path, published: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its framework is ONNX Runtime; the image has torch all the same."""
    import sys

    onnx.save(transformer(), str(published / "model.onnx"))
    (published / "tokens.py").write_text(
        "import numpy\n"
        "def get_dataloader_fn(batch_size):\n"
        "    r = numpy.random.default_rng(0)\n"
        "    return lambda: iter([([*range(4)], {'tokens': r.integers(1, 64, (4, 9))}, None)])\n"
    )
    code = ModelCode("onnx", Entrypoint("model.onnx", {}), 4)
    monkeypatch.setitem(sys.modules, "torch", None)
    run_reference(ReferenceRequest(REFERENCE, SOURCE, code, Entrypoint("tokens.py", {}), 8, needs_labels=False))
    result = run_convert(request(code, "onnx", "fp16"))
    assert result.data_types[0] == "FP16"
    assert result.max_absolute_error is not None
    assert 0 < result.max_absolute_error < 0.05


@pytest.mark.parametrize("exporter", ["TorchScript", "Dynamo"])
def test_weights_beyond_what_a_message_holds_lie_beside_the_graph(
    refer: Callable[..., ReferenceResult], monkeypatch: pytest.MonkeyPatch, exporter: str
) -> None:
    monkeypatch.setattr(onnx_graph, "INLINE_BYTES", 100)
    refer("Classifier")
    check("onnx", "fp32", run_convert(request(model_code("Classifier"), "onnx", "fp32", exporter, 18)))
    version = model_file(REVISION, "small", "onnx").parent
    assert sorted(path.name for path in version.iterdir()) == ["model.onnx", onnx_graph.DATA_FILE]
    assert onnx_graph.weight_bytes(onnx.load(str(version / "model.onnx"), load_external_data=False)) <= 1024


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_an_engine_is_made_of_the_module_s_own_way_to_onnx(
    refer: Callable[..., ReferenceResult], monkeypatch: pytest.MonkeyPatch, precision: str
) -> None:
    """Real engines are built in tests/converters/tensorrt; here it is seen what the builder is handed."""
    handed: list[onnx.ModelProto] = []

    def build(library: Library, path: Path, shapes: Shapes, *_: object) -> Engine:
        handed.append(onnx.load(str(path)))
        assert shapes == {"INPUT__0": ((1, 1, 8, 8), (4, 1, 8, 8), (4, 1, 8, 8))}
        kind = {"fp32": "Float", "fp16": "Half"}[precision]
        return Engine(b"plan", b"", (), f"Name: conv, LayerType: c, Outputs: [ {{ Name: y, Datatype: {kind} }} ]")

    monkeypatch.setattr(tensorrt_library, "load", lambda: Library(tensorrt_library))
    monkeypatch.setattr(Library, "version", "10.13.3.9")
    monkeypatch.setattr(tensorrt_library, "build", build)
    refer("Classifier")
    result = run_convert(request(model_code("Classifier"), "trt", precision))
    assert (result.data_types, result.tensorrt_version) == ((f"FP{precision[2:]}",), "10.13.3.9")
    [graph] = [model.graph for model in handed]
    assert {value.type.tensor_type.elem_type for value in (*graph.input, *graph.output)} == {onnx.TensorProto.FLOAT}
    weights = {tensor.data_type for tensor in graph.initializer if len(tensor.dims) > 1}
    assert weights == {onnx.TensorProto.FLOAT if precision == "fp32" else onnx.TensorProto.FLOAT16}
    assert model_file(REVISION, "small", "trt").read_bytes() == b"plan"


def test_kubectl_triton_init_tells_torchscript_from_weights(tmp_path: Path) -> None:
    module = torch.nn.Linear(2, 2).eval()
    torch.jit.trace(module, torch.zeros(1, 2)).save(str(tmp_path / "trace.pt"))
    torch.jit.script(module).save(str(tmp_path / "script.pt"))
    torch.save(module.state_dict(), tmp_path / "weights.pt")
    torch.save(module, tmp_path / "pickle.pt")
    told = {path.stem: kind_of(path) is FileKind.TORCHSCRIPT for path in tmp_path.iterdir()}
    assert told == {"trace": True, "script": True, "weights": False, "pickle": False}
