"""A Job as one pass sees it: what its pods said, how it failed, what keeps it from running. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from triton_converters.contract.document import DocumentError
from triton_converters.contract.envelope import EXIT_FINAL, Outcome
from triton_converters.contract.reasons import Reason
from triton_operator import names
from triton_operator.observed.pods import (
    Trouble,
    containers,
    disrupted,
    ended,
    ending,
    eviction,
    no_pod,
    pod_trouble,
    preparations,
    restarts,
    server_crash,
    unschedulable_since,
)

BACKOFF_LIMIT = 2
"""Two more tries of what may mend itself: of a Job's pod, and of a sidecar that crashes, which never fails its Job."""
SEARCH_RESTARTS = 6
"""Of a search's sidecar once the search runs: it refuses a configuration under which the server ended twice, and three
such ones leave it time for others, though the kubelet waits longer with each start."""

JobState = Literal["Active", "Succeeded", "Failed"]


@dataclass(frozen=True)
class Record:
    """What a Job answered, and when."""

    outcome: Outcome
    text: str
    """The termination message as it was."""
    finished_at: str
    """RFC 3339, UTC."""


@dataclass(frozen=True)
class JobView:
    """A Job with its newest pod's words."""

    name: str
    stage: str
    key: str
    state: JobState
    record: Record | None
    """Of a Job that succeeded with a valid answer."""
    failure: Trouble | None
    """Of a Job that failed, or whose sidecar crashed."""
    pending: Trouble | None
    """What keeps its pod from running."""
    unschedulable_since: datetime | None
    """When the scheduler first found no node for the pod that waits."""
    sidecar_crashed: bool
    """By itself it never fails the Job."""
    ended_unseen: datetime | None
    """When the Job ended of which no pod is seen; None where it has not, or its pods are seen, or nobody knows."""
    body: Mapping[str, Any] = field(repr=False)

    @property
    def active(self) -> bool:
        """Whether it may still have a pod that runs."""
        return self.state == "Active" and self.failure is None


def job_view(job: Mapping[str, Any], pods: Iterable[Mapping[str, Any]], events: list[Mapping[str, Any]]) -> JobView:
    """Read a Job, its pods among `pods`, and Events about it and them."""
    labels = job["metadata"]["labels"]
    name, stage, key = job["metadata"]["name"], labels.get(names.STAGE_LABEL, ""), labels.get(names.KEY_LABEL, "")
    own = sorted(
        (pod for pod in pods if _controlled_by(pod, job)), key=lambda pod: pod["metadata"].get("creationTimestamp", "")
    )
    newest = own[-1] if own else None
    state, why = _state(job)
    # A container's answer is whole when it has ended; the kubelet and the Job controller report the pod's end, and the
    # Job's, seconds later: a sidecar has to shut down first.
    record = next((found for pod in reversed(own) if (found := _record(pod, stage, key))), None)
    failure, pending, crashed = None, None, None
    if record is not None:
        state = "Succeeded"
    elif newest is not None and not ended(newest) and why.get("reason") != "DeadlineExceeded":
        # Jobs and pods arrive over different watches: of a Job that ended, the pod may still be seen to run.
        state = "Active"
    if state == "Succeeded":
        if record is None and own:
            failure = Trouble(
                Reason.RESULT_MISSING,
                f"Job {name} succeeded without a valid result: user code ended the process before the stage was done",
            )
    elif state == "Failed":
        failure = _failure(job, own, stage, key, why)
    elif newest is None:
        pending = no_pod(job, events)
    elif ended(newest):
        pending = _again(newest, stage, key)
    else:
        crash = server_crash(newest)
        searches = stage == "search" and _runs(newest)
        crashed = crash if crash is not None and _stays(crash, newest, searches) else None
        pending = (crashed if searches else crash) or pod_trouble(newest, events)
    unseen = None
    if why.get("lastTransitionTime") and not own:
        unseen = datetime.fromisoformat(why["lastTransitionTime"])
    since = None if newest is None or pending is None else unschedulable_since(newest)
    crash_seen = crashed is not None
    return JobView(name, stage, key, state, record, failure or crashed, pending, since, crash_seen, unseen, job)


def _stays(crash: Trouble, pod: Mapping[str, Any], searches: bool) -> bool:
    """Whether another start will not mend it: a refused model stays refused, a crash may be the node's fault.

    ``searches``: it may be the fault of a configuration that is tried, and another is tried then.
    """
    if searches:
        return restarts(pod) > SEARCH_RESTARTS
    return crash.reason is not Reason.SERVER_CRASHED or restarts(pod) > BACKOFF_LIMIT


def _runs(pod: Mapping[str, Any]) -> bool:
    """Whether the Job's own container was started, so that its sidecar was ready once."""
    return any(not each.get("state", {}).get("waiting") for each in containers(pod))


def _again(pod: Mapping[str, Any], stage: str, key: str) -> Trouble | None:
    """A failure of a pod whose Job has more tries; None where the Job is about to end with it."""
    if disrupted(pod):
        return eviction(pod)
    own = [*preparations(pod), *containers(pod)]
    codes = {each.get("state", {}).get("terminated", {}).get("exitCode") for each in own}
    failure = None if EXIT_FINAL in codes else _ending(pod, stage, key)
    return Trouble(failure.reason, f"{failure.message}; the Job tries again") if failure else None


def _state(job: Mapping[str, Any]) -> tuple[JobState, Mapping[str, Any]]:
    for condition in job.get("status", {}).get("conditions", []):
        # SuccessCriteriaMet and FailureTarget come first, while pods still end; their messages may be incomplete.
        if condition["type"] in ("Complete", "Failed") and condition["status"] == "True":
            return ("Succeeded" if condition["type"] == "Complete" else "Failed"), condition
    return "Active", {}


def _failure(
    job: Mapping[str, Any], pods: list[Mapping[str, Any]], stage: str, key: str, why: Mapping[str, Any]
) -> Trouble:
    name = job["metadata"]["name"]
    if why.get("reason") == "DeadlineExceeded":
        seconds = job["spec"].get("activeDeadlineSeconds")
        waiting = next((found for pod in pods if (found := pod_trouble(pod, []))), None)
        last = f"; last seen: {waiting.message}" if waiting else ""
        return Trouble(
            Reason.DEADLINE_EXCEEDED, f"Job {name} ran past its activeDeadlineSeconds of {seconds}; raise it{last}"
        )
    for pod in reversed(pods):
        if failure := _ending(pod, stage, key):
            return failure
    return Trouble(Reason.CRASHED, f"Job {name} failed: {why.get('message', 'its pods are gone')}")


def _ending(pod: Mapping[str, Any], stage: str, key: str) -> Trouble | None:
    """How the pod's own container, or one before it, failed; None where none did or the cluster ended the pod."""
    if disrupted(pod):
        return None
    for container in [*preparations(pod), *containers(pod)]:
        end = container.get("state", {}).get("terminated")
        if end and end.get("exitCode") != 0:
            return _said(end, stage, key) or ending(pod, container["name"], end, Reason.CRASHED)
    return None


def _said(terminated: Mapping[str, Any], stage: str, key: str) -> Trouble | None:
    """The reason the stage itself gave."""
    outcome = _outcome(terminated, stage, key)
    return Trouble(outcome.reason, outcome.message) if outcome is not None and outcome.reason is not None else None


def _record(pod: Mapping[str, Any], stage: str, key: str) -> Record | None:
    for container in containers(pod):
        end = container.get("state", {}).get("terminated")
        if end and end.get("exitCode") == 0:
            outcome = _outcome(end, stage, key)
            if outcome is not None and outcome.result is not None:
                return Record(outcome, end["message"], end.get("finishedAt", ""))
    return None


def _outcome(terminated: Mapping[str, Any], stage: str, key: str) -> Outcome | None:
    try:
        outcome = Outcome.from_json(terminated.get("message", ""))
    except DocumentError:
        return None
    return outcome if (outcome.stage, outcome.key) == (stage, key) else None


def _controlled_by(pod: Mapping[str, Any], owner: Mapping[str, Any]) -> bool:
    uid = owner["metadata"].get("uid")
    return any(reference.get("uid") == uid for reference in pod["metadata"].get("ownerReferences", []))
