"""A folder of a Triton repository: the planner's requests, run by the Jobs' own programs, and what is then served."""

from pathlib import Path

import onnx
import pytest

from tests.converters.deployed import Deploy, served, settled, stalled
from tests.converters.onnx_models import transformer
from tests.converters.test_found_formats import FILES
from tests.converters.test_smallest_object import classifier

CONFIG = """
platform: "onnxruntime_onnx"
max_batch_size: 8
input { name: "images" data_type: TYPE_FP32 dims: [ 3, 32, 32 ] }
output { name: "scores" data_type: TYPE_FP32 dims: [ 8 ] }
instance_group { count: 2 kind: KIND_CPU }
dynamic_batching { preferred_batch_size: 4 max_queue_delay_microseconds: 500
  default_queue_policy { max_queue_size: 16 } }
parameters { key: "intra_op_thread_count" value { string_value: "1" } }
"""
GRAPH = classifier("N", "N")


@pytest.fixture
def deploy(mount: Path) -> Deploy:
    """Puts files onto a claim, and settles an object of the folder ``models/ocr`` there."""
    return settled


@pytest.mark.parametrize("said", [{}, {"format": "triton-repository"}], ids=["found", "said"])
def test_what_somebody_serves_already_is_served_as_the_file_says(deploy: Deploy, said: dict[str, str]) -> None:
    cluster, ran = deploy(
        {
            "models/ocr/config.pbtxt": CONFIG,
            "models/ocr/1/model.onnx": b"an old version",
            "models/ocr/10/model.onnx": GRAPH,
            "models/ocr/10/libtriton_onnxruntime.so": b"planted",
            "models/ocr/libtriton_onnxruntime.so": b"planted",
            "models/other/config.pbtxt": "nonsense",
        },
        **said,
    )
    assert cluster.condition("Ready")["status"] == "True", cluster.condition("Stalled")
    (model,) = cluster.status["resolved"]["models"]
    assert (model["format"], model["maxBatchSize"]) == ("onnx", 8)
    assert model["repository"]["file"] == "models/ocr/10/model.onnx"
    assert [each["name"] for each in model["candidates"]] == ["onnx-fp32"]
    message = cluster.condition("SourceResolved")["message"]
    assert "models/ocr is of format onnx; config.pbtxt in models/ocr sets maxBatchSize, instances" in message
    folder, config = served(ran)
    names = sorted(str(each.relative_to(folder)) for each in folder.rglob("*") if each.is_file())
    assert [each for each in names if not each.startswith("warmup/")] == ["1/model.onnx", "config.pbtxt"]
    assert (folder.name, config.name) == ("reader", "")
    assert (config.max_batch_size, config.instance_group[0].count) == (8, 2)
    assert list(config.dynamic_batching.preferred_batch_size) == [4]
    assert config.dynamic_batching.max_queue_delay_microseconds == 500
    assert config.dynamic_batching.default_queue_policy.max_queue_size == 16
    assert config.parameters["intra_op_thread_count"].string_value == "1"
    assert [(each.name, list(each.dims)) for each in (*config.input, *config.output)] == [
        ("images", [3, 32, 32]),
        ("scores", [8]),
    ]
    assert onnx.load(folder / "1/model.onnx").graph.node == onnx.load_from_string(GRAPH).graph.node


def test_the_spec_comes_before_the_file(deploy: Deploy) -> None:
    files: dict[str, bytes | str] = {"models/ocr/config.pbtxt": CONFIG, "models/ocr/1/model.onnx": GRAPH}
    settings = {"instances": 1, "dynamicBatching": {"preferredBatchSizes": [2]}, "parameters": {"execution_mode": "1"}}
    _, ran = deploy(files, config=settings)
    _, config = served(ran)
    assert (config.max_batch_size, config.instance_group[0].count) == (8, 1)
    assert list(config.dynamic_batching.preferred_batch_size) == [2]
    assert {name: each.string_value for name, each in config.parameters.items()} == {
        "execution_mode": "1",
        "intra_op_thread_count": "1",
    }


def test_a_file_that_says_nothing_is_completed_by_the_graph(deploy: Deploy) -> None:
    cluster, ran = deploy({"models/ocr/config.pbtxt": "", "models/ocr/1/model.onnx": GRAPH})
    assert cluster.condition("Ready")["status"] == "True", cluster.condition("Stalled")
    _, config = served(ran)
    assert (config.max_batch_size, config.HasField("dynamic_batching")) == (4, True)


def test_a_size_that_the_file_fixes_is_the_size_of_generated_inputs(deploy: Deploy) -> None:
    text = """
    max_batch_size: 2
    input { name: "tokens" data_type: TYPE_INT64 dims: 7 }
    output { name: "features" data_type: TYPE_FP32 dims: [ 7, 32 ] }
    output { name: "length" data_type: TYPE_INT64 dims: 1 reshape { shape: [ ] } }
    """
    graph = transformer().SerializeToString()
    cluster, ran = deploy({"models/ocr/config.pbtxt": text, "models/ocr/1/model.onnx": graph})
    assert cluster.condition("Ready")["status"] == "True", cluster.condition("Stalled")
    _, config = served(ran)
    assert [list(each.dims) for each in config.input] == [[7]]
    assert config.output[1].HasField("reshape")


def replaced(old: str, new: str) -> str:
    """The configuration with one thing changed."""
    assert old in CONFIG
    return CONFIG.replace(old, new)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (replaced('"images"', '"pictures"'), "declares the inputs pictures, but the model's file has images"),
        (replaced('"scores"', '"score"'), "declares the outputs score, but the model's file has scores"),
        (replaced("3, 32, 32", "3, 64, 64"), "declares input images as FP32[3, 64, 64] after the batch dimension"),
        (replaced("3, 32, 32", "-1, 32, 32"), "declares input images as FP32[-1, 32, 32]"),
        (replaced("dims: [ 8 ]", "dims: [ 9 ]"), "declares scores as FP32[9], but the model has FP32[8] there"),
        (replaced('"scores" data_type: TYPE_FP32', '"scores" data_type: TYPE_INT64'), "declares scores as INT64[8]"),
    ],
)
def test_a_declaration_that_does_not_fit_the_graph_says_so(deploy: Deploy, text: str, words: str) -> None:
    cluster, ran = deploy({"models/ocr/config.pbtxt": text, "models/ocr/1/model.onnx": GRAPH})
    reason, message = stalled(cluster)
    assert reason == "ModelConfigRefused"
    assert words in message
    assert "convert" not in ran.requests


@pytest.mark.parametrize(
    ("files", "reason", "words"),
    [
        ({"config.pbtxt": 'backend: "python"', "1/model.py": ""}, "ModelConfigRefused", "a Python backend is code"),
        ({"config.pbtxt": "", "1/model.py": ""}, "ModelConfigRefused", "a Python backend is code"),
        ({"config.pbtxt": 'platform: "ensemble"', "1/x": ""}, "ModelConfigRefused", "list the models of the ensemble"),
        ({"config.pbtxt": CONFIG, "01/model.onnx": GRAPH}, "ModelConfigRefused", "the folder has no version"),
        (
            {"config.pbtxt": "version_policy { specific { versions: 2 } }", "1/model.onnx": GRAPH},
            "ModelConfigRefused",
            "the folder has no version of 2",
        ),
        (
            {"config.pbtxt": CONFIG, "1/net.onnx": GRAPH},
            "ModelConfigRefused",
            "version 1 has no model.onnx; it has: 'net.onnx'",
        ),
        (
            {"config.pbtxt": "", "1/model.plan": FILES["engine"][0]},
            "ModelConfigRefused",
            "models/ocr/1/model.plan is a TensorRT engine, which cannot be served: it runs only on",
        ),
        (
            {"config.pbtxt": 'backend: "pytorch"', "1/model.pt": GRAPH},
            "ModelConfigRefused",
            "models/ocr/1/model.pt is an ONNX graph, but the backend is pytorch",
        ),
        ({"a/config.pbtxt": "", "b/config.pbtxt": ""}, "FormatNotFound", "one model, models/ocr/a, models/ocr/b"),
        ({"1/model.onnx": GRAPH}, "FormatNotFound", "models/ocr has no config.pbtxt: add it, or set path to"),
    ],
)
def test_what_is_refused_stalls_before_the_framework_runs(
    deploy: Deploy, files: dict[str, bytes | str], reason: str, words: str
) -> None:
    cluster, ran = deploy({f"models/ocr/{name}": content for name, content in files.items()})
    found, message = stalled(cluster)
    assert found == reason
    assert words in message
    assert set(ran.requests) == {"source"}


def test_a_file_in_place_of_a_repository_is_named(deploy: Deploy) -> None:
    cluster, _ = deploy({"models/ocr": GRAPH}, format="triton-repository")
    reason, message = stalled(cluster)
    assert reason == "FormatNotFound"
    assert "models/ocr is no model's folder of a Triton repository, which has a config.pbtxt (found is onnx)" in message


def test_a_batch_dimension_of_the_spec_must_be_that_of_the_file(deploy: Deploy) -> None:
    files: dict[str, bytes | str] = {"models/ocr/config.pbtxt": CONFIG, "models/ocr/1/model.onnx": GRAPH}
    cluster, _ = deploy(files, config={"maxBatchSize": 0, "dynamicBatching": None})
    reason, message = stalled(cluster)
    assert reason == "InvalidSpec"
    assert "config.maxBatchSize of model reader is 0, but config.pbtxt has 8" in message
