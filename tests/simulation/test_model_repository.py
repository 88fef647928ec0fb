"""A model's folder of a Triton repository: its config.pbtxt fills in what the spec leaves out."""

from dataclasses import replace
from typing import Any

import pytest

from tests.simulation import answers
from tests.simulation.cluster import Cluster
from tests.simulation.deployments import candidate
from tests.simulation.test_found_formats import SMALLEST, a_file, requests
from triton_converters.contract.conversion_requests import ConvertRequest, ReferenceRequest, SourceRequest

FOLDER = "repository/ocr.onnx"
TORCH = "repository/ocr.pt"


def served(**model: Any) -> Cluster:
    """The cluster once the object of the folder serves."""
    cluster = Cluster(SMALLEST | {"models": [a_file(model.pop("path", FOLDER), **model)]})
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True", cluster.condition("Stalled")
    return cluster


@pytest.mark.parametrize("form", [{}, {"format": "triton-repository"}], ids=["left out", "said"])
def test_what_the_file_says_is_where_everything_starts(form: dict[str, str]) -> None:
    cluster = served(**form)
    (source,) = requests(cluster, "source", SourceRequest)
    assert (source.models, source.graphs) == ((FOLDER,), (FOLDER,))
    (reference,) = requests(cluster, "reference", ReferenceRequest)
    assert (reference.model.format, reference.model.entrypoint.path) == ("onnx", f"{FOLDER}/1/model.onnx")
    assert reference.model.declared == replace(reference.model.declared, inputs=(answers.INPUT,), max_batch_size=8)
    (convert,) = requests(cluster, "convert", ConvertRequest)
    config = convert.config
    assert (config.instances, config.dynamic_batching, config.preferred_batch_sizes) == (2, True, (4,))
    assert (config.max_queue_delay_microseconds, "max_queue_size: 16" in config.overrides) == (100, True)
    (model,) = cluster.status["resolved"]["models"]
    assert (model["format"], model["maxBatchSize"], model["candidates"]) == ("onnx", 8, [candidate("onnx-fp32")])
    assert model["repository"]["inputs"] == [{"name": "INPUT__0", "dataType": "FP32", "dims": [1, 8, 8]}]


def test_a_pass_at_rest_writes_nothing() -> None:
    cluster = served()
    story, status = list(cluster.story), cluster.status
    cluster.settle()
    assert (cluster.story, cluster.status) == (story, status)


def test_the_declared_inputs_of_a_torchscript_file_can_be_generated() -> None:
    cluster = served(path=TORCH)
    assert cluster.condition("Verified")["reason"] == "GeneratedInputs"
    assert [each["name"] for each in cluster.status["candidates"]] == ["ts-script-fp32"]


def test_other_formats_are_tried_only_where_the_spec_lists_them() -> None:
    cluster = served(path=TORCH, candidates=[candidate("ts-script-fp32"), candidate("onnx-fp32")])
    assert sorted(each.format for each in requests(cluster, "convert", ConvertRequest)) == ["onnx", "ts-script"]


def test_what_the_spec_says_comes_first() -> None:
    cluster = served(config={"maxBatchSize": 4, "instances": 1})
    (convert,) = requests(cluster, "convert", ConvertRequest)
    assert (convert.model.max_batch_size, convert.config.instances, convert.config.dynamic_batching) == (4, 1, True)


def test_a_record_that_a_spec_could_not_say_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    told = answers.repository(FOLDER)
    assert told is not None
    hostile = replace(told, overrides='parameters { key: "EXECUTION_ENV_PATH" value { string_value: "/x" } }')
    monkeypatch.setattr(answers, "repository", lambda path: hostile)
    cluster = Cluster(SMALLEST | {"models": [a_file(FOLDER, format="triton-repository")]})
    cluster.settle()
    assert cluster.condition("Stalled")["reason"] == "FormatNotFound"
    assert cluster.story == ["source"]


@pytest.mark.parametrize("gpu", [None, {"product": "NVIDIA-L4"}], ids=["on a CPU", "on a GPU"])
def test_a_record_that_is_lost_is_read_again(gpu: dict[str, Any] | None) -> None:
    """Until the source has been read once more, nothing is known of the format, whatever was chosen before."""
    cluster = Cluster(
        SMALLEST | {"models": [a_file(FOLDER, format="triton-repository")]} | ({"gpu": gpu} if gpu else {})
    )
    cluster.settle()
    serving, before = cluster.serving(), cluster.started("source")
    cluster.delete("ConfigMap", "digits-results")
    for job in cluster.of_kind("Job"):
        cluster.delete("Job", job["metadata"]["name"])
    cluster.settle()
    assert cluster.started("source") == before + 1
    assert (cluster.condition("Ready")["status"], cluster.serving()) == ("True", serving)
