"""Kueue, or another controller, suspends Jobs: they wait, and that is no failure."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from tests.simulation.answers import FINAL, Script, when
from tests.simulation.cluster import Body, Cluster
from tests.simulation.deployments import DEGRADATION
from tests.simulation.edits import another_source
from tests.states.deployment import a_deployment
from triton_operator import names

QUEUE = {"pod": {"labels": {names.QUEUE_LABEL: "models"}}}
STAGES = {
    "source": "SourceResolved",
    "reference": "Converted",
    "convert": "Converted",
    "profile": "Verified",
    "metrics": "Verified",
    "measure": "PerformanceMeasured",
}
"""The condition that tells of a stage's Jobs."""


def queued(quota: int | None) -> Cluster:
    """An object whose Jobs wait in a queue of Kueue."""
    return a_deployment().candidates("ts-trace-fp32", "onnx-fp32").asking(conversion=QUEUE).where(quota=quota).cluster()


def until(cluster: Cluster, holds: Callable[[], object]) -> None:
    for _ in cluster.passes(300):
        if holds():
            return
    raise AssertionError(f"it never came about: {cluster.story[-8:]}")


def job_of(cluster: Cluster, stage: str) -> Body:
    """The stage's Job that has not ended; empty: there is none."""
    jobs = [each for each in cluster.of_kind("Job") if each["metadata"]["labels"][names.STAGE_LABEL] == stage]
    return next((each for each in jobs if not each["status"].get("shown")), {})


def runs(cluster: Cluster, stage: str) -> bool:
    """Whether the stage's Job has a pod that runs."""
    owner = job_of(cluster, stage).get("metadata", {}).get("uid")
    pods = [each for each in cluster.of_kind("Pod") if each["metadata"]["ownerReferences"][0]["uid"] == owner]
    return any(each["status"].get("containerStatuses") for each in pods)


def reason(cluster: Cluster, stage: str) -> str:
    return str(cluster.condition(STAGES[stage])["reason"])


def test_every_job_has_the_name_of_its_queue() -> None:
    cluster = queued(None)
    cluster.settle()
    jobs = cluster.of_kind("Job")
    assert jobs
    assert {each["metadata"]["labels"][names.QUEUE_LABEL] for each in jobs} == {"models"}
    for server in cluster.of_kind("Deployment"):
        assert names.QUEUE_LABEL not in server["spec"]["template"]["metadata"]["labels"], "a server waits in no queue"


def test_a_job_that_reads_counters_waits_in_no_queue() -> None:
    """Read too late they say nothing, so a full queue would let pass what fails its requests."""
    soak = {"soak": {"duration": "1m"}}
    cluster = a_deployment().one_candidate().asking(conversion=QUEUE, serving=soak).settled().cluster()
    cluster.edit(another_source())
    cluster.until_active("snapshot")
    (job,) = [each for each in cluster.of_kind("Job") if each["metadata"]["labels"][names.STAGE_LABEL] == "snapshot"]
    for metadata in (job["metadata"], job["spec"]["template"]["metadata"]):
        assert names.QUEUE_LABEL not in metadata["labels"]


def test_jobs_that_no_quota_admits_wait_without_a_deadline() -> None:
    cluster = queued(0)
    cluster.run(3)
    ready, resolved = cluster.condition("Ready"), cluster.condition("SourceResolved")
    assert (ready["status"], ready["reason"], resolved["status"]) == ("False", "Queued", "Unknown")
    (job,) = cluster.of_kind("Job")
    for words in (job["metadata"]["name"], "queue models", "kubectl describe workloads --namespace vision"):
        assert words in ready["message"]
    assert cluster.condition("Reconciling")["status"] == "True"
    assert cluster.condition("Stalled")["status"] == "False"
    cluster.now += timedelta(days=30)
    cluster.settle()
    assert cluster.intent().requeue_after is None, "the Job's own change wakes the next pass"
    assert reason(cluster, "source") == "Queued"
    assert not [each for each in cluster.events if each.type == "Warning"]
    cluster.quota = 1
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"


def test_a_quota_for_one_job_is_enough() -> None:
    cluster = queued(1)
    seen = set()
    for _ in cluster.passes(200):
        seen.add(cluster.condition("Ready")["reason"])
        running = [each for each in cluster.of_kind("Job") if not each["status"].get("shown")]
        assert sum(not each["spec"]["suspend"] for each in running) <= 1
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"
    assert "Queued" in seen
    assert cluster.started("convert") == cluster.started("profile") == 2, "nothing was made twice"


@pytest.mark.parametrize("stage", STAGES)
def test_a_job_that_is_suspended_in_the_middle_goes_on_later(stage: str) -> None:
    cluster = a_deployment().candidates("ts-trace-fp32", "onnx-fp32").asking(accuracy=DEGRADATION).cluster()
    until(cluster, lambda: runs(cluster, stage))
    job = job_of(cluster, stage)
    job["spec"]["suspend"] = True
    cluster.act()
    assert reason(cluster, stage) == "Queued", "also while its pods still run"
    cluster.run(5)
    assert not runs(cluster, stage)
    assert f"Job {job['metadata']['name']} is suspended" in cluster.condition(STAGES[stage])["message"]
    cluster.now += timedelta(days=30)
    cluster.run(20)
    assert reason(cluster, stage) == "Queued"
    assert cluster.condition("Stalled")["status"] == "False"
    made = cluster.started(stage)
    job["spec"]["suspend"] = False
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"
    assert cluster.started(stage) == (2 if stage in ("convert", "profile") else made), "the same Job goes on"


def test_a_job_that_was_suspended_too_often_is_made_anew() -> None:
    """The Job controller counts each pod that it deletes, and fails the Job with the third."""
    cluster = a_deployment().candidates("ts-trace-fp32", "onnx-fp32").cluster()
    for _ in range(3):
        until(cluster, lambda: runs(cluster, "reference"))
        job = job_of(cluster, "reference")
        job["spec"]["suspend"] = True
        cluster.step()
        job["spec"]["suspend"] = "conditions" in job["status"]
    assert [each["reason"] for each in job["status"]["conditions"]] == ["BackoffLimitExceeded"]
    cluster.act()
    assert reason(cluster, "reference") == "Queued"
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"
    assert cluster.started("reference") == 2
    assert not [each for each in cluster.events if each.type == "Warning"]


def test_a_job_that_failed_by_itself_has_failed_also_if_it_is_then_suspended() -> None:
    cluster = a_deployment().candidates("ts-trace-fp32", "onnx-fp32").faring(when("reference", FINAL)).cluster()
    until(cluster, lambda: runs(cluster, "reference"))
    job = job_of(cluster, "reference")
    while "conditions" not in job["status"]:
        cluster.step()
    job["spec"]["suspend"] = True
    cluster.act()
    assert cluster.condition("Stalled")["status"] == "True"


def test_a_job_with_a_result_is_deleted_instead_of_started_again() -> None:
    """Kueue may take the quota back after the result is there and before the Job is over."""
    cluster = (
        a_deployment()
        .candidates("ts-trace-fp32", "onnx-fp32")
        .faring(when("source", Script()))
        .where(injects="istio-proxy")
        .cluster()
    )
    until(cluster, lambda: cluster.started("reference") == 1)
    (job,) = [each for each in cluster.of_kind("Job") if each["metadata"]["labels"][names.STAGE_LABEL] == "source"]
    job["spec"]["suspend"] = True
    cluster.act()
    assert ("Job", job["metadata"]["name"]) not in cluster.objects
    assert cluster.condition("SourceResolved")["status"] == "True"
