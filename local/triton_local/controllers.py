"""What the Job controller and the Deployment controller do next, by the pods that there are. Pure.

As in Kubernetes 1.34: https://kubernetes.io/docs/concepts/workloads/controllers/job/.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from triton_local.objects import as_text
from triton_operator.names import Body

FIRST_BACKOFF = timedelta(seconds=10)
LONGEST_BACKOFF = timedelta(minutes=10)
"""The pause before the next pod of a Job, which doubles with each one that failed: the Job controller's
DefaultJobPodFailureBackOff and MaxJobPodFailureBackOff."""

PROGRESS_SECONDS = 600
"""How long a Deployment may take until its pods are ready, where it says nothing: progressDeadlineSeconds."""


@dataclass(frozen=True)
class Start:
    """A pod is to be made, at that time."""

    due: datetime


@dataclass(frozen=True)
class Over:
    """The Job has ended."""

    kind: str
    """Complete or Failed."""
    reason: str
    message: str


def job_next(job: Body, pods: Sequence[Body]) -> Start | Over | None:
    """Return what becomes of a Job that has not ended; None: it waits for its pod.

    ``pods``: all that it has made, the oldest first.
    """
    if any(pod["status"].get("phase") == "Succeeded" for pod in pods):
        return Over("Complete", "CompletionsReached", "Reached expected number of succeeded pods")
    failed = [pod for pod in pods if pod["status"].get("phase") == "Failed"]
    for pod in failed:
        if words := _fails_the_job(job, pod):
            return Over("Failed", "PodFailurePolicy", words)
    counted = [pod for pod in failed if not _is_ignored(job, pod)]
    if len(counted) > job["spec"]["backoffLimit"]:
        return Over("Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit")
    if len(failed) < len(pods):
        return None
    if not counted:
        return Start(datetime.min.replace(tzinfo=_time(job["metadata"]["creationTimestamp"]).tzinfo))
    pause = min(LONGEST_BACKOFF, FIRST_BACKOFF * 2 ** (len(counted) - 1))
    return Start(max(map(_ended_at, counted)) + pause)


def job_status(job: Body, over: Over, at: str) -> Body:
    """Return the status of a Job that has ended."""
    condition = {"type": over.kind, "status": "True", "reason": over.reason, "message": over.message}
    return {**job["status"], "conditions": [{**condition, "lastTransitionTime": at}]}


def deployment_status(deployment: Body, pods: Sequence[Body], now: datetime) -> Body:
    """Return the status of a Deployment with these pods. Once all were ready, it keeps saying so."""
    wanted = deployment["spec"]["replicas"]
    ready = sum(is_ready(pod) for pod in pods)
    generation = deployment["metadata"]["generation"]
    known = next(iter(deployment["status"].get("conditions", [])), None)
    same = known is not None and deployment["status"]["observedGeneration"] == generation
    if ready >= wanted:
        done = _progress("True", "NewReplicaSetAvailable", now)
        known = known if known is not None and known["reason"] == done["reason"] else done
    elif known is None or (not same and known["reason"] == "ProgressDeadlineExceeded"):
        known = _progress("True", "ReplicaSetUpdated", now)
    elif known["reason"] == "ReplicaSetUpdated" and now - _time(known["lastUpdateTime"]) > timedelta(
        seconds=deployment["spec"].get("progressDeadlineSeconds", PROGRESS_SECONDS)
    ):
        known = _progress("False", "ProgressDeadlineExceeded", now)
    return {
        "observedGeneration": generation,
        "replicas": len(pods),
        "updatedReplicas": len(pods),
        "readyReplicas": ready,
        "conditions": [known],
    }


def _progress(status: str, reason: str, now: datetime) -> Body:
    return {"type": "Progressing", "status": status, "reason": reason, "lastUpdateTime": as_text(now)}


def is_ready(pod: Body) -> bool:
    """Whether all containers of a pod are ready."""
    statuses = pod["status"].get("containerStatuses", [])
    return bool(statuses) and all(each.get("ready") for each in statuses)


def container_statuses(pod: Body) -> Iterator[Body]:
    """Yield the statuses of all containers, in the order of their start."""
    yield from pod["status"].get("initContainerStatuses", [])
    yield from pod["status"].get("containerStatuses", [])


def _fails_the_job(job: Body, pod: Body) -> str:
    """The words of the first rule by which the pod's end is the Job's; empty: no rule says so."""
    for rule in job["spec"].get("podFailurePolicy", {}).get("rules", []):
        if _meets(rule, pod):
            container = rule.get("onExitCodes", {}).get("containerName")
            words = (
                f"Container {container} for pod {pod['metadata']['name']} failed with an exit code of the Job's policy"
            )
            return words if rule["action"] == "FailJob" else ""
    return ""


def _is_ignored(job: Body, pod: Body) -> bool:
    rules = job["spec"].get("podFailurePolicy", {}).get("rules", [])
    return next((rule["action"] == "Ignore" for rule in rules if _meets(rule, pod)), False)


def _meets(rule: Body, pod: Body) -> bool:
    if on := rule.get("onExitCodes"):
        codes = {
            each["name"]: each["state"]["terminated"]["exitCode"]
            for each in container_statuses(pod)
            if "terminated" in each.get("state", {})
        }
        return codes.get(on["containerName"], 0) in on["values"]
    wanted = {(each["type"], each["status"]) for each in rule.get("onPodConditions", [])}
    return any((each["type"], each["status"]) in wanted for each in pod["status"].get("conditions", []))


def _ended_at(pod: Body) -> datetime:
    """When the last container of a failed pod ended."""
    ends = [each.get("state", {}).get("terminated", {}).get("finishedAt") for each in container_statuses(pod)]
    return max(map(_time, filter(None, ends)), default=_time(pod["metadata"]["creationTimestamp"]))


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)
