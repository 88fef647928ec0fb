"""User code that asks for a GPU in a Job without one: it is rehearsed on the CPU, and never served on a GPU."""

from typing import Any

import pytest

from tests.simulation.answers import GOOD, Script
from tests.simulation.cluster import Cluster
from tests.states.deployment import a_deployment
from triton_operator import names

GPU_LIMIT = {"pod": {"resources": {"limits": {"nvidia.com/gpu": "1"}}}}


def falls_back(stage: str, name: str, request: Any) -> Script:
    """User code calls `.cuda()` wherever it runs: it falls back in every Job, as none of them shows a GPU."""
    return Script(rehearsed=True) if stage in ("reference", "convert") else GOOD


def falls_back_in_conversions(stage: str, name: str, request: Any) -> Script:
    return Script(rehearsed=True) if stage == "convert" else GOOD


def reasons(cluster: Cluster) -> dict[str, str]:
    return {each["type"]: each["reason"] for each in cluster.status["conditions"]}


def run_environment(cluster: Cluster, stage: str) -> dict[str, str]:
    """The variables of the container that runs the user's code, of the last Job of a stage."""
    jobs = [each for each in cluster.of_kind("Job") if each["metadata"]["labels"][names.STAGE_LABEL] == stage]
    (run,) = [each for each in jobs[-1]["spec"]["template"]["spec"]["initContainers"] if each["name"] == "run"]
    return {each["name"]: each["value"] for each in run["env"]}


def test_without_a_gpu_the_object_gets_ready_and_says_what_was_rehearsed() -> None:
    cluster = a_deployment().one_candidate().faring(falls_back).serving().cluster()
    rehearsed = cluster.condition("Rehearsed")
    assert (rehearsed["status"], rehearsed["reason"]) == ("True", "Rehearsed")
    assert "(the reference, onnx-fp32)" in rehearsed["message"]
    assert "set spec.gpu" in rehearsed["message"]
    assert [each.type for each in cluster.events if each.reason == "Rehearsed"] == ["Normal"]


def test_code_that_asks_for_no_gpu_is_not_rehearsed() -> None:
    cluster = a_deployment().one_candidate().settled().cluster()
    assert "Rehearsed" not in reasons(cluster)


def test_a_gpu_that_comes_later_starts_everything_anew() -> None:
    cluster = a_deployment().one_candidate().faring(falls_back).settled().cluster()
    assert run_environment(cluster, "reference")["NVIDIA_VISIBLE_DEVICES"] == "void"
    rehearsed = cluster.status["serving"]["revision"]
    cluster.scripts = lambda stage, name, request: GOOD
    cluster.edit(gpu={"count": 1})
    cluster.settle()
    assert "NVIDIA_VISIBLE_DEVICES" not in run_environment(cluster, "reference")
    assert (cluster.started("reference"), cluster.started("convert")) == (2, 2)
    assert cluster.condition("Ready")["status"] == "True"
    assert cluster.status["serving"]["revision"] != rehearsed
    assert "Rehearsed" not in reasons(cluster)


@pytest.mark.parametrize(
    ("fields", "advice"),
    [({"serving": GPU_LIMIT}, "set spec.gpu"), ({"gpu": {"count": 1}}, "PyTorch found no GPU in the Job")],
    ids=["a limit of the servers alone", "a Job that does not see its GPU"],
)
def test_a_rehearsed_reference_is_not_served_on_a_gpu(fields: dict[str, Any], advice: str) -> None:
    cluster = a_deployment().one_candidate().asking(**fields).faring(falls_back).settled().cluster()
    assert cluster.condition("Stalled")["status"] == "True"
    converted = cluster.condition("Converted")
    assert (converted["status"], converted["reason"]) == ("False", "GpuUnavailable")
    assert advice in converted["message"]
    assert cluster.started("convert") == 0
    assert cluster.serving() is None


def test_a_rehearsed_candidate_is_not_served_on_a_gpu() -> None:
    cluster = (
        a_deployment().one_candidate().asking(serving=GPU_LIMIT).faring(falls_back_in_conversions).settled().cluster()
    )
    failed = cluster.candidate("onnx-fp32")
    assert (failed["state"], failed["reason"]) == ("Failed", "GpuUnavailable")
    assert cluster.started("profile") == 0


def test_servers_that_get_a_gpu_later_do_not_get_what_was_rehearsed() -> None:
    cluster = a_deployment().one_candidate().faring(falls_back).settled().cluster()
    before = cluster.serving()
    cluster.edit(serving=GPU_LIMIT)
    cluster.settle()
    assert cluster.condition("Converted")["reason"] == "GpuUnavailable"
    assert cluster.serving() == before
