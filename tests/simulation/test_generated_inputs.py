"""A model without a dataloader: it is verified with generated inputs, and the condition says what that proves."""

from dataclasses import replace

from tests.simulation.answers import GENERATED
from tests.simulation.cluster import SETTINGS, Cluster, framework
from tests.simulation.deployments import candidate
from tests.states.deployment import a_deployment

MODEL = {"name": "ocr", "format": "onnx", "path": "ocr.onnx", "candidates": [candidate("onnx-fp32")]}
SMALLEST = {"source": {"uri": "pvc://models/digits"}, "models": [MODEL]}


def test_it_gets_ready_and_says_that_accuracy_was_not_judged() -> None:
    cluster = Cluster(SMALLEST)
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"
    verified = cluster.condition("Verified")
    assert (verified["status"], verified["reason"]) == ("True", "GeneratedInputs")
    assert verified["message"] == (
        f"1 of 1 candidates passed every gate: onnx-fp32; compared with the file itself; {GENERATED}; accuracy"
        " was not judged: for that, set spec.dataloader, spec.metrics and accuracy.thresholds"
    )


def test_of_trees_the_library_is_the_reference_in_the_image_that_has_it() -> None:
    trees = {"name": "churn", "format": "xgboost", "path": "model.json"}
    own = "example/converter-trees:1"
    for settings, image in ((SETTINGS, SETTINGS.converter_image), (replace(SETTINGS, converter_trees_image=own), own)):
        cluster = Cluster(SMALLEST | {"models": [trees], "gpu": {"count": 1}}, settings=settings)
        cluster.settle()
        message = cluster.condition("Verified")["message"]
        assert f"onnx-fp32; compared with the answers of XGBoost; {GENERATED}" in message
        (job,) = (each for each in cluster.of_kind("Job") if each["metadata"]["name"].startswith("digits-reference"))
        assert framework(job["spec"]["template"]["spec"])["image"] == image


def test_a_dataloader_that_comes_later_is_another_reference() -> None:
    cluster = Cluster(SMALLEST)
    cluster.settle()
    cluster.edit(dataloader={"entrypoint": "dataloader.py"})
    cluster.settle()
    assert cluster.started("reference") == 2
    assert cluster.condition("Verified")["reason"] == "NumericalOnly"


def test_with_a_dataloader_nothing_is_said_of_generated_inputs() -> None:
    cluster = a_deployment().settled().cluster()
    message = cluster.condition("Verified")["message"]
    assert "generated" not in message
    assert "compared with the file itself" not in message, "its model comes from code"
