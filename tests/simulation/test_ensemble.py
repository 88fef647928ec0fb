"""Several models as one: the candidates' product, what is shared, and who fails alone."""

from copy import deepcopy
from typing import Any

import pytest

from tests.simulation.answers import FINAL, Script, all_good, when
from tests.simulation.cluster import Cluster
from tests.simulation.deployments import a_spec, an_ensemble
from tests.states.deployment import a_deployment
from triton_converters.contract.conversion_requests import ConvertRequest

FIGURES = ("throughput", "p99Latency")


def requests(cluster: Cluster, stage: str) -> list[Any]:
    """What the stage's Jobs were asked, in the order of their creation."""
    containers = [each["spec"]["template"]["spec"]["containers"][0] for each in cluster.of_kind("Job")]
    return [ConvertRequest.from_json(each["args"][-1]) for each in containers if each["name"] == stage]


def test_an_ensemble_gets_ready_and_its_members_are_shown() -> None:
    cluster = Cluster(an_ensemble("onnx-fp32", "ts-trace-fp32"))
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"
    assert cluster.candidate("onnx-fp32")["members"] == ["hps-fp32-none", "onnx-fp32-none"]
    assert cluster.status["serving"]["format"] == "hps+onnx"
    before = deepcopy(cluster.objects)
    assert cluster.act() == 0
    assert cluster.objects == before


def test_the_status_tells_where_the_time_of_a_request_goes() -> None:
    cluster = Cluster(an_ensemble("onnx-fp32"), when("measure", Script(steps=("dense", "sparse", "of-nobody"))))
    cluster.settle()
    performance = cluster.status["performance"]
    figures = tuple(cluster.status["serving"][name] for name in FIGURES)
    rows = [each for each in performance["online"] if tuple(each[name] for name in FIGURES) == figures]
    # Beyond saturation the figures are the same, and the lowest load counts.
    load = rows[0]["concurrency"]
    assert 1 < load < 10
    assert [(each["model"], each["queueTime"], each["computeTime"]) for each in performance["steps"]] == [
        ("sparse", f"{100 * load}us", "1ms"),
        ("dense", f"{100 * load}us", "1ms"),
    ]
    average = float(rows[0]["averageLatency"].removesuffix("ms"))
    shares = [float(each["sharePercent"]) for each in performance["steps"]]
    assert shares == pytest.approx([100 * (1 + load / 10) / average] * 2, rel=0.01)


def test_an_object_of_one_model_has_no_times_by_step() -> None:
    cluster = Cluster(a_spec(), when("measure", Script(steps=("digits",))))
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"
    assert "steps" not in cluster.status["performance"]


def test_a_shared_model_is_converted_by_one_job_at_a_time() -> None:
    cluster = Cluster(an_ensemble("onnx-fp32", "ts-trace-fp32", "onnx-fp16"))
    most = 0
    while cluster.started("profile") == 0:
        most = max(most, len(cluster.active("convert")))
        if cluster.started("convert") == 1:
            assert cluster.active("convert") in (["onnx-fp32"], [])
        cluster.run(1)
    assert most == 2, "once the tables are there, candidates are converted in parallel"
    shared = {request.members[0].conversion_key for request in requests(cluster, "convert")}
    assert len(shared) == 1
    assert len({request.members[1].conversion_key for request in requests(cluster, "convert")}) == 3


def test_candidates_are_the_product_of_the_members() -> None:
    cluster = Cluster(an_ensemble("onnx-fp32", "onnx-fp16", sparse=("ts-trace-fp32", "ts-script-fp32")))
    cluster.act()
    assert [each["name"] for each in cluster.status["candidates"]] == [
        "ts-trace-fp32.onnx-fp32",
        "ts-trace-fp32.onnx-fp16",
        "ts-script-fp32.onnx-fp32",
        "ts-script-fp32.onnx-fp16",
    ]


@pytest.mark.parametrize("stage", ["convert", "profile"])
def test_a_member_that_fails_fails_its_candidates_alone(stage: str) -> None:
    cluster = Cluster(an_ensemble("onnx-fp32", "ts-trace-fp32"), when(stage, FINAL, "onnx-fp32"))
    cluster.settle()
    assert cluster.candidate("onnx-fp32")["state"] == "Failed"
    assert cluster.condition("Ready")["status"] == "True"
    assert cluster.status["serving"]["candidate"] == "ts-trace-fp32"


def test_another_queue_delay_converts_nothing() -> None:
    cluster = Cluster(an_ensemble("onnx-fp32"))
    cluster.settle()
    old = requests(cluster, "convert")[0]
    models = deepcopy(cluster.spec["models"])
    models[1]["config"]["instances"] = 2
    cluster.edit(models=models)
    cluster.settle()
    new = requests(cluster, "convert")[-1]
    assert new.key != old.key
    assert [each.conversion_key for each in new.members] == [each.conversion_key for each in old.members]
    assert cluster.started("reference") == 1


def test_servers_are_told_where_the_tables_are() -> None:
    cluster = Cluster(an_ensemble("onnx-fp32"), all_good)
    cluster.settle()
    key = cluster.candidate("onnx-fp32")["revision"]
    told = f"--backend-config=hps,ps=/repository/.triton-operator/revisions/{key}/ps.json"
    server = cluster.of_kind("Deployment")[0]["spec"]["template"]["spec"]["containers"][0]
    assert told in server["args"]
    assert "/v2/models/dlrm/ready" in server["startupProbe"]["exec"]["command"]
    plain = a_deployment().settled().cluster()
    assert "hps" not in str(plain.of_kind("Deployment")[0])


def test_sizes_that_are_measured_are_asked_of_the_dataloader() -> None:
    cluster = Cluster(an_ensemble("onnx-fp32"))
    cluster.run(6)
    job = next(each for each in cluster.of_kind("Job") if "-reference-" in each["metadata"]["name"])
    assert '"batch_sizes":[1,256,1024]' in job["spec"]["template"]["spec"]["containers"][0]["args"][-1]
