"""What a Job and its pods say, as the rules ask for it. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from triton_converters.contract.envelope import EXIT_FINAL
from triton_operator import names
from triton_operator.observed.pod import PodView
from triton_operator.observed.record import Record, is_cut, record_of

EVICTIONS = 3
"""Pods in a row after which a Job has failed whose pods the kubelet ends. The Job controller would make new ones for
ever: it ignores a pod that ended because its node was short of a resource, whoever used that up."""

JobState = Literal["Active", "Succeeded", "Failed"]


@dataclass(frozen=True)
class JobFacts:
    """A Job, the pods that it made, and the Events about both."""

    name: str
    uid: str
    stage: str
    key: str
    pods: Sequence[PodView]
    """The Job's pods, the oldest first."""
    controller_state: JobState
    """What the Job controller says."""
    condition: Mapping[str, Any]
    """The condition with which the Job controller says so; empty while the Job is active."""
    record: Record | None
    """The newest result. It is complete when its container has ended; the pod and the Job end seconds later, because a
    sidecar has to shut down first."""
    cut_pod: PodView | None
    """The newest pod whose answer the kubelet cut, if there is no record."""
    events: Sequence[Mapping[str, Any]]
    body: Mapping[str, Any] = field(repr=False)

    @property
    def newest_pod(self) -> PodView | None:
        """The pod that was made last."""
        return self.pods[-1] if self.pods else None

    @property
    def state(self) -> JobState:
        """What became of the Job. Jobs and pods arrive over different watches: a pod may still be seen running."""
        if self.record is not None:
            return "Succeeded"
        return "Active" if self.newest_pod is not None and not self.newest_pod.has_ended else self.controller_state

    @property
    def is_final(self) -> bool:
        """Whether the newest pod's end fails the Job, which is then not tried again."""
        ends = (each.end for each in self.newest_pod.containers_in_turn(self.stage)) if self.newest_pod else ()
        return any(end is not None and end.exit_code == EXIT_FINAL for end in ends)

    @property
    def is_suspended(self) -> bool:
        """Whether somebody suspended the Job before it ended."""
        return bool(self.body["spec"].get("suspend")) and not self.condition

    @property
    def is_queued(self) -> bool:
        """Whether the Job is suspended and has not answered. Its pod is about to go, whatever that says."""
        return self.is_suspended and self.record is None and not self.is_final

    @property
    def overdue_pod(self) -> PodView | None:
        """The first pod that ran past its deadline, if the Job has not failed for good."""
        return None if self.is_final else next((pod for pod in self.pods if pod.is_overdue), None)

    @property
    def evictions(self) -> list[PodView]:
        """The pods in a row that the kubelet ended, at most EVICTIONS; one that ended otherwise begins the row anew."""
        evicted_pods: list[PodView] = []
        for pod in self.pods:
            if pod.has_ended:
                evicted_pods = [*evicted_pods, pod] if pod.is_evicted else []
            if len(evicted_pods) == EVICTIONS:
                break
        return evicted_pods

    @property
    def lingers_since(self) -> datetime | None:
        """When the Job's own container ended, if only others keep its pod from ending; None otherwise."""
        pod = self.newest_pod
        if pod is None or self.is_queued:
            return None
        main = pod.main(self.stage)
        if main is None or main.end is None or pod.has_ended or pod.is_disrupted or not pod.running_beside(self.stage):
            return None
        return datetime.fromisoformat(main.end.finished_at or pod.created_at)

    @property
    def ended_unseen(self) -> datetime | None:
        """When the Job ended, if none of its pods is seen; None otherwise."""
        ended_at = self.condition.get("lastTransitionTime")
        return datetime.fromisoformat(ended_at) if ended_at and not self.pods else None


def job_facts(job: Mapping[str, Any], pods: Iterable[PodView], events: Sequence[Mapping[str, Any]]) -> JobFacts:
    """Gather the facts of a Job, whose pods are among `pods`."""
    metadata = job["metadata"]
    stage, key = (metadata["labels"].get(label, "") for label in (names.STAGE_LABEL, names.KEY_LABEL))
    job_pods = sorted((pod for pod in pods if metadata["uid"] in pod.owners), key=lambda pod: pod.created_at)
    controller_state, condition = _controller_state(job)
    record = next((pod_record for pod in reversed(job_pods) if (pod_record := record_of(pod, stage, key))), None)
    return JobFacts(
        name=metadata["name"],
        uid=metadata["uid"],
        stage=stage,
        key=key,
        pods=job_pods,
        controller_state=controller_state,
        condition=condition,
        record=record,
        cut_pod=None if record is not None else next((pod for pod in reversed(job_pods) if is_cut(pod, stage)), None),
        events=events,
        body=job,
    )


def _controller_state(job: Mapping[str, Any]) -> tuple[JobState, Mapping[str, Any]]:
    for condition in job.get("status", {}).get("conditions", []):
        # SuccessCriteriaMet and FailureTarget come first, while pods are still ending with incomplete messages.
        if condition["type"] in ("Complete", "Failed") and condition["status"] == "True":
            return ("Succeeded" if condition["type"] == "Complete" else "Failed"), condition
    return "Active", {}
