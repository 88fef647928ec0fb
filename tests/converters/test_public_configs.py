"""config.pbtxt as public repositories have it: what is served, left out with a notice, or refused."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy
import onnx
import pytest
from onnx import TensorProto

from tests.converters.deployed import served, settled, stalled
from tests.converters.onnx_models import Graph
from tests.converters.test_smallest_object import classifier
from triton_converters.claim_store.dump import Arrays, Batch
from triton_converters.contract.measurement_requests import Tolerance
from triton_converters.contract.results import Signature, Tensor
from triton_converters.gates.answers import collect
from triton_converters.measuring.perf_input import PerfInput

OPEN, FIXED = classifier("N", "N"), classifier(1, 1)


def heads() -> bytes:
    """A detector with two answers, of which a server may give one."""
    graph = Graph()
    features = graph.conv("images", 3, 4, 3, 2)
    model = graph.model(
        {"images": (TensorProto.FLOAT, ["N", 3, 32, 32])},
        {
            "boxes": (graph.add("Flatten", features), TensorProto.FLOAT, ["N", 1024]),
            "scores": (graph.add("Flatten", graph.add("GlobalAveragePool", features)), TensorProto.FLOAT, ["N", 4]),
        },
    )
    return bytes(model.SerializeToString())


IN = 'input [ { name: "images" data_type: TYPE_FP32 dims: [ 3, 32, 32 ] } ]'
OUT = 'output [ { name: "scores" data_type: TYPE_FP32 dims: [ 8 ] } ]'
BATCHED = f'platform: "onnxruntime_onnx" max_batch_size: 8 {IN} {OUT}'
QUICK_START = """
name: "densenet_onnx"
platform: "onnxruntime_onnx"
max_batch_size : 0
input [ {
  name: "images" data_type: TYPE_FP32 format: FORMAT_NCHW dims: [ 3, 32, 32 ] reshape { shape: [ 1, 3, 32, 32 ] } } ]
output [ { name: "scores" data_type: TYPE_FP32 dims: [ 8 ] reshape { shape: [ 1, 8 ] } label_filename: "labels.txt" } ]
"""
TENSORRT = """
optimization { execution_accelerators { gpu_execution_accelerator : [ { name : "tensorrt"
  parameters { key: "precision_mode" value: "FP16" }
  parameters { key: "trt_engine_cache_path" value: "/models/1" } } ] } }
"""
METADATA = """
parameters { key: "metadata" value: { string_value: "{'stride': 32, 'names': {0: 'a'}}" } }
"""


@dataclass(frozen=True)
class Public:
    """A configuration that is served."""

    text: str
    graph: bytes = OPEN
    file: str = "1/model.onnx"
    left_out: tuple[str, ...] = ()
    """Fields that a notice names."""
    config: Mapping[str, Any] = field(default_factory=dict)
    """What status.resolved says of the settings."""


SERVED = {
    "the quick start's densenet_onnx": Public(QUICK_START, FIXED, left_out=("output.label_filename",)),
    "an empty file": Public(""),
    "a backend alone": Public('backend: "onnxruntime"'),
    "batches without tensors": Public('platform: "onnxruntime_onnx" max_batch_size: 8', config={"maxBatchSize": 8}),
    "labels, a preferred size and a graph level": Public(
        f"{BATCHED.replace('dims: [ 8 ]', 'dims: [ 8 ] label_filename: {0}l.txt{0}'.format(chr(34)))}"
        " dynamic_batching { preferred_batch_size: [ 4 ] } optimization {graph : {level : -1}}",
        left_out=("output.label_filename",),
        config={
            "dynamicBatching": {"preferredBatchSizes": [4]},
            "overrides": "optimization {\n  graph {\n    level: -1\n  }\n}\n",
        },
    ),
    "ultralytics": Public(
        TENSORRT + METADATA,
        left_out=("optimization.execution_accelerators", "parameters 'metadata'"),
    ),
    "ultralytics on one GPU": Public(
        f"{BATCHED} instance_group [ {{ count: 1 kind: KIND_GPU gpus: [ 0 ] }} ]",
        left_out=("instance_group.gpus",),
    ),
    "two instances on two GPUs": Public(
        f"{BATCHED} instance_group [ {{ count: 2 kind: KIND_GPU gpus: [ 0, 1 ] }} ]",
        left_out=("instance_group.gpus",),
        config={"instances": 2},
    ),
    "instances on the CPU": Public(f"{BATCHED} instance_group {{ count: 4 kind: KIND_CPU }}", config={"instances": 4}),
    "mixed precision of TensorFlow": Public(
        BATCHED + TENSORRT.replace('name : "tensorrt"', 'name : "auto_mixed_precision"').replace("gpu_", "gpu_"),
        left_out=("optimization.execution_accelerators",),
    ),
    "OpenVINO on the CPU": Public(
        BATCHED + TENSORRT.replace('name : "tensorrt"', 'name : "openvino"').replace("gpu_", "cpu_"),
        left_out=("optimization.execution_accelerators",),
    ),
    "a dynamic batcher of its own sizes": Public(
        f"{BATCHED} dynamic_batching {{ preferred_batch_size: [ 2, 4, 8 ] max_queue_delay_microseconds: 5000 }}",
        config={"dynamicBatching": {"preferredBatchSizes": [2, 4, 8], "maxQueueDelay": "5ms"}},
    ),
    "an empty dynamic batcher": Public(f"{BATCHED} dynamic_batching {{ }}", config={"dynamicBatching": {}}),
    "a warm-up": Public(
        f"""{BATCHED} model_warmup [ {{ name: "zero" batch_size: 1
        inputs: {{ key: "images" value: {{ data_type: TYPE_FP32 dims: [ 3, 32, 32 ] zero_data: true }} }} }} ]"""
    ),
    "the latest versions": Public(f"{BATCHED} version_policy: {{ latest: {{ num_versions: 3 }} }}"),
    "all versions": Public(f"{BATCHED} version_policy: {{ all {{ }} }}"),
    "a version of several": Public(
        f"{BATCHED} version_policy: {{ specific: {{ versions: [ 1, 7 ] }} }}", file="7/model.onnx"
    ),
    "a file of another name": Public(f'{BATCHED} default_model_filename: "net.onnx"', file="1/net.onnx"),
    "threads": Public(
        f'{BATCHED} parameters {{ key: "intra_op_thread_count" value: {{ string_value: "2" }} }}',
        config={"parameters": {"intra_op_thread_count": "2"}},
    ),
    "settings of a session that only a pipeline reads": Public(
        f'{BATCHED} parameters: {{ key: "preprocessing" value: {{ string_value: "resize 640x640" }} }}',
        left_out=("parameters 'preprocessing'",),
    ),
    "no batch dimension": Public(
        f"max_batch_size: 0 {IN.replace('3, 32', '-1, 3, 32')} {OUT.replace('[ 8 ]', '[ -1, 8 ]')}",
        config={"maxBatchSize": 0},
    ),
    "a reshape that removes a 1": Public(
        f"""max_batch_size: 4 {IN.replace("[ 3, 32, 32 ]", "[ 1, 3, 32, 32 ] reshape { shape: [ 3, 32, 32 ] }")}
        {OUT.replace("[ 8 ]", "[ 1, 8, 1 ] reshape { shape: [ 8 ] }")}"""
    ),
    "some of the outputs": Public(
        f'max_batch_size: 8 {IN} output [ {{ name: "scores" data_type: TYPE_FP32 dims: [ 4 ] }} ]', heads()
    ),
    "tags of metrics": Public(f'{BATCHED} metric_tags {{ key: "team" value: "a" }}', left_out=("metric_tags",)),
    "a queue policy": Public(
        f"{BATCHED} dynamic_batching {{ default_queue_policy {{ max_queue_size: 100 timeout_action: REJECT }} }}"
    ),
    "one answer for a request": Public(f"{BATCHED} model_transaction_policy {{ decoupled: false }}"),
    "memory that is pinned": Public(f"{BATCHED} optimization {{ input_pinned_memory {{ enable: true }} }}"),
}
REFUSED = {
    "an ensemble": (
        'platform: "ensemble" ensemble_scheduling { step { model_name: "a" } }',
        ["list the models of the"],
    ),
    "a Python backend": ('backend: "python" max_batch_size: 8', ["backend 'python' is not supported"]),
    "an engine": (f'platform: "tensorrt_plan" max_batch_size: 8 {IN} {OUT}', ["give the ONNX file"]),
    "a frozen graph": (
        f'platform: "tensorflow_graphdef" max_batch_size: 128 {IN} {OUT}',
        ["save the graph as a SavedModel"],
    ),
    "inputs that NumPy lacks, sequences and an environment at once": (
        f"""backend: "onnxruntime" {IN.replace("FP32", "BF16")} {OUT}
        sequence_batching {{ max_sequence_idle_microseconds: 5 }}
        parameters {{ key: "EXECUTION_ENV_PATH" value: {{ string_value: "/opt/env" }} }}
        instance_group {{ kind: KIND_MODEL }}""",
        ["is BF16: a tensor may be", "correlation IDs", "EXECUTION_ENV_PATH", "KIND_MODEL"],
    ),
    "a reshape of another kind": (
        f"{IN.replace('[ 3, 32, 32 ]', '[ 3072 ] reshape { shape: [ 3, 32, 32 ] }')} {OUT}",
        ["input.reshape of images is not supported: it may only add and remove dimensions of 1"],
    ),
    "a cache": (f"{BATCHED} response_cache {{ enable: true }}", ["a sweep would measure the cache"]),
    "several groups of instances": (
        f"{BATCHED} instance_group [ {{ count: 1 gpus: [ 0 ] }}, {{ count: 2 gpus: [ 1 ] }} ]",
        ["several instance groups"],
    ),
}


@pytest.mark.parametrize("name", SERVED)
def test_what_is_served_in_public_is_served(mount: Path, name: str) -> None:
    given = SERVED[name]
    files: dict[str, bytes | str] = {
        "models/ocr/config.pbtxt": given.text,
        "models/ocr/labels.txt": "cat",
        f"models/ocr/{given.file}": given.graph,
    }
    cluster, ran = settled(files)
    assert cluster.condition("Ready")["status"] == "True", cluster.condition("Stalled")
    (model,) = cluster.status["resolved"]["models"]
    found = model["repository"]
    assert found["file"] == f"models/ocr/{given.file}"
    assert [each.partition(":")[0] for each in found.get("leftOut", [])] == list(given.left_out)
    message = cluster.condition("SourceResolved")["message"]
    assert all(each in message for each in given.left_out)
    assert given.config.items() <= found.get("config", {}).items()
    folder, _ = served(ran)
    onnx.checker.check_model(onnx.load(folder / "1/model.onnx"))


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_served_says_all_that_is_wrong(mount: Path, name: str) -> None:
    text, words = REFUSED[name]
    cluster, _ = settled({"models/ocr/config.pbtxt": text, "models/ocr/1/model.onnx": OPEN})
    reason, message = stalled(cluster)
    assert reason == "ModelConfigRefused"
    for each in words:
        assert each in message


def test_a_reshape_is_what_the_server_is_told_and_what_clients_send(mount: Path) -> None:
    cluster, ran = settled({"models/ocr/config.pbtxt": QUICK_START, "models/ocr/1/model.onnx": FIXED})
    _, config = served(ran)
    assert [(list(each.dims), list(each.reshape.shape)) for each in (*config.input, *config.output)] == [
        ([3, 32, 32], [1, 3, 32, 32]),
        ([8], [1, 8]),
    ]
    assert [list(each.inputs["images"].dims) for each in config.model_warmup] == [[3, 32, 32]]
    assert [each["dims"] for each in cluster.status["signature"]["inputs"]] == [[3, 32, 32]]


def test_some_of_the_outputs_are_all_that_is_compared_and_served(mount: Path) -> None:
    given = SERVED["some of the outputs"]
    cluster, ran = settled({"models/ocr/config.pbtxt": given.text, "models/ocr/1/model.onnx": given.graph})
    folder, config = served(ran)
    assert [each.name for each in config.output] == ["scores"]
    assert [each["name"] for each in cluster.status["signature"]["outputs"]] == ["scores"]
    assert [each.name for each in onnx.load(folder / "1/model.onnx").graph.output] == ["scores"]


def test_samples_are_sent_and_answers_are_compared_in_their_own_shapes() -> None:
    def infer(inputs: Arrays, outputs: tuple[str, ...]) -> dict[str, Any]:
        shapes.append(inputs["x"].shape)
        return {"y": inputs["x"].reshape(-1, 3, 1, 1) * 2, "n": inputs["x"].sum(axis=(1, 2), keepdims=True)[:, 0]}

    shapes: list[tuple[int, ...]] = []
    x = numpy.arange(12, dtype=numpy.float32).reshape(4, 1, 3, 1)
    batch = Batch(numpy.arange(4), {"x": x}, {}, {"y": (x * 2)[:, 0, :, 0], "n": x.sum(axis=(1, 2, 3))})
    signature = Signature(
        (Tensor("x", "FP32", (1, 3, 1), (3, 1)),), (Tensor("y", "FP32", (3,), (3, 1, 1)), Tensor("n", "FP32", ())), 2
    )
    answers = collect(infer, [batch], signature, Tolerance(1e-4, 1e-4), {})
    assert set(answers.agreements) == {"y", "n"}
    assert answers.max_absolute_error == 0
    assert {each[1:] for each in shapes} == {(3, 1)}
    perf_input = PerfInput(True, signature.inputs)
    perf_input.add({"x": x})
    assert all(step["x"]["shape"] == [3, 1] for step in perf_input.steps)
