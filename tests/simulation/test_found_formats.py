"""A model whose spec leaves its format out: the source Job finds it, and everything after waits for that."""

from typing import Any

import pytest

from tests.simulation.answers import Script, when
from tests.simulation.cluster import Cluster
from tests.simulation.deployments import candidate
from tests.states.deployment import a_deployment
from triton_converters.contract.conversion_requests import ConvertRequest, ReferenceRequest, SourceRequest
from triton_converters.contract.envelope import EXIT_FINAL
from triton_converters.contract.reasons import Reason

SMALLEST = {"source": {"uri": "pvc://models/digits"}, "models": [{"name": "ocr", "path": "ocr.onnx"}]}


def a_file(path: str, **fields: Any) -> dict[str, Any]:
    return {"name": "ocr", "path": path, **fields}


def requests(cluster: Cluster, stage: str, kind: Any) -> list[Any]:
    """The requests of a stage's Jobs that exist."""
    return [
        kind.from_json(each["spec"]["template"]["spec"]["containers"][-1]["args"][-1])
        for each in cluster.of_kind("Job")
        if each["metadata"]["labels"]["triton-operator.dev/stage"] == stage
    ]


def test_the_smallest_object_is_served() -> None:
    cluster = Cluster(SMALLEST)
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"
    (model,) = cluster.status["resolved"]["models"]
    assert model == {"name": "ocr", "format": "onnx", "maxBatchSize": 4, "candidates": [candidate("onnx-fp32")]}
    words = "; ocr.onnx is of format onnx; ocr.onnx has a batch dimension, so maxBatchSize is 4"
    assert cluster.condition("SourceResolved")["message"].endswith(words)
    assert [each.models for each in requests(cluster, "source", SourceRequest)] == [("ocr.onnx",)]
    assert [each.model.format for each in requests(cluster, "reference", ReferenceRequest)] == ["onnx"]
    assert [each.model.format for each in requests(cluster, "convert", ConvertRequest)] == ["onnx"]


def test_before_the_source_is_read_no_candidate_is_known() -> None:
    cluster = Cluster(SMALLEST)
    cluster.act()
    cluster.act()
    assert "candidates" not in cluster.status
    assert "resolved" not in cluster.status
    assert cluster.story == ["source"]


def test_a_found_format_starts_what_the_same_format_in_the_spec_starts() -> None:
    cluster = Cluster(SMALLEST)
    cluster.settle()
    before = len(cluster.story)
    cluster.edit(models=[a_file("ocr.onnx", format="onnx")])
    cluster.settle()
    assert cluster.story[before:] == ["source"], "which is asked for no format now"


def test_tensorflow_is_run_by_its_own_image() -> None:
    cluster = Cluster(SMALLEST | {"models": [a_file("export")]})
    cluster.settle()
    images = {
        container["image"]
        for each in cluster.of_kind("Job")
        if each["metadata"]["labels"]["triton-operator.dev/stage"] == "reference"
        for container in each["spec"]["template"]["spec"]["initContainers"]
    }
    assert "example/converter-tensorflow:1" in images


def test_a_failure_of_the_source_says_what_is_missing_and_ends_with_an_edit() -> None:
    script = Script(exit_code=EXIT_FINAL, reason=Reason.FORMAT_NOT_FOUND, message="best.pt holds weights and no model")
    cluster = Cluster(SMALLEST | {"models": [a_file("best.pt")]}, when("source", script))
    cluster.settle()
    stalled = cluster.condition("Stalled")
    assert (stalled["status"], stalled["reason"]) == ("True", "FormatNotFound")
    assert "best.pt holds weights and no model" in stalled["message"]
    cluster.scripts = lambda stage, candidate, request: Script()
    model = {"name": "ocr", "format": "pyt", "entrypoint": "model.py", "arguments": {"checkpoint": "best.pt"}}
    cluster.edit(models=[model], dataloader={"entrypoint": "dataloader.py"})
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"


@pytest.mark.parametrize(
    ("spec", "reason", "words"),
    [
        (
            SMALLEST | {"models": [a_file("net.pt")]},
            "InvalidSpec",
            "inputs can be generated only for a single model of format onnx, xgboost, lightgbm, sklearn,"
            " tf-savedmodel or triton-repository,"
            " which declares them: set spec.dataloader; found is ts-script",
        ),
        (
            SMALLEST | {"models": [a_file("ocr.onnx", candidates=[candidate("ts-trace-fp32")])]},
            "AllCandidatesFailed",
            "no candidate can be tried: ts-trace-fp32: model ocr: format onnx cannot be converted to ts-trace; it can",
        ),
        (
            SMALLEST | {"models": [a_file("ocr.onnx", config={"parameters": {"INFERENCE_MODE": "true"}})]},
            "InvalidSpec",
            "config.parameters of model ocr, whose format is onnx, must not have INFERENCE_MODE",
        ),
    ],
)
def test_what_the_format_rules_out_stalls_before_the_framework_runs(
    spec: dict[str, Any], reason: str, words: str
) -> None:
    cluster = Cluster(spec)
    cluster.settle()
    stalled = cluster.condition("Stalled")
    assert (stalled["status"], stalled["reason"]) == ("True", reason)
    assert words in stalled["message"]
    assert cluster.story == ["source"]


def test_a_candidate_that_the_format_rules_out_stops_no_other_one() -> None:
    impossible = {**candidate("ts-trace-fp32"), "name": "traced"}
    cluster = Cluster(SMALLEST | {"models": [a_file("ocr.onnx", candidates=[impossible, candidate("onnx-fp32")])]})
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"
    assert cluster.status["serving"]["candidate"] == "onnx-fp32"
    skipped = cluster.candidate("traced")
    assert (skipped["state"], skipped["reason"]) == ("Skipped", "ConversionUnsupported")
    assert skipped["message"] == (
        "model ocr: format onnx cannot be converted to ts-trace; it can be converted to onnx, trt; correct the"
        " candidate, or remove it"
    )
    assert "convert traced" not in cluster.story


def test_nothing_is_skipped_before_the_format_is_found() -> None:
    folder = {"name": "ocr", "path": "repository/ocr.onnx", "format": "triton-repository"}
    cluster = Cluster(
        SMALLEST | {"models": [folder | {"candidates": [candidate("ts-script-fp32"), candidate("onnx-fp32")]}]}
    )
    cluster.act()
    assert [each["state"] for each in cluster.status["candidates"]] == ["Pending", "Pending"]
    cluster.settle()
    assert cluster.candidate("ts-script-fp32")["state"] == "Skipped"
    assert cluster.status["serving"]["candidate"] == "onnx-fp32"


def test_a_torchscript_file_with_a_dataloader_is_served() -> None:
    cluster = a_deployment().asking(models=[a_file("net.pt")]).serving().cluster()
    assert [each["name"] for each in cluster.status["candidates"]] == ["ts-script-fp32", "onnx-fp32"]


def test_a_lost_record_keeps_what_was_chosen_while_the_source_is_read_again() -> None:
    cluster = Cluster(SMALLEST)
    cluster.settle()
    chosen, before = cluster.status["resolved"], len(cluster.story)
    del cluster.objects["ConfigMap", "digits-results"]
    for name in [name for kind, name in cluster.objects if kind == "Job"]:
        cluster.delete("Job", name)
    cluster.act()
    assert cluster.status["resolved"] == chosen
    cluster.settle()
    assert cluster.status["resolved"] == chosen
    assert cluster.story[before] == "source"


def test_a_new_source_may_be_of_another_format() -> None:
    cluster = Cluster(SMALLEST | {"dataloader": {"entrypoint": "dataloader.py"}})
    cluster.settle()
    cluster.edit(models=[a_file("net.pt")])
    cluster.settle()
    (model,) = cluster.status["resolved"]["models"]
    assert model["format"] == "ts-script"
    assert [each["format"] for each in model["candidates"]] == ["ts-script", "onnx"]
