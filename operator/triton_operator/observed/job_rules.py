"""What the facts of a Job mean: ordered rules, of which the first that applies decides. Pure."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from triton_converters.contract.reasons import Reason
from triton_converters.contract.stages import STAGES
from triton_operator import names
from triton_operator.observed.ending import eviction_text, last_message, server_could_not_start, server_crash
from triton_operator.observed.job_facts import EVICTIONS, JobFacts
from triton_operator.observed.node_fault import of_node
from triton_operator.observed.pod import RUN, PodView
from triton_operator.observed.record import failure_of
from triton_operator.observed.trouble import (
    Trouble,
    eviction_trouble,
    holding_text,
    missing_pod_trouble,
    pod_trouble,
    start_trouble,
)

BACKOFF_LIMIT = 2
"""Two more tries for a Job's pod, and for a sidecar that crashes, which never fails its Job by itself."""
SEARCH_RESTARTS = 6
"""Restarts of a search's sidecar once the search runs. The search refuses a configuration under which the server ended
twice; three such configurations leave time for others, though the kubelet waits longer with each start."""
TRIES_USED_UP = "BackoffLimitExceeded"
"""The reason of a Job that failed because its pods failed more often than BACKOFF_LIMIT."""


@dataclass(frozen=True)
class Finding:
    """What a rule found."""

    failure: Trouble | None = None
    """`JobView.failure`."""
    pending: Trouble | None = None
    """`JobView.pending`."""


def valid_result(job: JobFacts) -> Finding | None:
    """The Job left a result. What else its pods say does not matter then."""
    return Finding() if job.record is not None else None


def cut_answer(job: JobFacts) -> Finding | None:
    """The kubelet cut the answer that the Job left in its pod's termination message."""
    return Finding(failure=_cut_answer_trouble(job, job.cut_pod)) if job.cut_pod is not None else None


def missing_result(job: JobFacts) -> Finding | None:
    """The Job succeeded, and no result is seen. A pod that is gone may have left one."""
    if job.state != "Succeeded":
        return None
    return Finding(failure=_missing_result_trouble(job)) if job.pods else Finding()


def missed_deadline(job: JobFacts) -> Finding | None:
    """The kubelet ended a pod of the Job at its deadline, which counts from when a node took the pod."""
    return Finding(failure=_deadline_trouble(job, job.overdue_pod)) if job.overdue_pod is not None else None


def repeated_eviction(job: JobFacts) -> Finding | None:
    """The kubelet evicted so many of the Job's pods that another one would be evicted too."""
    return Finding(failure=_repeated_eviction_trouble(job)) if len(job.evictions) == EVICTIONS else None


def suspended_job(job: JobFacts) -> Finding | None:
    """The Job is suspended, or it failed only because it was suspended too often.

    Each time that a Job is suspended, its pod counts as a failed try.
    """
    verdict = (job.condition.get("type"), job.condition.get("reason"))
    is_worn_out = job.body["spec"].get("suspend") and verdict == ("Failed", TRIES_USED_UP)
    return Finding(pending=_suspension_trouble(job)) if job.is_queued or is_worn_out else None


def failed_job(job: JobFacts) -> Finding | None:
    """The Job controller gave it up."""
    return Finding(failure=_failed_job_trouble(job)) if job.state == "Failed" else None


def missing_pod(job: JobFacts) -> Finding | None:
    """The Job has no pod yet, or can get none."""
    return Finding(pending=missing_pod_trouble(job.body, job.events)) if job.newest_pod is None else None


def ended_pod(job: JobFacts) -> Finding | None:
    """The newest pod of the Job has ended, and another one follows, or the Job is about to end."""
    pod = job.newest_pod
    if pod is None or not pod.has_ended:
        return None
    return Finding(pending=_replacement_trouble(job) or _retry_trouble(job, pod))


def lingering_pod(job: JobFacts) -> Finding | None:
    """The Job's own container has ended without a result, and other containers keep its pod from ending."""
    pod = job.newest_pod
    if pod is None or job.lingers_since is None:
        return None
    end = failure_of(pod, job.stage, job.key) or _missing_result_trouble(job)
    return Finding(failure=end) if job.is_final else Finding(pending=_lingering_trouble(job, pod, end))


def running_pod(job: JobFacts) -> Finding | None:
    """The newest pod of the Job goes on.

    Its server may have crashed, so often that another start would not help: the Job is given up then.
    """
    pod = job.newest_pod
    if pod is None:
        return None
    crash = server_crash(pod)
    is_searching = _is_searching(job, pod)
    lasting_crash = crash if crash is not None and _is_lasting(crash, pod, is_searching) else None
    pending = (lasting_crash if is_searching else crash) or pod_trouble(pod, job.events) or _rerun_trouble(job)
    return Finding(failure=lasting_crash, pending=pending)


RULES: tuple[Callable[[JobFacts], Finding | None], ...] = (
    valid_result,
    cut_answer,
    missing_result,
    missed_deadline,
    repeated_eviction,
    suspended_job,
    failed_job,
    missing_pod,
    ended_pod,
    lingering_pod,
    running_pod,
)
"""The first that applies decides; one always does, because a Job without a pod and one with a pod have their rules."""


def finding(job: JobFacts) -> Finding:
    """Return what the first rule that applies found; a failure that the node caused is one of the node."""
    result = next(result for rule in RULES if (result := rule(job)) is not None)
    if result.failure is None or job.is_final or job.cut_pod is not None:
        return result
    return replace(result, failure=of_node(result.failure, job.newest_pod, job.events))


def _is_searching(job: JobFacts, pod: PodView) -> bool:
    """Whether a search runs, and its server has started with the spec's configuration or may have.

    A crash may then be the fault of the configuration that it tries; it goes on with another.
    """
    clients = [each for each in pod.containers_in_turn(job.stage) if each.name in (RUN, job.stage)]
    has_begun = bool(clients) and clients[0].waiting is None
    return job.stage == "search" and has_begun and not server_could_not_start(pod)


def _is_lasting(crash: Trouble, pod: PodView, is_searching: bool) -> bool:
    """Whether another start would not help: a refused model stays refused, but a crash may be the node's fault."""
    if is_searching:
        return pod.restarts > SEARCH_RESTARTS
    return crash.reason is not Reason.SERVER_CRASHED or pod.restarts > BACKOFF_LIMIT


def _lingering_trouble(job: JobFacts, pod: PodView, end: Trouble) -> Trouble:
    """Return how the Job's own container ended, and why the Job does not try again."""
    others = ", ".join(pod.running_beside(job.stage))
    message = (
        f"{end.message}; container {others} goes on in its pod, so the Job cannot try again; keep that container out of"
        " the Jobs' pods by labels or annotations in spec.pod"
    )
    return Trouble(end.reason, message)


def _missing_result_trouble(job: JobFacts) -> Trouble:
    return Trouble(Reason.RESULT_MISSING, f"Job {job.name} succeeded without a valid result; see its log")


def _cut_answer_trouble(job: JobFacts, pod: PodView) -> Trouble:
    message = f"the kubelet cut the answer of Job {job.name}, because all containers of a pod share one limit"
    template = job.body["spec"].get("template", {}).get("spec", {})
    own_names = {each["name"] for group in ("initContainers", "containers") for each in template.get(group, [])}
    if foreign_names := [name for name in pod.names if name not in own_names]:
        message += (
            f", and something in the cluster added {', '.join(foreign_names)}; keep that out of the Jobs' pods by"
            " labels or annotations in spec.pod"
        )
    return Trouble(Reason.RESULT_MISSING, message)


def _retry_trouble(job: JobFacts, pod: PodView) -> Trouble | None:
    """Return the failure of a pod whose Job tries again; None if the Job is about to end with it."""
    if pod.is_disrupted:
        return eviction_trouble(pod)
    failure = None if job.is_final else failure_of(pod, job.stage, job.key)
    return Trouble(failure.reason, f"{failure.message}; the Job tries again") if failure else None


def _repeated_eviction_trouble(job: JobFacts) -> Trouble:
    message = (
        f"{eviction_text(job.evictions[-1])}; so ended {EVICTIONS} pods of Job {job.name} in a row; let it need less"
        " of that, or give it more, and try again"
    )
    return Trouble(Reason.EVICTED, message)


def _replacement_trouble(job: JobFacts) -> Trouble | None:
    """Return why another pod is about to be made, if the kubelet ended the last one."""
    if not job.evictions:
        return None
    message = (
        f"{eviction_text(job.evictions[-1])}; another pod takes its place, unless {EVICTIONS} in a row end so (now"
        f" {len(job.evictions)})"
    )
    return Trouble(Reason.EVICTED, message)


def _rerun_trouble(job: JobFacts) -> Trouble | None:
    """Return why a pod that runs well is not the Job's first."""
    if not job.evictions:
        return None
    number = f"(eviction {len(job.evictions)} of at most {EVICTIONS})"
    return Trouble(Reason.RUNNING, f"{eviction_text(job.evictions[-1])}; its Job runs again {number}")


def _suspension_trouble(job: JobFacts) -> Trouble:
    metadata = job.body["metadata"]
    queue = metadata["labels"].get(names.QUEUE_LABEL)
    if queue is None:
        advice = f"Job {job.name} is suspended; it goes on once its spec.suspend is false, so ask the one who set that"
        return Trouble(Reason.QUEUED, advice)
    message = (
        f"Job {job.name} waits in queue {queue} until Kueue admits it; to see what it waits for, type: kubectl describe"
        f" workloads --namespace {metadata.get('namespace', 'default')} --selector kueue.x-k8s.io/job-uid={job.uid}"
    )
    return Trouble(Reason.QUEUED, message)


def _deadline_trouble(job: JobFacts, pod: PodView) -> Trouble:
    if pod.holding is not None:
        message = f"Job {job.name} ran for more than {pod.deadline_seconds} s: {holding_text(pod, pod.holding)}"
        return Trouble(Reason.SIDECAR_NOT_STARTED, message, container=pod.holding.name)
    field = STAGES[job.stage].deadline if job.stage in STAGES else ""
    advice = f"; raise {field}" if field else ""
    pod_message = last_message(pod, job.stage, job.events)
    last = f"; last seen: {pod_message}" if pod_message else ""
    message = f"Job {job.name} ran for more than {pod.deadline_seconds} s{advice}{last}"
    # A registry that is down says nothing of the work.
    waiting = start_trouble(pod, job.events)
    is_registry = waiting is not None and waiting.reason is Reason.IMAGE_PULL_FAILED
    return Trouble(Reason.IMAGE_PULL_FAILED if is_registry else Reason.DEADLINE_EXCEEDED, message)


def _failed_job_trouble(job: JobFacts) -> Trouble:
    for pod in reversed(job.pods):
        if trouble := failure_of(pod, job.stage, job.key):
            return trouble
    return Trouble(Reason.CRASHED, f"Job {job.name} failed: {job.condition.get('message', 'its pods are gone')}")
