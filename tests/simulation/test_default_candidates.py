"""A model whose spec lists no candidates: the operator chooses some once, and keeps to them."""

from dataclasses import replace
from typing import Any

import pytest

from tests.simulation.answers import FINAL, Script
from tests.simulation.cluster import SETTINGS, Cluster
from tests.simulation.deployments import a_model, a_spec, an_ensemble, candidate
from tests.simulation.edits import another_version, only
from tests.states.deployment import a_deployment
from triton_converters.contract.formats import SOURCE_FORMATS

NOTICE = "NewCandidatesAvailable"


@pytest.fixture
def cluster() -> Cluster:
    """A cluster where a model without candidates is served."""
    return a_deployment().asking(models=[a_model(candidates=[])]).serving().cluster()


def converted(cluster: Cluster) -> list[str]:
    """The candidates whose conversion was started, in this order."""
    return [each.split()[1] for each in cluster.story if each.startswith("convert")]


def notices(cluster: Cluster) -> list[str]:
    """The messages about candidates that the operator would choose today."""
    return [each["message"] for each in cluster.status["conditions"] if each["type"] == NOTICE]


def test_the_chosen_candidates_are_converted_and_told(cluster: Cluster) -> None:
    assert converted(cluster) == ["onnx-fp32", "ts-trace-fp32"]
    (model,) = cluster.status["resolved"]["models"]
    assert model == {"name": "digits", "candidates": [candidate("onnx-fp32"), candidate("ts-trace-fp32")]}
    assert notices(cluster) == []


def test_a_field_left_out_and_an_empty_list_are_the_same(cluster: Cluster) -> None:
    model = a_model()
    del model["candidates"]
    story = list(cluster.story)
    cluster.edit(models=[model])
    cluster.settle()
    assert cluster.story == story


def test_an_operator_that_would_choose_others_only_says_so(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    story = list(cluster.story)
    monkeypatch.setitem(SOURCE_FORMATS, "pyt", replace(SOURCE_FORMATS["pyt"], tried=("ts-script", "onnx")))
    cluster.settle()
    assert cluster.story == story
    assert notices(cluster) == [
        "this version of the operator would also try ts-script-fp32 for model digits, but keeps to onnx-fp32,"
        " ts-trace-fp32; to try others, list all candidates in spec.models[].candidates"
    ]
    assert [(each.type, each.reason) for each in cluster.events if NOTICE in each.message] == [
        ("Normal", "NewCandidates")
    ]
    assert cluster.condition("Ready")["status"] == "True"


def test_listing_the_new_ones_takes_them(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SOURCE_FORMATS, "pyt", replace(SOURCE_FORMATS["pyt"], tried=("ts-script", "onnx")))
    cluster.edit(only("onnx-fp32", "ts-script-fp32"))
    cluster.settle()
    assert converted(cluster) == ["onnx-fp32", "ts-trace-fp32", "ts-script-fp32"]
    assert "resolved" not in cluster.status
    assert notices(cluster) == []


def test_an_edit_that_converts_everything_chooses_anew(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SOURCE_FORMATS, "pyt", replace(SOURCE_FORMATS["pyt"], tried=("ts-script", "onnx")))
    cluster.edit(another_version())
    cluster.settle()
    assert [each["name"] for each in cluster.status["candidates"]] == ["ts-script-fp32", "onnx-fp32"]
    assert notices(cluster) == []


def test_going_back_finds_what_was_chosen_then(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    first = cluster.spec["source"]
    cluster.edit(another_version())
    cluster.settle()
    monkeypatch.setitem(SOURCE_FORMATS, "pyt", replace(SOURCE_FORMATS["pyt"], tried=("ts-script", "onnx")))
    before = len(cluster.story)
    cluster.edit(source=first)
    cluster.settle()
    assert [each for each in cluster.story[before:] if each.startswith(("convert", "profile"))] == []
    assert [each["name"] for each in cluster.status["candidates"]] == ["onnx-fp32", "ts-trace-fp32"]


def test_each_model_of_an_ensemble_has_one_and_embedding_tables_have_none() -> None:
    cluster = Cluster(an_ensemble())
    cluster.settle()
    assert [each["name"] for each in cluster.status["candidates"]] == ["onnx-fp32"]
    assert [each["name"] for each in cluster.status["resolved"]["models"]] == ["dense"]


@pytest.mark.parametrize("stage", ["convert", "profile"])
def test_a_model_of_an_ensemble_gets_a_second_one_where_the_first_fails(stage: str) -> None:
    def fails(of: str, name: str, _: Any) -> Script:
        return FINAL if (of, name) == (stage, "onnx-fp32") else Script()

    cluster = Cluster(an_ensemble(), fails)
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True", cluster.condition("Stalled")
    assert converted(cluster) == ["onnx-fp32", "ts-trace-fp32"]
    (model,) = cluster.status["resolved"]["models"]
    assert model["candidates"] == [candidate("ts-trace-fp32")]
    assert notices(cluster) == []


def test_where_the_second_fails_too_the_object_stalls() -> None:
    cluster = Cluster(an_ensemble(), lambda stage, name, request: FINAL if stage == "convert" else Script())
    cluster.settle()
    assert cluster.condition("Stalled")["status"] == "True"
    assert converted(cluster) == ["onnx-fp32", "ts-trace-fp32"]


def test_an_engine_for_an_absent_product_is_skipped() -> None:
    spec = a_spec(
        models=[a_model(candidates=[])],
        gpu={"product": "NVIDIA-H100"},
        conversion={"image": "example/tensorrt:1"},
    )
    cluster = Cluster(spec, settings=SETTINGS, gpu_product_exists=False)
    cluster.run(3)
    states = {each["name"]: each["state"] for each in cluster.status["candidates"]}
    assert states == {"onnx-fp32": "Pending", "onnx-trt-fp16": "Pending", "trt-fp16": "Skipped"}
