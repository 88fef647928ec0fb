"""A Job as one pass sees it: its result, how it failed, what keeps it from running. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from triton_converters.contract.stages import STAGES
from triton_operator.observed.job_facts import JobState, job_facts
from triton_operator.observed.job_rules import finding
from triton_operator.observed.pod import PodView
from triton_operator.observed.record import Record, image_id
from triton_operator.observed.trouble import Trouble


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
    """What keeps the Job's pod from running, or how its own container ended in a pod that goes on."""
    unschedulable_since: datetime | None
    """When the scheduler first found no node for the pod that waits."""
    runs_since: datetime | None
    """When the Job controller last let the Job run; None: it has not, or the Job is suspended."""
    suspended: bool
    """Whether somebody, such as Kueue, suspended the Job before it ended. The pods go; others come once it goes on."""
    lingers_since: datetime | None
    """When the Job's own container ended, if one that a webhook added keeps the pod from ending; None otherwise."""
    ended: bool
    """Whether the Job controller ended it, or will once its pod has ended. A Job may have failed and go on, because its
    sidecar crashed, or because the controller would try again what ran past its deadline."""
    cut: bool
    """Whether the Job's own container succeeded and the kubelet cut the answer, which has to be read from the claim."""
    image_id: str
    """``Record.image_id`` of that answer."""
    cut_node: str
    """``Record.node`` of that answer."""
    ended_unseen: datetime | None
    """When the Job ended, if none of its pods is seen; None otherwise."""
    body: Mapping[str, Any] = field(repr=False)

    @property
    def active(self) -> bool:
        """Whether the Job's work may still go on, or be tried again."""
        return self.state == "Active" and self.failure is None


def job_view(job: Mapping[str, Any], pods: Iterable[PodView], events: Sequence[Mapping[str, Any]]) -> JobView:
    """Read a Job, its pods among `pods`, and Events about it and them."""
    facts = job_facts(job, pods, events)
    result = finding(facts)
    pod = None if result.pending is None or facts.is_queued else facts.newest_pod
    return JobView(
        name=facts.name,
        uid=facts.uid,
        stage=facts.stage,
        key=facts.key,
        state=facts.state,
        record=facts.record,
        failure=result.failure,
        pending=result.pending,
        unschedulable_since=None if pod is None else pod.unschedulable_since,
        runs_since=_runs_since(job),
        suspended=facts.is_suspended,
        lingers_since=facts.lingers_since,
        ended=bool(facts.condition) or facts.is_final,
        cut=facts.cut_pod is not None and facts.stage in STAGES and STAGES[facts.stage].directory is not None,
        image_id="" if facts.cut_pod is None else image_id(facts.cut_pod, facts.stage),
        cut_node="" if facts.cut_pod is None else facts.cut_pod.node or "",
        ended_unseen=facts.ended_unseen,
        body=job,
    )


def _runs_since(job: Mapping[str, Any]) -> datetime | None:
    """Return `JobView.runs_since`. A Job that was just let go on is Suspended yet, with the time of its last start."""
    status, conditions = job.get("status", {}), job.get("status", {}).get("conditions", [])
    is_suspended = any((each["type"], each["status"]) == ("Suspended", "True") for each in conditions)
    start = "" if is_suspended or job["spec"].get("suspend") else status.get("startTime", "")
    return datetime.fromisoformat(start) if start else None
