"""Models that a Python step asks by itself: what the Jobs are told, and what becomes of them."""

from dataclasses import replace

import pytest

from tests.simulation.answers import FINAL, when
from tests.simulation.cluster import Cluster
from tests.simulation.deployments import a_cascade, a_step
from tests.simulation.test_python_steps import ALLOWED, a_cluster, asked, pods
from triton_converters.contract.conversion_requests import ConvertRequest, ReferenceRequest


def test_a_cascade_gets_ready_and_its_models_are_shown() -> None:
    cluster = a_cluster(spec=a_cascade("onnx-fp32", "ts-trace-fp32"))
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"
    assert [each["members"] for each in cluster.status["candidates"]] == [
        ["triton-python-fp32-none", "onnx-fp32-none", "onnx-fp32-none"],
        ["triton-python-fp32-none", "onnx-fp32-none", "ts-trace-fp32-none"],
    ]


def test_the_jobs_are_told_who_asks_whom() -> None:
    cluster = a_cluster(spec=a_cascade("onnx-fp32"))
    cluster.settle()
    ensemble = ReferenceRequest.from_json(asked(cluster, "reference")).model.ensemble
    assert ensemble is not None
    assert [(each.model, each.code.calls) for each in ensemble.models] == [
        ("sparse", ("small", "large")),
        ("small", ()),
        ("large", ()),
    ]
    assert [(each.model, each.inputs, each.outputs) for each in ensemble.called] == [
        ("small", {}, {}),
        ("large", {}, {}),
    ]
    request = ConvertRequest.from_json(asked(cluster, "convert"))
    assert [each.model_name for each in request.members] == ["sparse", "small", "large"]
    assert request.model.ensemble == ensemble


def test_a_call_of_a_step_is_another_reference_by_images_that_know_it() -> None:
    cluster = a_cluster(spec=a_step())
    cluster.settle()
    cluster.settings = replace(cluster.settings, converter_image="example/converter:2")
    cluster.edit(models=[cluster.spec["models"][0] | {"calls": ["dense"]}, cluster.spec["models"][1]])
    cluster.settle()
    assert cluster.started("reference") == 2
    assert cluster.status["images"]["converter"] == "example/converter:2"
    assert cluster.condition("UpToDate")["status"] == "True"


@pytest.mark.parametrize("stage", ["convert", "profile"])
def test_a_candidate_of_a_called_model_fails_alone(stage: str) -> None:
    cluster = Cluster(a_cascade("onnx-fp32", "ts-trace-fp32"), when(stage, FINAL, "onnx-fp32.onnx-fp32"))
    cluster.settings = ALLOWED
    cluster.settle()
    assert cluster.status["serving"]["candidate"].endswith("ts-trace-fp32")
    assert "server" in pods(cluster)
