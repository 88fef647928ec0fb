"""An ONNX file as the source: its operator set, its precision and its weights' place may change, and nothing else."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy
import onnx
import onnxruntime
import pytest
from google.protobuf import text_format
from onnx import TensorProto, helper
from tritonclient.grpc import model_config_pb2

from tests.converters.conversions import conversion
from tests.converters.onnx_models import Graph, inputs, transformer
from tests.converters.run_stage import run_convert, run_reference
from triton_converters.claim_store.replay import read_result
from triton_converters.claim_store.revision import model_file
from triton_converters.contract import layout
from triton_converters.contract.conversion_requests import (
    Entrypoint,
    ModelCode,
    ReferenceRequest,
)
from triton_converters.contract.failure import StageError
from triton_converters.contract.measurement_requests import InputShape
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import ConvertResult, ReferenceResult, Signature, Tensor
from triton_converters.convert import onnx_graph
from triton_converters.gates.signature import as_served
from triton_converters.load import onnx as onnx_loader
from triton_converters.measuring import load_input

SOURCE, REFERENCE, REVISION = "d" * 64, "e" * 16, "1" * 16
CODE = ModelCode("onnx", Entrypoint("models/model.onnx", {}), 4)
REQUEST = conversion(
    CODE, key=REVISION, conversion_key="c" * 16, source=SOURCE, reference=REFERENCE, model_name="small"
)
LOADER = """
import numpy
def get_dataloader_fn():
    return lambda: iter([([*range(2)], dict(numpy.load("batch.npz")), None)])
"""


@pytest.fixture
def bring(mount: Path) -> Callable[..., None]:
    """Publishes a model with one batch and runs the reference stage."""

    def run(model: Any, batch: dict[str, Any], **saving: Any) -> None:
        source = layout.source_directory(SOURCE)
        (source / "models").mkdir(parents=True)
        onnx.save(model, str(source / "models" / "model.onnx"), **saving)
        numpy.savez(source / "batch.npz", **batch)
        (source / "loader.py").write_text(LOADER)
        loader = Entrypoint("loader.py", {})
        run_reference(ReferenceRequest(REFERENCE, SOURCE, CODE, loader, 64, needs_labels=False))

    return run


def convert(**changes: Any) -> ConvertResult:
    for directory in (layout.candidate_directory(REQUEST.conversion_key), layout.revision_directory(REQUEST.key)):
        shutil.rmtree(directory, ignore_errors=True)
    return run_convert(replace(REQUEST, **changes))


def refusal(**changes: Any) -> StageError:
    with pytest.raises(StageError) as caught:
        convert(**changes)
    return caught.value


def served() -> Any:
    return onnx.load(str(model_file(REVISION, "small", "onnx")))


def answers() -> list[Any]:
    session = onnxruntime.InferenceSession(
        str(model_file(REVISION, "small", "onnx")), providers=["CPUExecutionProvider"]
    )
    return list(session.run(None, inputs("transformer")))


def expected() -> list[Any]:
    with numpy.load(layout.reference_directory(REFERENCE) / "batches" / "00000.npz") as arrays:
        return [arrays["outputs/features"], arrays["outputs/length"]]


def test_without_a_wish_the_file_s_graph_is_what_is_served(bring: Callable[..., None]) -> None:
    model = transformer()
    bring(model, inputs("transformer"))
    result = convert()
    assert served().graph == model.graph
    assert result.data_types == ("FP32",)
    assert result.max_absolute_error == 0.0
    signature = read_result(layout.reference_directory(REFERENCE), "reference", REFERENCE, ReferenceResult).signature
    assert [tensor.name for tensor in (*signature.inputs, *signature.outputs)] == ["tokens", "features", "length"]


@pytest.mark.parametrize("optimized", [False, True])
def test_sizes_that_the_graph_leaves_open_stay_open(bring: Callable[..., None], optimized: bool) -> None:
    """A detector takes pictures of any size; the dataloader gave pictures of one size."""
    graph = Graph()
    boxes = graph.add("Reshape", "images", graph.constant(numpy.array([0, 3, -1])))
    model = graph.model(
        {"images": (TensorProto.FLOAT, ["batch", 3, "height", "width"])},
        {"boxes": (boxes, TensorProto.FLOAT, ["batch", 3, "anchors"])},
    )
    bring(model, {"images": numpy.random.default_rng(0).standard_normal((2, 3, 8, 8)).astype(numpy.float32)})
    convert(onnx_optimized=optimized)
    config = model_file(REVISION, "small", "onnx").parents[1] / "config.pbtxt"
    message = text_format.Parse(config.read_text(), model_config_pb2.ModelConfig())
    assert list(message.input[0].dims) == [3, -1, -1]
    assert list(message.output[0].dims) == [3, -1]


def test_an_output_whose_size_an_exporter_left_open_is_declared_as_the_graph_has_it(bring: Callable[..., None]) -> None:
    """Triton's onnxruntime backend refuses [3] for an output that the graph declares as [batch, anything]."""
    graph = Graph()
    model = graph.model(
        {"x": (TensorProto.FLOAT, ["batch", 3])}, {"y": (graph.add("Neg", "x"), TensorProto.FLOAT, ["batch", "k"])}
    )
    path = layout.source_directory(SOURCE) / "models" / "model.onnx"
    bring(model, {"x": numpy.arange(6, dtype=numpy.float32).reshape(2, 3)})
    signature = Signature((Tensor("x", "FP32", (3,)),), (Tensor("y", "FP32", (3,)),), 4)
    assert as_served(signature, path, "onnx").outputs == (Tensor("y", "FP32", (-1,)),)
    assert as_served(signature, path, "ts-trace") == signature
    model.graph.output[0].type.tensor_type.ClearField("shape")
    onnx.save(model, str(path))
    assert as_served(signature, path, "onnx") == signature


def test_a_size_that_onnx_runtime_infers_is_declared(bring: Callable[..., None]) -> None:
    """Triton asks ONNX Runtime for the outputs' sizes, and refuses a configuration that says otherwise."""
    graph = Graph()
    hidden = graph.add("Relu", "x")
    model = graph.model(
        {"x": (TensorProto.FLOAT, ["n", 3])},
        {"y": (hidden, TensorProto.FLOAT, ["n", "exporter_does_not_know"])},
    )
    bring(model, {"x": numpy.arange(6, dtype=numpy.float32).reshape(2, 3)})
    convert()
    session = onnxruntime.InferenceSession(str(model_file(REVISION, "small", "onnx")))
    assert [output.shape for output in session.get_outputs()] == [["n", 3]]
    text = (layout.model_repository(REVISION) / "small" / "config.pbtxt").read_text()
    assert list(text_format.Parse(text, model_config_pb2.ModelConfig()).output[0].dims) == [3]


def misdeclared(shape: list[Any]) -> Any:
    """Answers [n, 1, 3] for [n, 3], which nobody can infer: it depends on a condition, as in ddddocr's OCR model."""
    then, other = Graph(), Graph()
    longer = then.add("Unsqueeze", "x", "axes")
    branches = {
        "then_branch": helper.make_graph(then.nodes, "then", [], [helper.make_empty_tensor_value_info(longer)]),
        "else_branch": helper.make_graph(
            other.nodes, "else", [], [helper.make_empty_tensor_value_info(other.add("Identity", "x"))]
        ),
    }
    graph = Graph()
    graph.weights.append(helper.make_tensor("axes", TensorProto.INT64, [1], [1]))
    small = graph.add("Less", graph.add("ReduceMax", "x", keepdims=0), graph.constant(numpy.float32(1e9)))
    answer = graph.add("If", small, **branches)
    return graph.model({"x": (TensorProto.FLOAT, ["n", 3])}, {"y": (answer, TensorProto.FLOAT, shape)})


@pytest.mark.parametrize(
    ("declared", "dims"), [([1, "steps"], [-1, -1]), (["n", 3, 1], [-1, -1]), (["n", 2, "k"], [-1, -1])]
)
def test_an_output_that_the_file_declares_wrongly_is_declared_as_it_is(
    bring: Callable[..., None], declared: list[Any], dims: list[int]
) -> None:
    """ONNX Runtime only warns: "Expected shape from model of {1,-1} does not match actual shape"."""
    bring(misdeclared(declared), {"x": numpy.arange(6, dtype=numpy.float32).reshape(2, 3)})
    convert()
    text = (layout.model_repository(REVISION) / "small" / "config.pbtxt").read_text()
    assert list(text_format.Parse(text, model_config_pb2.ModelConfig()).output[0].dims) == dims
    session = onnxruntime.InferenceSession(str(model_file(REVISION, "small", "onnx")))
    assert len(session.get_outputs()[0].shape) == 3


@pytest.mark.parametrize(("precision", "optimized"), [("fp32", True), ("fp16", False), ("fp16", True)])
def test_precision_and_optimiser_keep_the_interface(
    bring: Callable[..., None], precision: str, optimized: bool
) -> None:
    model = transformer()
    bring(model, inputs("transformer"))
    result = convert(precision=precision, onnx_optimized=optimized)
    assert result.data_types[0] == precision.upper()
    assert [value.name for value in served().graph.input] == ["tokens"]
    assert [value.name for value in served().graph.output] == ["features", "length"]
    assert {entry.domain for entry in served().opset_import} <= {"", "ai.onnx"}
    tolerance = 2e-2 if precision == "fp16" else 1e-5
    for answer, wanted in zip(answers(), expected(), strict=True):
        assert answer.dtype == wanted.dtype
        numpy.testing.assert_allclose(answer, wanted, atol=tolerance)
    assert result.max_absolute_error is not None
    assert result.max_absolute_error <= tolerance


def test_the_optimiser_folds_what_is_constant(bring: Callable[..., None]) -> None:
    graph = Graph()
    shape = graph.add("Concat", *(graph.constant(numpy.array([size])) for size in (-1, 4)), axis=0)
    y = graph.add("Reshape", graph.add("Identity", "x"), shape)
    x = numpy.random.default_rng(0).standard_normal((2, 4)).astype(numpy.float32)
    bring(graph.model({"x": (TensorProto.FLOAT, ["n", 4])}, {"y": (y, TensorProto.FLOAT, ["n", 4])}), {"x": x})
    convert(onnx_optimized=True)
    assert [node.op_type for node in served().graph.node if node.op_type != "Identity"] == ["Reshape"]


@pytest.mark.parametrize(("opset", "kept"), [(0, 17), (17, 17), (18, 18), (21, 21)])
def test_the_operator_set_changes_where_one_is_asked_for(bring: Callable[..., None], opset: int, kept: int) -> None:
    bring(transformer(), inputs("transformer"))
    convert(onnx_opset=opset)
    assert [entry.version for entry in served().opset_import] == [kept]
    numpy.testing.assert_allclose(answers()[0], expected()[0], atol=1e-5)


def test_an_operator_set_that_lacks_an_operator_is_refused(bring: Callable[..., None]) -> None:
    bring(transformer(), inputs("transformer"))
    error = refusal(onnx_opset=11)
    assert error.reason is Reason.CONVERSION_UNSUPPORTED
    assert error.message.startswith("models/model.onnx has opset 17, but the graph cannot be converted from it")
    assert "opset 11 was requested" in error.message


@pytest.mark.parametrize(("precision", "optimized"), [("fp32", False), ("fp32", True), ("fp16", False)])
def test_weights_beyond_what_a_message_holds_lie_beside_the_graph(
    bring: Callable[..., None], monkeypatch: pytest.MonkeyPatch, precision: str, optimized: bool
) -> None:
    """The bound is 1.5 GiB; here it is 4 kB."""
    monkeypatch.setattr(onnx_graph, "INLINE_BYTES", 4000)
    bring(transformer(), inputs("transformer"), save_as_external_data=True, location="weights.bin", size_threshold=200)
    convert(precision=precision, onnx_optimized=optimized)
    version = model_file(REVISION, "small", "onnx").parent
    assert sorted(path.name for path in version.iterdir()) == ["model.onnx", onnx_graph.DATA_FILE]
    weights = onnx_graph.weight_bytes(transformer()) / (2 if precision == "fp16" else 1)
    assert 0.9 * weights < (version / onnx_graph.DATA_FILE).stat().st_size < 1.1 * weights
    numpy.testing.assert_allclose(answers()[0], expected()[0], atol=2e-2 if precision == "fp16" else 1e-5)


def test_small_weights_from_beside_the_graph_come_into_it(bring: Callable[..., None]) -> None:
    bring(transformer(), inputs("transformer"), save_as_external_data=True, location="weights.bin", size_threshold=200)
    convert()
    assert [path.name for path in model_file(REVISION, "small", "onnx").parent.iterdir()] == ["model.onnx"]


def test_a_batch_that_the_file_fixes_cannot_be_served_in_batches(bring: Callable[..., None]) -> None:
    graph = Graph()
    y = graph.add("Neg", "x")
    model = graph.model({"x": (TensorProto.FLOAT, [2, 3])}, {"y": (y, TensorProto.FLOAT, [2, 3])})
    with pytest.raises(StageError) as caught:
        bring(model, {"x": numpy.arange(6, dtype=numpy.float32).reshape(2, 3)})
    assert caught.value.reason is Reason.BATCHING_UNSUPPORTED
    assert "a batch of 2 works, but a batch of 1 fails" in caught.value.message


def test_strings_are_bytes_on_the_wire_from_the_dataloader_to_perf_analyzer_s_file(bring: Callable[..., None]) -> None:
    graph = Graph()
    same = graph.add("Cast", graph.add("Equal", "words", graph.constant(numpy.array("yes"))), to=TensorProto.FLOAT)
    model = graph.model(
        {"words": (TensorProto.STRING, ["n", "length"]), "counts": (TensorProto.INT32, ["n"])},
        {
            "same": (same, TensorProto.FLOAT, ["n", "length"]),
            "echo": ("words", TensorProto.STRING, ["n", "length"]),
            "twice": (graph.add("Add", "counts", "counts"), TensorProto.INT32, ["n"]),
        },
        opset=19,
    )
    words = numpy.array([["yes", "no"], ["größer", "yes"]])
    bring(model, {"words": words, "counts": numpy.array([3, 4], numpy.int32)})
    convert(config=replace(REQUEST.config, warmup=True))
    home = layout.reference_directory(REFERENCE)
    signature = read_result(home, "reference", REFERENCE, ReferenceResult).signature
    assert [tensor.data_type for tensor in (*signature.inputs, *signature.outputs)] == [
        "BYTES",
        "INT32",
        "FP32",
        "BYTES",
        "INT32",
    ]
    steps = json.loads((home / "perf.json").read_text())["data"]
    assert [step["words"] for step in steps] == [{"content": row, "shape": [2]} for row in words.tolist()]
    model_directory = model_file(REVISION, "small", "onnx").parents[1]
    assert (model_directory / "warmup" / "words").read_bytes() == b"\x03\0\0\0yes\x02\0\0\0no"
    read = text_format.Parse((model_directory / "config.pbtxt").read_text(), model_config_pb2.ModelConfig())
    kinds = model_config_pb2.DataType
    assert [kinds.Name(each.data_type) for each in (*read.input, *read.output)] == [
        "TYPE_STRING",
        "TYPE_INT32",
        "TYPE_FP32",
        "TYPE_STRING",
        "TYPE_INT32",
    ]
    assert {kinds.Name(each.inputs["words"].data_type) for each in read.model_warmup} == {"TYPE_STRING"}
    request = load_input.first_request((home / "perf.json").read_text(), signature)
    assert request["words"].tolist() == [["yes", "no"]]
    longer = load_input.reshape((home / "perf.json").read_text(), [InputShape("words", (3,))], signature)
    assert json.loads(longer)["data"][1]["words"] == {"content": ["größer", "yes", "größer"], "shape": [3]}


def load(source: Path, path: str = "model.onnx") -> Any:
    return onnx_loader.load(source, ModelCode("onnx", Entrypoint(path, {}), 4), "onnx")


def reason_of(source: Path, path: str = "model.onnx") -> tuple[Reason, str]:
    with pytest.raises(StageError) as caught:
        load(source, path)
    return caught.value.reason, caught.value.message


def test_what_is_no_model_has_a_reason(tmp_path: Path) -> None:
    assert reason_of(tmp_path)[0] is Reason.ENTRYPOINT_INVALID
    assert reason_of(tmp_path, "../secret.onnx")[0] is Reason.ENTRYPOINT_INVALID
    (tmp_path / "model.onnx").write_bytes(b"\x08\x07no model")
    assert reason_of(tmp_path)[0] is Reason.CHECKPOINT_INVALID


def test_libraries_of_custom_operators_are_not_loaded(tmp_path: Path) -> None:
    graph = Graph()
    graph.nodes.append(helper.make_node("Secret", ["x"], ["z"], domain="org.example"))
    model = graph.model({"x": (TensorProto.FLOAT, ["n"])}, {"y": ("z", TensorProto.FLOAT, ["n"])})
    model.opset_import.append(helper.make_opsetid("org.example", 1))
    onnx.save(model, str(tmp_path / "model.onnx"))
    reason, message = reason_of(tmp_path)
    assert reason is Reason.CHECKPOINT_INVALID
    assert "operators of 'org.example'" in message


def test_an_operator_in_a_branch_counts_too(tmp_path: Path) -> None:
    branch = Graph()
    branch.nodes.append(helper.make_node("Secret", ["x"], ["z"], domain="org.example"))
    body = helper.make_graph(branch.nodes, "then", [], [helper.make_tensor_value_info("z", TensorProto.FLOAT, ["n"])])
    graph = Graph()
    chosen = graph.add("If", "flag", then_branch=body, else_branch=body)
    model = graph.model(
        {"x": (TensorProto.FLOAT, ["n"]), "flag": (TensorProto.BOOL, [])}, {"y": (chosen, TensorProto.FLOAT, ["n"])}
    )
    model.opset_import.append(helper.make_opsetid("org.example", 1))
    onnx.save(model, str(tmp_path / "model.onnx"))
    assert "operators of 'org.example'" in reason_of(tmp_path)[1]


def test_an_operator_set_that_no_node_uses_is_no_library(tmp_path: Path) -> None:
    model = Graph().model({"x": (TensorProto.FLOAT, ["n"])}, {"y": ("x", TensorProto.FLOAT, ["n"])})
    model.opset_import.append(helper.make_opsetid("org.pytorch.aten", 1))
    onnx.save(model, str(tmp_path / "model.onnx"))
    assert onnx_loader.load(tmp_path, ModelCode("onnx", Entrypoint("model.onnx", {}), 1), "onnx").outputs == ("y",)


def test_weights_outside_the_source_are_not_read(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    onnx.save(
        transformer(), str(source / "model.onnx"), save_as_external_data=True, location="w.bin", size_threshold=200
    )
    shutil.move(source / "w.bin", tmp_path / "w.bin")
    model = onnx.load(str(source / "model.onnx"), load_external_data=False)
    for tensor in model.graph.initializer:
        for entry in tensor.external_data:
            entry.value = "../w.bin" if entry.key == "location" else entry.value
    (source / "model.onnx").write_bytes(model.SerializeToString())
    reason, message = reason_of(source)
    assert reason is Reason.CHECKPOINT_INVALID
    assert "w.bin" in message


def test_a_wrong_input_is_told_with_its_shape(tmp_path: Path) -> None:
    onnx.save(transformer(), str(tmp_path / "model.onnx"))
    with pytest.raises(StageError) as caught:
        load(tmp_path)({"tokens": numpy.zeros((2, 3), numpy.float32)})
    assert caught.value.reason is Reason.FRAMEWORK_FAILED
    assert "inputs: tokens float32[2, 3]" in caught.value.message


@pytest.mark.parametrize(
    ("ir_version", "opset", "words"),
    [
        (
            99,
            17,
            r"has IR version 99 of ONNX; onnxruntime \S+ reads none after \d+: set ir_version of the loaded model",
        ),
        (10, 99, r"has operator set 99 of ONNX; onnxruntime \S+ reads none after \d+: export it with an older opset"),
        (10, 1, r"is not an ONNX model that runs: (?!.*(onnxruntime_src|ONNXRuntimeError|::)).*Gelu"),
    ],
    ids=["ir", "opset", "operator"],
)
def test_what_onnx_runtime_cannot_read_is_told_without_places_in_its_source(
    tmp_path: Path, ir_version: int, opset: int, words: str
) -> None:
    graph = Graph()
    y = graph.add("Gelu", "x")
    model = graph.model({"x": (TensorProto.FLOAT, [1, 4])}, {"y": (y, TensorProto.FLOAT, [1, 4])})
    model.ir_version = ir_version
    model.opset_import[0].version = opset
    (tmp_path / "models").mkdir()
    onnx.save(model, str(tmp_path / "models/model.onnx"))
    with pytest.raises(StageError, match=f"^models/model.onnx {words}") as refused:
        onnx_loader.load(tmp_path, CODE, "onnx")
    assert refused.value.reason is Reason.CHECKPOINT_INVALID
