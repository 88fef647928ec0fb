"""The accuracy gate: one Job computes the metrics of all candidates, and the operator judges them."""

import pytest

from tests.simulation.answers import FINAL, GOOD, Script, when
from tests.simulation.cluster import Cluster
from tests.simulation.deployments import CANDIDATES, a_model, a_spec
from tests.states.deployment import a_deployment
from triton_converters.contract.measurement_requests import MetricsRequest

NAMES = [each["name"] for each in CANDIDATES]


def thresholds(**bounds: str) -> dict[str, object]:
    return {"thresholds": [{"metric": "accuracy", **bounds}]}


def test_one_job_computes_the_metrics_of_every_candidate_that_agrees_with_the_reference() -> None:
    differs = Script(exit_code=FINAL.exit_code, reason=FINAL.reason, message="no")
    cluster = a_deployment().faring(when("profile", differs, "onnx-fp16")).settled().cluster()
    assert cluster.started("metrics") == 1
    (job,) = (each for each in cluster.of_kind("Job") if "-metrics-" in each["metadata"]["name"])
    request = MetricsRequest.from_json(job["spec"]["template"]["spec"]["containers"][0]["args"][-1])
    profiled = [cluster.candidate(name)["profileKey"] for name in NAMES if name != "onnx-fp16"]
    assert [each.profile for each in request.candidates] == profiled
    assert request.required == ("accuracy",)
    assert {cluster.candidate(name).get("metricsKey") for name in NAMES} == {request.key, None}
    assert f"metrics.{request.key}" in cluster.objects["ConfigMap", "digits-results"]["data"]


def test_nothing_is_verified_before_the_metrics_are_known() -> None:
    cluster = a_deployment().cluster()
    cluster.until_active("metrics")
    cluster.act()
    verified = cluster.condition("Verified")
    assert (verified["status"], verified["reason"]) == ("Unknown", "Running")
    assert verified["message"] == f"the Job that computes the metrics of {', '.join(NAMES)} runs"
    assert {cluster.candidate(name)["state"] for name in NAMES} == {"Profiled"}
    assert "server" not in cluster.story
    cluster.settle()
    assert cluster.condition("Verified")["status"] == "True"


def test_without_metrics_there_is_no_such_job() -> None:
    spec = a_spec(accuracy={})
    del spec["metrics"]
    cluster = Cluster(spec)
    cluster.settle()
    assert (cluster.condition("Ready")["status"], cluster.started("metrics")) == ("True", 0)
    assert cluster.condition("Verified")["reason"] == "NumericalOnly"


def test_metrics_that_cannot_be_computed_fail_every_candidate_that_waits_for_them() -> None:
    cluster = a_deployment().faring(when("metrics", FINAL)).settled().cluster()
    assert {(cluster.candidate(name)["state"], cluster.candidate(name)["reason"]) for name in NAMES} == {
        ("Failed", "UserCodeFailed")
    }
    assert cluster.condition("Verified")["reason"] == "AllCandidatesFailed"
    assert cluster.condition("Stalled")["status"] == "True"
    cluster.scripts = when("metrics", GOOD)
    cluster.retry()
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"
    assert (cluster.started("profile"), cluster.started("metrics")) == (len(NAMES), 2)


def test_an_edit_of_a_threshold_starts_no_job(serving: Cluster) -> None:
    before, story = serving.serving(), list(serving.story)
    serving.edit(accuracy=thresholds(min="0.5", maxDegradation="0.1"))
    serving.settle()
    assert (serving.serving(), serving.story) == (before, story)
    assert serving.status["accuracy"][0]["threshold"] == "min 0.5, maxDegradation 0.1"


def test_a_threshold_that_is_raised_judges_what_was_measured_before(serving: Cluster) -> None:
    before, story = serving.serving(), list(serving.story)
    serving.edit(accuracy=thresholds(min="0.99"))
    serving.settle()
    assert serving.story == story
    failed = serving.candidate("onnx-fp32")
    assert (failed["state"], failed["reason"]) == ("Failed", "ThresholdNotMet")
    assert failed["message"] == (
        "accuracy of the served outputs is 0.98 (framework 0.98), but the threshold is min 0.99; that is of 64 samples,"
        " and spec.accuracy.maxSamples bounds these"
    )
    assert failed["metrics"] == [{"metric": "accuracy", "value": "0.98"}]
    assert (serving.serving(), serving.condition("Stalled")["status"]) == (before, "True")
    serving.edit(accuracy=thresholds(min="0.95"))
    serving.settle()
    assert (serving.story, serving.condition("Ready")["status"]) == (story, "True")


def test_a_threshold_on_a_metric_that_nobody_computes_says_so() -> None:
    spec = a_spec(accuracy={"thresholds": [{"metric": "f1", "min": 0.5}]})
    cluster = Cluster(spec, when("metrics", Script(metrics=("accuracy",))))
    cluster.settle()
    assert cluster.candidate("onnx-fp32")["reason"] == "MetricMissing"
    assert "the metrics entrypoint returns accuracy" in cluster.condition("Verified")["message"]


@pytest.mark.parametrize("container", ["prepare", "run"])
def test_user_code_that_is_killed_for_memory_is_named_with_its_limit(container: str) -> None:
    limits = {"pod": {"resources": {"limits": {"memory": "64Mi"}}}}
    killed = Script(exit_code=137, killed="OOMKilled", container=container)
    cluster = a_deployment().asking(conversion=limits).faring(when("reference", killed)).settled().cluster()
    ready = cluster.condition("Ready")
    assert ready["reason"] == "OutOfMemory"
    assert f"container {container} was killed at its memory limit of 64Mi" in ready["message"]


def test_two_candidates_that_differ_in_their_names_alone_have_one_profile_and_one_mount() -> None:
    twins = [{"name": name, "format": "onnx", "precision": "fp32"} for name in ("one", "two")]
    cluster = a_deployment().asking(models=[a_model(candidates=twins)]).serving().cluster()
    assert {each["name"]: each["state"] for each in cluster.status["candidates"]} == {
        "one": "Selected",
        "two": "Passed",
    }
    for job in cluster.of_kind("Job"):
        pod = job["spec"]["template"]["spec"]
        for container in (*pod.get("initContainers", []), *pod["containers"]):
            paths = [each["mountPath"] for each in container.get("volumeMounts", [])]
            assert len(paths) == len(set(paths)), (job["metadata"]["name"], container["name"])
