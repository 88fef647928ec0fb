"""An ensemble of embedding tables and an ONNX model, from the reference to the revision."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy
import onnx
import pytest
from google.protobuf import text_format
from onnx import TensorProto, helper
from tritonclient.grpc import model_config_pb2

from tests.converters.run_stage import run_convert, run_reference
from triton_converters.claim_store.dump import read_batches, read_sizes
from triton_converters.claim_store.replay import read_result
from triton_converters.contract import layout
from triton_converters.contract.conversion_requests import (
    ConvertRequest,
    EnsembleCode,
    Entrypoint,
    HpsOptions,
    ModelCode,
    ModelConfig,
    ReferenceRequest,
    Step,
    TensorRtOptions,
)
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import ReferenceResult, Tensor
from triton_converters.stages.convert import produce

SOURCE, KEY = "d" * 64, "0123456789abcdef"
SPARSE = """
import numpy
def get_model():
    vectors = numpy.arange(40, dtype=numpy.float32).reshape(20, 2)
    return {"all": (numpy.arange(20), vectors)}, {"inputs": ["KEYS", "NUMKEYS"], "outputs": ["OUTPUT0"]}
"""
DATALOADER = """
import numpy
def get_dataloader_fn(batch_size: int):
    def batches():
        for start in range(0, 12 - batch_size + 1, batch_size):
            keys = numpy.arange(3 * start, 3 * (start + batch_size))[None] % 20
            yield (
                numpy.arange(start, start + batch_size),
                {"EMB_KEY": keys, "EMB_N_KEY": numpy.array([[keys.size]], numpy.int32)},
                {"clicks": numpy.zeros(batch_size)},
            )
    return batches
"""
STEPS = (
    Step(
        "sparse",
        {"KEYS": "EMB_KEY", "NUMKEYS": "EMB_N_KEY"},
        {"OUTPUT0": "VECTORS"},
        ModelCode("hps", Entrypoint("sparse.py", {}), 64),
    ),
    Step("dense", {"vectors": "VECTORS"}, {"sums": "LOGITS"}, ModelCode("onnx", Entrypoint("dense.onnx", {}), 0)),
)
CODE = EnsembleCode(
    (Tensor("EMB_KEY", "INT64", (1, -1)), Tensor("EMB_N_KEY", "INT32", (1, 1))),
    (Tensor("LOGITS", "FP32", (-1, 1)),),
    STEPS,
)
CONFIG = ModelConfig(1, "KIND_CPU", False, (), 0, False, True, {})


def dense() -> bytes:
    """Sums the three vectors of each sample: (6 n,) to (n, 1)."""
    nodes = [
        helper.make_node("Reshape", ["vectors", "shape"], ["rows"]),
        helper.make_node("MatMul", ["rows", "ones"], ["sums"]),
    ]
    constants = [
        helper.make_tensor("shape", TensorProto.INT64, [2], [-1, 6]),
        helper.make_tensor("ones", TensorProto.FLOAT, [6, 1], [1.0] * 6),
    ]
    graph = helper.make_graph(
        nodes,
        "dense",
        [helper.make_tensor_value_info("vectors", TensorProto.FLOAT, ["elements"])],
        [helper.make_tensor_value_info("sums", TensorProto.FLOAT, ["samples", 1])],
        constants,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString())


@pytest.fixture
def source(mount: Path) -> Path:
    """The published source."""
    directory = layout.source_directory(SOURCE)
    directory.mkdir(parents=True)
    (directory / "sparse.py").write_text(SPARSE)
    (directory / "dataloader.py").write_text(DATALOADER)
    (directory / "dense.onnx").write_bytes(dense())
    return directory


def refer(code: EnsembleCode = CODE, sizes: tuple[int, ...] = (2, 4)) -> ReferenceResult:
    model = ModelCode("ensemble", Entrypoint("", {}), 0, code)
    return run_reference(
        ReferenceRequest(KEY, SOURCE, model, Entrypoint("dataloader.py", {}), 64, needs_labels=True, batch_sizes=sizes)
    )


def convert_request(gpu_count: int = 0) -> ConvertRequest:
    """The ensemble's, with one for each model."""

    def member(step: Step, target: str) -> ConvertRequest:
        return ConvertRequest(
            key="f" * 16,
            conversion_key=step.model.ljust(16, "0"),
            source=SOURCE,
            reference=layout.member_key(KEY, step.model),
            model_name=step.model,
            model=step.code,
            candidate="",
            format=target,
            precision="fp32",
            accelerator="none",
            onnx_opset=0,
            onnx_exporter="TorchScript",
            onnx_optimized=False,
            tensorrt=TensorRtOptions(2**30, 3),
            gpu_product="",
            engine_cache="",
            config=CONFIG,
            gpu_count=gpu_count,
            hps=HpsOptions(10, 3) if target == "hps" else None,
        )

    members = (member(STEPS[0], "hps"), member(STEPS[1], "onnx"))
    whole = ModelCode("ensemble", Entrypoint("", {}), 0, CODE)
    return replace(
        members[0],
        conversion_key="",
        reference=KEY,
        model_name="dlrm",
        model=whole,
        candidate="onnx",
        format="ensemble",
        members=members,
        hps=None,
    )


def parsed(directory: Path) -> Any:
    """config.pbtxt, read by NVIDIA's protobuf."""
    return text_format.Parse((directory / "config.pbtxt").read_text(), model_config_pb2.ModelConfig())


def test_a_request_with_models_survives_the_way(source: Path) -> None:
    request = convert_request()
    assert ConvertRequest.from_json(request.to_json()) == request


def test_the_reference_is_of_the_whole(source: Path) -> None:
    result = refer()
    assert (result.signature.inputs, result.signature.outputs) == (CODE.inputs, CODE.outputs)
    assert (result.batches, result.signature.max_batch_size) == (3, 0)
    batches = list(read_batches(layout.reference_directory(KEY)))
    assert [batch.inputs["EMB_KEY"].shape for batch in batches] == [(1, 12)] * 3
    vectors = numpy.arange(40, dtype=numpy.float32).reshape(20, 2)
    expected = vectors[batches[1].inputs["EMB_KEY"][0]].reshape(4, 6).sum(axis=1, keepdims=True)
    numpy.testing.assert_array_equal(batches[1].outputs["LOGITS"], expected)


def test_every_measured_size_is_made_by_the_dataloader(source: Path) -> None:
    refer()
    home = layout.reference_directory(KEY)
    assert [batch.inputs["EMB_N_KEY"].item() for batch in read_sizes(home)] == [6]
    shapes = {
        size: {tuple(step["EMB_KEY"]["shape"]) for step in json.loads((home / f"perf-{size}.json").read_text())["data"]}
        for size in (2, 4)
    }
    assert shapes == {2: {(1, 6)}, 4: {(1, 12)}}
    assert not (home / "perf.json").exists()


def test_a_single_size_is_not_taken_for_the_only_one(source: Path) -> None:
    refer(sizes=(4,))
    key = layout.member_key(KEY, "dense")
    result = read_result(layout.reference_directory(key), "reference", key, ReferenceResult)
    assert result.signature.inputs == (Tensor("vectors", "FP32", (-1,)),)


def test_models_have_references_of_their_own(source: Path) -> None:
    refer()
    for model, tensors in (
        ("sparse", (Tensor("KEYS", "INT64", (-1,)), Tensor("NUMKEYS", "INT32", (-1,)))),
        ("dense", (Tensor("vectors", "FP32", (-1,)),)),
    ):
        key = layout.member_key(KEY, model)
        directory = layout.reference_directory(key)
        result = read_result(directory, "reference", key, ReferenceResult)
        assert result.signature.inputs == tensors
        assert len(list(read_batches(directory))) == 3, "two of the whole's and one of the other size"


def test_one_revision_holds_every_model(source: Path) -> None:
    refer()
    result = run_convert(convert_request())
    models = layout.model_repository("f" * 16)
    assert sorted(path.name for path in models.iterdir()) == ["dense", "dlrm", "sparse"]
    assert list((models / "dlrm" / "1").iterdir()) == []
    assert (models / "dense" / "1" / "model.onnx").is_file()
    assert sorted(path.name for path in (models / "sparse" / "1" / "0").iterdir()) == ["emb_vector", "key"]
    assert result.data_types == ("FP32",)
    assert result.max_absolute_error == 0.0

    ensemble = parsed(models / "dlrm")
    assert (ensemble.platform, ensemble.max_batch_size, ensemble.backend) == ("ensemble", 0, "")
    assert [list(tensor.dims) for tensor in ensemble.input] == [[1, -1], [1, 1]]
    steps = [
        (step.model_name, dict(step.input_map), dict(step.output_map)) for step in ensemble.ensemble_scheduling.step
    ]
    assert steps == [(step.model, step.inputs, step.outputs) for step in STEPS]

    sparse = parsed(models / "sparse")
    assert (sparse.backend, sparse.max_batch_size) == ("hps", 64)
    assert [(each.name, each.data_type, list(each.dims)) for each in (*sparse.input, *sparse.output)] == [
        ("KEYS", model_config_pb2.TYPE_INT64, [-1]),
        ("NUMKEYS", model_config_pb2.TYPE_INT32, [-1]),
        ("OUTPUT0", model_config_pb2.TYPE_FP32, [-1]),
    ]
    warmup = [(each.batch_size, list(each.inputs["KEYS"].dims)) for each in sparse.model_warmup]
    assert warmup == [(1, [12])], "one row that holds a whole batch"
    assert len((models / "sparse" / "warmup" / "KEYS").read_bytes()) == 12 * 8
    assert parsed(models / "dense").model_warmup, "every model is warmed up"


def test_paths_are_the_servers_own(source: Path, mount: Path) -> None:
    refer()
    run_convert(convert_request(gpu_count=1))
    document = json.loads(layout.parameter_server("f" * 16).read_text())
    directory = Path(document["models"][0]["sparse_files"][0])
    assert directory == mount / "revisions" / ("f" * 16) / "models" / "sparse" / "1" / "0"
    assert (directory / "key").is_file(), "the path holds after the rename"
    assert (document["models"][0]["gpucache"], document["models"][0]["max_batch_size"]) == (True, 64)


def test_a_model_that_was_converted_is_not_converted_again(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refer()
    request = convert_request()
    run_convert(request)
    monkeypatch.setattr(produce, "write_model", lambda *_: pytest.fail("it was converted again"))
    run_convert(replace(request, key="a" * 16, members=tuple(replace(each, key="a" * 16) for each in request.members)))
    assert layout.model_repository("a" * 16).is_dir()
    files = [layout.model_repository(key) / "sparse" / "1" / "0" / "emb_vector" for key in ("a" * 16, "f" * 16)]
    assert files[0].stat().st_ino == files[1].stat().st_ino


def test_a_model_that_fails_is_named(source: Path) -> None:
    refer()
    (source / "dense.onnx").write_bytes(b"")
    with pytest.raises(StageError) as error:
        run_convert(convert_request())
    assert error.value.message.startswith("model dense: ")
    assert "dense.onnx" in error.value.message
    assert not layout.revision_directory("f" * 16).exists()


def step(number: int, **changes: Any) -> EnsembleCode:
    steps = list(STEPS)
    steps[number] = replace(steps[number], **changes)
    return replace(CODE, steps=tuple(steps))


WRONG: Mapping[str, tuple[EnsembleCode, Reason, str]] = {
    "an input is not connected": (step(0, inputs={"KEYS": "EMB_KEY"}), Reason.INVALID_SPEC, "inputs are ['KEYS', 'NUM"),
    "no such output": (step(0, outputs={"OUTPUT1": "VECTORS"}), Reason.INVALID_SPEC, "outputMap has OUTPUT1"),
    "steps upside down": (
        replace(CODE, steps=tuple(reversed(STEPS))),
        Reason.INVALID_SPEC,
        "no earlier step makes the tensor VECTORS",
    ),
    "an input's type": (
        replace(CODE, inputs=(CODE.inputs[0], Tensor("EMB_N_KEY", "INT64", (1, 1)))),
        Reason.DATALOADER_INVALID,
        "input EMB_N_KEY is INT32[1, 1], but spec.ensemble.inputs declares INT64[1, 1]",
    ),
    "an output's dimensions": (
        replace(CODE, outputs=(Tensor("LOGITS", "FP32", (-1, 2)),)),
        Reason.FRAMEWORK_FAILED,
        "output LOGITS is FP32[-1, 1], but spec.ensemble.outputs declares FP32[-1, 2]",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_does_not_fit_is_said(source: Path, case: str) -> None:
    code, reason, words = WRONG[case]
    with pytest.raises(StageError) as error:
        refer(code)
    assert error.value.reason is reason
    assert words in error.value.message
