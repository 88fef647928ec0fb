"""The accuracy gate: one Job computes the metrics of all candidates, and the operator judges them."""

from typing import Any

import pytest

from tests.simulation.answers import FINAL, GOOD, Script, Scripts, when
from tests.simulation.cluster import Cluster
from tests.simulation.deployments import CANDIDATES, DEGRADATION, a_model, a_spec
from tests.states.deployment import a_deployment
from triton_converters.contract.measurement_requests import MetricsRequest
from triton_operator import names

NAMES = [each["name"] for each in CANDIDATES]


def thresholds(**bounds: object) -> dict[str, object]:
    return {"thresholds": [{"metric": "accuracy", **bounds}]}


def of_candidates(script: Script) -> Scripts:
    """That script for the metrics of candidates; those of the framework alone are computed."""

    def scripts(stage: str, candidate: str, request: Any) -> Script:
        return script if stage == "metrics" and request.candidates else GOOD

    return scripts


def asked(cluster: Cluster) -> list[MetricsRequest]:
    """The requests of the metrics Jobs that are there."""
    jobs = [each for each in cluster.of_kind("Job") if "-metrics-" in each["metadata"]["name"]]
    requests = [each["spec"]["template"]["spec"]["containers"][0]["args"][-1] for each in jobs]
    return sorted(map(MetricsRequest.from_json, requests), key=lambda each: len(each.candidates))


def test_a_bound_that_the_framework_misses_ends_the_object_before_any_conversion() -> None:
    cluster = a_deployment().asking(accuracy=thresholds(min=0.99)).settled().cluster()
    assert cluster.story == ["source", "reference", "metrics"]
    converted, stalled = cluster.condition("Converted"), cluster.condition("Stalled")
    assert (converted["status"], converted["reason"]) == ("False", "ThresholdNotMet")
    assert converted["message"] == (
        "accuracy of the framework's own outputs is 0.98, but the threshold is min 0.99; so no candidate was converted;"
        " that is of 64 samples; correct the metrics file, the labels or the threshold, or improve the model"
    )
    assert (stalled["status"], stalled["reason"]) == ("True", "ThresholdNotMet")
    assert cluster.condition("Verified")["status"] == "Unknown"
    (request,) = asked(cluster)
    assert (request.candidates, request.required) == ((), ("accuracy",))
    cluster.edit(accuracy=thresholds(min=0.9))
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"
    assert cluster.started("metrics") == 2, "one of the framework alone, and one of all candidates"


@pytest.mark.parametrize(("bound", "converts"), [({"max": 0.97}, False), ({"max": 0.98}, True), ({"min": 0.98}, True)])
def test_a_maximum_bounds_the_framework_too_and_a_bound_itself_is_met(bound: dict[str, float], converts: bool) -> None:
    cluster = a_deployment().asking(accuracy=thresholds(**bound)).settled().cluster()
    assert bool(cluster.started("convert")) == converts


def test_while_the_frameworks_metrics_are_computed_nothing_is_converted() -> None:
    cluster = a_deployment().until_active("metrics").passed().cluster()
    converted = cluster.condition("Converted")
    assert (converted["status"], converted["reason"]) == ("Unknown", "Running")
    assert converted["message"] == "the Job that computes the metrics of the framework's outputs runs"
    assert cluster.started("convert") == 0


@pytest.mark.parametrize("accuracy", [DEGRADATION, {}])
def test_without_a_bound_that_the_framework_can_miss_there_is_no_such_job(accuracy: dict[str, object]) -> None:
    cluster = a_deployment().asking(accuracy=accuracy).until_active("metrics").cluster()
    (request,) = asked(cluster)
    assert len(request.candidates) == len(NAMES)


def test_metrics_of_the_framework_that_cannot_be_computed_are_told_before_any_conversion() -> None:
    cluster = a_deployment().faring(when("metrics", FINAL)).settled().cluster()
    assert cluster.story == ["source", "reference", "metrics"]
    converted = cluster.condition("Converted")
    assert (converted["reason"], converted["message"]) == (
        "UserCodeFailed",
        "metrics of the framework: model.py, line 3: no",
    )
    assert cluster.condition("Stalled")["status"] == "True"
    cluster.scripts = when("metrics", GOOD)
    cluster.retry()
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"


def test_what_served_goes_on_where_the_framework_of_newer_files_misses_the_bound(serving: Cluster) -> None:
    before = serving.serving()
    serving.edit(source={"uri": "pvc://models/other"}, accuracy=thresholds(min=0.99))
    serving.settle()
    assert serving.condition("Converted")["reason"] == "ThresholdNotMet"
    assert (serving.serving(), serving.condition("Available")["status"]) == (before, "True")


def test_an_object_that_an_earlier_version_converted_gets_no_such_job(serving: Cluster) -> None:
    """That version recorded no metrics of the framework alone."""
    (job,) = [each for each in serving.of_kind("Job") if '"candidates":[]' in str(each) and "metrics" in str(each)]
    key = job["metadata"]["labels"][names.KEY_LABEL]
    serving.delete("Job", job["metadata"]["name"])
    data = serving.objects["ConfigMap", "digits-results"]["data"]
    for name in [f"metrics.{key}", f"finished.metrics.{key}"]:
        del data[name]
    data["history"] = data["history"].replace(f'"metrics.{key}",', "")
    before, story = dict(data), list(serving.story)
    serving.run(5)
    assert (serving.objects["ConfigMap", "digits-results"]["data"], serving.story) == (before, story)


def test_a_conversion_that_failed_is_not_waited_for_again() -> None:
    cluster = a_deployment().faring(when("convert", FINAL)).settled().cluster()
    assert cluster.condition("Converted")["reason"] == "AllCandidatesFailed"
    assert cluster.started("metrics") == 1
    cluster.scripts = when("convert", GOOD)
    cluster.retry()
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"
    assert cluster.started("metrics") == 2, "the framework's were recorded"


def test_one_job_computes_the_metrics_of_every_candidate_that_agrees_with_the_reference() -> None:
    differs = Script(exit_code=FINAL.exit_code, reason=FINAL.reason, message="no")
    cluster = a_deployment().faring(when("profile", differs, "onnx-fp16")).settled().cluster()
    of_the_framework, request = asked(cluster)
    assert of_the_framework.candidates == ()
    profiled = [cluster.candidate(name)["profileKey"] for name in NAMES if name != "onnx-fp16"]
    assert [each.profile for each in request.candidates] == profiled
    assert request.required == ("accuracy",)
    assert {cluster.candidate(name).get("metricsKey") for name in NAMES} == {request.key, None}
    records = cluster.objects["ConfigMap", "digits-results"]["data"]
    assert {f"metrics.{each.key}" for each in (of_the_framework, request)} <= records.keys()


def test_nothing_is_verified_before_the_metrics_are_known() -> None:
    cluster = a_deployment().until_active("profile").until_active("metrics").passed().cluster()
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
    cluster = a_deployment().faring(of_candidates(FINAL)).settled().cluster()
    assert {(cluster.candidate(name)["state"], cluster.candidate(name)["reason"]) for name in NAMES} == {
        ("Failed", "UserCodeFailed")
    }
    assert cluster.condition("Verified")["reason"] == "AllCandidatesFailed"
    assert cluster.condition("Stalled")["status"] == "True"
    cluster.scripts = when("metrics", GOOD)
    cluster.retry()
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"
    assert (cluster.started("profile"), cluster.started("metrics")) == (len(NAMES), 3)


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
        "accuracy of the served outputs is 0.98 (framework 0.98), but the threshold is min 0.99; that is of 64 samples"
    )
    assert failed["metrics"] == [{"metric": "accuracy", "value": "0.98"}]
    assert (serving.serving(), serving.condition("Stalled")["status"]) == (before, "True")
    serving.edit(accuracy=thresholds(min="0.95"))
    serving.settle()
    assert (serving.story, serving.condition("Ready")["status"]) == (story, "True")


def test_a_missed_threshold_names_the_bound_of_the_samples_if_it_was_reached() -> None:
    words = "; that is of 64 samples, and spec.accuracy.maxSamples bounds these"
    cluster = a_deployment().asking(accuracy={"maxSamples": 64, **thresholds(min=0.99)}).settled().cluster()
    assert f"{words}; correct the metrics file" in cluster.condition("Converted")["message"]
    cluster = a_deployment().asking(accuracy={"maxSamples": 64, **thresholds(min=0.9)}).settled().cluster()
    cluster.edit(accuracy={"maxSamples": 64, **thresholds(min=0.99)})
    cluster.settle()
    assert cluster.candidate("onnx-fp32")["message"].endswith(words)


def test_a_threshold_on_a_metric_that_nobody_computes_says_so() -> None:
    spec = a_spec(accuracy={"thresholds": [{"metric": "f1", "min": 0.5}]})
    cluster = Cluster(spec, when("metrics", Script(metrics=("accuracy",))))
    cluster.settle()
    converted = cluster.condition("Converted")
    assert (converted["reason"], cluster.started("convert")) == ("MetricFailed", 0)
    assert "the metrics entrypoint returns accuracy" in converted["message"]


def test_the_same_of_a_threshold_without_a_bound_on_the_framework_is_said_of_each_candidate() -> None:
    spec = a_spec(accuracy={"thresholds": [{"metric": "f1", "maxDegradation": 0.5}]})
    cluster = Cluster(spec, when("metrics", Script(metrics=("accuracy",))))
    cluster.settle()
    assert cluster.candidate("onnx-fp32")["reason"] == "MetricFailed"
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
