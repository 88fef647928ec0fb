"""A Job as one pass sees it: its result, how it failed, what keeps it from running. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from triton_converters.contract.document import DocumentError
from triton_converters.contract.envelope import EXIT_FINAL, Outcome, read_again
from triton_converters.contract.reasons import Reason
from triton_operator import names
from triton_operator.observed.pod import (
    RUN,
    Trouble,
    containers,
    disrupted,
    ended,
    ended_as_it_started,
    ending,
    evicted,
    eviction,
    eviction_words,
    framework_image_id,
    in_turn,
    is_cut,
    kept_by,
    last_seen,
    no_pod,
    overdue,
    pod_trouble,
    restarts,
    server_crash,
    server_image_id,
    termination,
    unschedulable_since,
)

BACKOFF_LIMIT = 2
"""Two more tries for a Job's pod, and for a sidecar that crashes, which never fails its Job by itself."""
EVICTIONS = 3
"""Pods in a row after which a Job has failed whose pods the kubelet ends. The Job controller would make new ones for
ever: it ignores a pod that ended because its node was short of a resource, whoever used that up."""
SEARCH_RESTARTS = 6
"""Restarts of a search's sidecar once the search runs. The search refuses a configuration under which the server ended
twice; three such configurations leave time for others, though the kubelet waits longer with each start."""

TRIES_USED_UP = "BackoffLimitExceeded"
"""The reason of a Job that failed because its pods failed more often than BACKOFF_LIMIT."""

_LOOKS_EVERY_TIME = ("source", "snapshot", "clean")
"""Stages whose answer is not on the claim, so that no other Job can read it there."""
_MEASURING = ("profile", "search", "measure")
"""Stages whose deadline is in spec.performance; that of the others is in spec.conversion."""

JobState = Literal["Active", "Succeeded", "Failed"]


@dataclass(frozen=True)
class Record:
    """A Job's stored result, and when it was made."""

    outcome: Outcome
    text: str
    """The termination message, unchanged."""
    finished_at: str
    """When the Job finished, in RFC 3339, UTC."""
    image_id: str = ""
    """ID of the image that the Job's server ran, or the reference's framework, as the kubelet reported it; empty: not
    reported, or neither."""


@dataclass(frozen=True)
class JobView:
    """A Job and what its newest pod reports."""

    name: str
    uid: str
    stage: str
    key: str
    state: JobState
    record: Record | None
    """The record of a Job that succeeded with a valid result."""
    failure: Trouble | None
    """Why the Job failed, or its sidecar crashed, or its pod ran past the deadline."""
    pending: Trouble | None
    """What keeps its pod from running, or how its own container ended in a pod that goes on."""
    unschedulable_since: datetime | None
    """When the scheduler first found no node for the pod that waits."""
    suspended: bool
    """Whether somebody suspended it, such as Kueue, before it ended. Its pods go, and others come once it goes on."""
    lingers_since: datetime | None
    """When its own container ended, if a container that a webhook added keeps the pod from ending; None otherwise."""
    ended: bool
    """Whether the Job controller ended it, or will once its pod has ended. A Job may have failed and go on, because its
    sidecar crashed, or because the controller would try again what ran past its deadline."""
    cut: bool
    """Whether its own container succeeded and the kubelet cut its answer, which then has to be read from the claim."""
    image_id: str
    """``Record.image_id`` of that answer."""
    ended_unseen: datetime | None
    """When the Job ended, if none of its pods is seen; None otherwise."""
    body: Mapping[str, Any] = field(repr=False)

    @property
    def active(self) -> bool:
        """Whether its work may still go on, or be tried again."""
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
    # A container's result is complete when the container has ended. The pod and the Job end seconds later, because a
    # sidecar has to shut down first.
    record = next((found for pod in reversed(own) if (found := _record(pod, stage, key))), None)
    final = newest is not None and _is_final(newest, stage)
    suspended = bool(job["spec"].get("suspend")) and not why
    queued = suspended and record is None and not final
    # The pod of a suspended Job is about to go, whatever it says.
    lingers_since = None if newest is None or queued else _lingers_since(newest, stage)
    failure, pending, crashed = None, None, None
    cut = None if record is not None else next((pod for pod in reversed(own) if _answer_is_cut(pod, stage)), None)
    if record is not None:
        state = "Succeeded"
    elif newest is not None and not ended(newest):
        # Jobs and pods arrive over different watches: the pod of an ended Job may still be seen running.
        state = "Active"
    late = None if final else next((pod for pod in own if overdue(pod)), None)
    evictions = _evictions(own)
    if cut is not None:
        failure = _cut_short(name, _added(cut, job))
    elif state == "Succeeded":
        if record is None and own:
            failure = _no_result(name)
    elif late is not None:
        failure = _late(name, late, stage, events)
    elif len(evictions) == EVICTIONS:
        failure = _evicted(name, evictions[-1])
    elif queued or _failed_in_the_queue(job, why):
        pending = _queued(job)
    elif state == "Failed":
        failure = _failure(name, own, stage, key, why)
    elif newest is None:
        pending = no_pod(job, events)
    elif ended(newest):
        pending = _replaced(evictions) or _again(newest, stage, key)
    elif lingers_since is not None:
        end = _ending(newest, stage, key) or _no_result(name)
        failure, pending = (end, None) if final else (None, _kept_up(newest, stage, end))
    else:
        crash = server_crash(newest)
        searches = stage == "search" and _runs(newest, stage) and not ended_as_it_started(newest)
        crashed = crash if crash is not None and _stays(crash, newest, searches) else None
        pending = (crashed if searches else crash) or pod_trouble(newest, events) or _runs_again(evictions)
    unseen = None
    if why.get("lastTransitionTime") and not own:
        unseen = datetime.fromisoformat(why["lastTransitionTime"])
    since = None if newest is None or pending is None or queued else unschedulable_since(newest)
    return JobView(
        name=name,
        uid=job["metadata"]["uid"],
        stage=stage,
        key=key,
        state=state,
        record=record,
        failure=failure or crashed,
        pending=pending,
        unschedulable_since=since,
        suspended=suspended,
        lingers_since=lingers_since,
        ended=bool(why) or final,
        cut=cut is not None and stage not in _LOOKS_EVERY_TIME,
        image_id="" if cut is None else _image_id(cut, stage),
        ended_unseen=unseen,
        body=job,
    )


def _stays(crash: Trouble, pod: Mapping[str, Any], searches: bool) -> bool:
    """Whether another start would not help: a refused model stays refused, but a crash may be the node's fault.

    ``searches``: a search runs, and its server has started with the spec's configuration or may have. The crash may be
    the fault of the configuration that it tries; it then tries another.
    """
    if searches:
        return restarts(pod) > SEARCH_RESTARTS
    return crash.reason is not Reason.SERVER_CRASHED or restarts(pod) > BACKOFF_LIMIT


def _runs(pod: Mapping[str, Any], stage: str) -> bool:
    """Whether what asks the Job's sidecar was started: `run`, or the Job's own container in a pod without one."""
    asks = [each for each in in_turn(pod, stage) if each["name"] in (RUN, stage)]
    return bool(asks) and not asks[0].get("state", {}).get("waiting")


def _main(pod: Mapping[str, Any], stage: str) -> list[Mapping[str, Any]]:
    """Status of the Job's own container, once there is one. It has the stage's name; webhooks may add others."""
    return [each for each in containers(pod) if each["name"] == stage]


def _is_final(pod: Mapping[str, Any], stage: str) -> bool:
    """Whether the pod's end fails its Job, which is then not tried again."""
    return any(termination(each).get("exitCode") == EXIT_FINAL for each in in_turn(pod, stage))


def _lingers_since(pod: Mapping[str, Any], stage: str) -> datetime | None:
    """When the Job's own container ended, if only others keep its pod from ending; None otherwise."""
    ends = [termination(each) for each in _main(pod, stage)]
    if not any(ends) or ended(pod) or disrupted(pod) or not kept_by(pod, stage):
        return None
    return datetime.fromisoformat(ends[0].get("finishedAt") or pod["metadata"]["creationTimestamp"])


def _kept_up(pod: Mapping[str, Any], stage: str, end: Trouble) -> Trouble:
    """How the Job's own container ended, and why the Job does not try again."""
    others = ", ".join(kept_by(pod, stage))
    message = (
        f"{end.message}; container {others} goes on in its pod, so the Job cannot try again; keep that container out of"
        " the Jobs' pods by labels or annotations in spec.pod"
    )
    return Trouble(end.reason, message)


def _no_result(job: str) -> Trouble:
    return Trouble(Reason.RESULT_MISSING, f"Job {job} succeeded without a valid result; see its log")


def _cut_short(job: str, added: list[str]) -> Trouble:
    message = f"the kubelet cut the answer of Job {job}, because all containers of a pod share one limit"
    if added:
        message += (
            f", and something in the cluster added {', '.join(added)}; keep that out of the Jobs' pods by labels or"
            " annotations in spec.pod"
        )
    return Trouble(Reason.RESULT_MISSING, message)


def _added(pod: Mapping[str, Any], job: Mapping[str, Any]) -> list[str]:
    """Names of the containers that are not the Job's."""

    def names_of(spec: Mapping[str, Any]) -> list[str]:
        return [each["name"] for group in ("initContainers", "containers") for each in spec.get(group, [])]

    own = names_of(job["spec"].get("template", {}).get("spec", {}))
    return [each for each in names_of(pod["spec"]) if each not in own]


def _answer_is_cut(pod: Mapping[str, Any], stage: str) -> bool:
    ends = [termination(each) for each in _main(pod, stage)]
    return any(end.get("exitCode") == 0 and is_cut(pod, end) for end in ends if end)


def _again(pod: Mapping[str, Any], stage: str, key: str) -> Trouble | None:
    """The failure of a pod whose Job tries again; None if the Job is about to end with it."""
    if disrupted(pod):
        return eviction(pod)
    failure = None if _is_final(pod, stage) else _ending(pod, stage, key)
    return Trouble(failure.reason, f"{failure.message}; the Job tries again") if failure else None


def _evictions(pods: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The pods in a row that the kubelet ended, at most EVICTIONS; one that ended otherwise begins the row anew."""
    row: list[Mapping[str, Any]] = []
    for pod in filter(ended, pods):
        row = [*row, pod] if evicted(pod) else []
        if len(row) == EVICTIONS:
            break
    return row


def _evicted(name: str, pod: Mapping[str, Any]) -> Trouble:
    message = (
        f"{eviction_words(pod)}; so ended {EVICTIONS} pods of Job {name} in a row; let it need less of that, or give it"
        " more, and try again"
    )
    return Trouble(Reason.EVICTED, message)


def _replaced(evictions: list[Mapping[str, Any]]) -> Trouble | None:
    """Why another pod is about to be made, if the kubelet ended the last one."""
    if not evictions:
        return None
    message = (
        f"{eviction_words(evictions[-1])}; another pod takes its place, unless {EVICTIONS} in a row end so (now"
        f" {len(evictions)})"
    )
    return Trouble(Reason.EVICTED, message)


def _runs_again(evictions: list[Mapping[str, Any]]) -> Trouble | None:
    """Why a pod that runs well is not the Job's first."""
    if not evictions:
        return None
    words = f"{eviction_words(evictions[-1])}; its Job runs again (eviction {len(evictions)} of at most {EVICTIONS})"
    return Trouble(Reason.RUNNING, words)


def _state(job: Mapping[str, Any]) -> tuple[JobState, Mapping[str, Any]]:
    for condition in job.get("status", {}).get("conditions", []):
        # SuccessCriteriaMet and FailureTarget come first, while pods are still ending with incomplete messages.
        if condition["type"] in ("Complete", "Failed") and condition["status"] == "True":
            return ("Succeeded" if condition["type"] == "Complete" else "Failed"), condition
    return "Active", {}


def _failed_in_the_queue(job: Mapping[str, Any], why: Mapping[str, Any]) -> bool:
    """Whether the Job failed only because it was suspended too often: each time, its pod counts as a failed try."""
    return bool(job["spec"].get("suspend")) and (why.get("type"), why.get("reason")) == ("Failed", TRIES_USED_UP)


def _queued(job: Mapping[str, Any]) -> Trouble:
    name, namespace = job["metadata"]["name"], job["metadata"].get("namespace", "default")
    queue = job["metadata"]["labels"].get(names.QUEUE_LABEL)
    if queue is None:
        words = f"Job {name} is suspended; it goes on once its spec.suspend is false, so ask the one who set that"
        return Trouble(Reason.QUEUED, words)
    message = (
        f"Job {name} waits in queue {queue} until Kueue admits it; to see what it waits for, type: kubectl describe"
        f" workloads --namespace {namespace} --selector kueue.x-k8s.io/job-uid={job['metadata']['uid']}"
    )
    return Trouble(Reason.QUEUED, message)


def _late(name: str, pod: Mapping[str, Any], stage: str, events: list[Mapping[str, Any]]) -> Trouble:
    seconds = pod["spec"].get("activeDeadlineSeconds")
    section = "performance" if stage in _MEASURING else "conversion"
    advice = f"; raise spec.{section}.activeDeadlineSeconds" if stage != "snapshot" else ""
    seen = last_seen(pod, stage, events)
    return Trouble(
        Reason.DEADLINE_EXCEEDED,
        f"Job {name} ran for more than {seconds} s{advice}{'; last seen: ' if seen else ''}{seen}",
    )


def _failure(name: str, pods: list[Mapping[str, Any]], stage: str, key: str, why: Mapping[str, Any]) -> Trouble:
    for pod in reversed(pods):
        if failure := _ending(pod, stage, key):
            return failure
    return Trouble(Reason.CRASHED, f"Job {name} failed: {why.get('message', 'its pods are gone')}")


def _ending(pod: Mapping[str, Any], stage: str, key: str) -> Trouble | None:
    """How the Job's own container failed, or one before it; None if none did or the cluster ended the pod.

    What `run` leaves is judged by the container after it: a message in `run` itself is the user code's.
    """
    if disrupted(pod):
        return None
    for container in in_turn(pod, stage):
        end = termination(container)
        if end and end.get("exitCode") != 0:
            said = _said(end, stage, key) if container["name"] != RUN else None
            return said or ending(pod, container["name"], end, Reason.CRASHED)
    return None


def _said(terminated: Mapping[str, Any], stage: str, key: str) -> Trouble | None:
    """The failure that the stage itself reported."""
    outcome = _outcome(terminated, stage, key)
    return Trouble(outcome.reason, outcome.message) if outcome is not None and outcome.reason is not None else None


def _record(pod: Mapping[str, Any], stage: str, key: str) -> Record | None:
    for container in _main(pod, stage):
        end = termination(container)
        if end and end.get("exitCode") == 0:
            outcome = _outcome(end, stage, key)
            if outcome is not None and outcome.result is not None:
                return Record(outcome, end["message"], end.get("finishedAt", ""), _image_id(pod, stage))
    return None


def _image_id(pod: Mapping[str, Any], stage: str) -> str:
    return framework_image_id(pod) if stage == "reference" else server_image_id(pod)


def _outcome(terminated: Mapping[str, Any], stage: str, key: str) -> Outcome | None:
    try:
        outcome = read_again(terminated.get("message", ""))
    except DocumentError:
        return None
    return outcome if (outcome.stage, outcome.key) == (stage, key) else None


def _controlled_by(pod: Mapping[str, Any], owner: Mapping[str, Any]) -> bool:
    uid = owner["metadata"].get("uid")
    return any(reference.get("uid") == uid for reference in pod["metadata"].get("ownerReferences", []))
