"""What the Job controller and the Deployment controller of one machine do next."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from triton_local.controllers import Over, Start, deployment_status, job_next, job_status

Body = dict[str, Any]
BORN = "2026-11-29T10:00:00Z"
ENDED = "2026-11-29T10:05:00Z"
RULES = [
    {"action": "FailJob", "onExitCodes": {"containerName": "prepare", "operator": "In", "values": [42]}},
    {"action": "FailJob", "onExitCodes": {"containerName": "convert", "operator": "In", "values": [42]}},
    {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
]
JOB: Body = {
    "metadata": {"name": "digits-convert-0", "creationTimestamp": BORN},
    "spec": {"backoffLimit": 2, "podFailurePolicy": {"rules": RULES}},
    "status": {},
}


def ended(phase: str, codes: Body | None = None, disrupted: bool = False) -> Body:
    """A pod whose containers have these exit codes."""
    statuses = [
        {"name": name, "state": {"terminated": {"exitCode": code, "finishedAt": ENDED}}}
        for name, code in (codes or {}).items()
    ]
    conditions = [{"type": "DisruptionTarget", "status": "True"}] if disrupted else []
    status = {"phase": phase, "initContainerStatuses": statuses, "conditions": conditions}
    return {"metadata": {"name": "a-pod", "creationTimestamp": BORN}, "status": status}


RUNNING = ended("Running", {"prepare": 0})
SUCCEEDED = ended("Succeeded", {"prepare": 0, "convert": 0})
CRASHED = ended("Failed", {"prepare": 0, "convert": 1})
FINAL = ended("Failed", {"prepare": 0, "convert": 42})
UNREADY = ended("Failed", {"prepare": 42})
OF_ANOTHER = ended("Failed", {"prepare": 0, "run": 42})
DISRUPTED = ended("Failed", {"convert": 143}, disrupted=True)


@pytest.mark.parametrize(
    ("pods", "kind", "reason"),
    [
        ([SUCCEEDED], "Complete", "CompletionsReached"),
        ([CRASHED, SUCCEEDED], "Complete", "CompletionsReached"),
        ([FINAL], "Failed", "PodFailurePolicy"),
        ([UNREADY], "Failed", "PodFailurePolicy"),
        ([CRASHED] * 3, "Failed", "BackoffLimitExceeded"),
        ([OF_ANOTHER] * 3, "Failed", "BackoffLimitExceeded"),
        ([DISRUPTED] * 5 + [CRASHED] * 3, "Failed", "BackoffLimitExceeded"),
    ],
)
def test_a_job_ends(pods: list[Body], kind: str, reason: str) -> None:
    following = job_next(JOB, pods)
    assert isinstance(following, Over)
    assert (following.kind, following.reason) == (kind, reason)
    (condition,) = job_status(JOB, following, ENDED)["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == (kind, "True", reason)


@pytest.mark.parametrize(
    ("pods", "seconds"),
    [
        ([], None),
        ([DISRUPTED], None),
        ([CRASHED], 10),
        ([CRASHED, CRASHED], 20),
        ([DISRUPTED, CRASHED, DISRUPTED], 10),
        ([OF_ANOTHER], 10),
    ],
)
def test_another_pod_comes_after_a_pause_that_doubles(pods: list[Body], seconds: int | None) -> None:
    following = job_next(JOB, pods)
    assert isinstance(following, Start)
    due = datetime.fromisoformat(ENDED) + timedelta(seconds=seconds or 0)
    assert following.due == due if seconds else following.due < datetime.now(UTC)


@pytest.mark.parametrize("pods", [[RUNNING], [CRASHED, RUNNING]])
def test_a_job_waits_for_its_pod(pods: list[Body]) -> None:
    assert job_next(JOB, pods) is None


def a_server(ready: bool) -> Body:
    return {"metadata": {"name": "a"}, "status": {"phase": "Running", "containerStatuses": [{"ready": ready}]}}


def reasons(deployment: Body, pods: list[Body], seconds: int = 0) -> list[str]:
    """What the Deployment says of its progress so many seconds after it was made; it keeps that status."""
    now = datetime.fromisoformat(BORN) + timedelta(seconds=seconds)
    deployment["status"] = deployment_status(deployment, pods, now)
    return [each["reason"] for each in deployment["status"]["conditions"]]


def test_a_deployment_says_for_good_that_its_pods_were_ready() -> None:
    deployment: Body = {"metadata": {"generation": 3}, "spec": {"replicas": 2}, "status": {}}
    assert reasons(deployment, [a_server(True), a_server(False)]) == ["ReplicaSetUpdated"]
    assert deployment["status"]["readyReplicas"] == 1
    assert reasons(deployment, [a_server(True), a_server(True)], 10) == ["NewReplicaSetAvailable"]
    before = deployment["status"]
    assert reasons(deployment, [a_server(True), a_server(True)], 20) == ["NewReplicaSetAvailable"]
    assert deployment["status"] == before
    assert reasons(deployment, [a_server(True)], 3000) == ["NewReplicaSetAvailable"]
    assert deployment["status"]["readyReplicas"] == 1


def test_a_deployment_that_does_not_start_says_so_at_its_deadline() -> None:
    spec = {"replicas": 1, "progressDeadlineSeconds": 60}
    deployment: Body = {"metadata": {"generation": 1}, "spec": spec, "status": {}}
    assert reasons(deployment, [a_server(False)]) == ["ReplicaSetUpdated"]
    assert reasons(deployment, [a_server(False)], 60) == ["ReplicaSetUpdated"]
    assert reasons(deployment, [a_server(False)], 61) == ["ProgressDeadlineExceeded"]
    assert reasons(deployment, [a_server(False)], 99) == ["ProgressDeadlineExceeded"]
    deployment["metadata"]["generation"] = 2
    assert reasons(deployment, [a_server(False)], 100) == ["ReplicaSetUpdated"]
    assert reasons(deployment, [a_server(True)], 101) == ["NewReplicaSetAvailable"]
