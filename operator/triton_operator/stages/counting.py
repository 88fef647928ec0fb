"""Read the counters of servers by short Jobs, and say why they were not read. For soaks and canaries."""

from datetime import datetime

from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import SnapshotResult
from triton_converters.contract.upkeep_requests import ServerPod, SnapshotRequest
from triton_operator import names
from triton_operator.context import Context
from triton_operator.observed.jobs import Record
from triton_operator.observed.snapshot import ServerView
from triton_operator.resources.server import METRICS_PORT
from triton_operator.resources.work import Work
from triton_operator.stages.step import Run, run
from triton_operator.stages.traffic import Judgement

STAGE = "snapshot"
DEADLINE_SECONDS = 120
PATIENCE_SECONDS = 300.0
"""How long after the end of a soak its counters are waited for. Until then both revisions take room."""
MOST_PODS = 32
"""Pods of a revision whose counters are read: an answer has room for so many of both."""


def key(uid: str, moment: str, since: str) -> str:
    """The key of counters. It does not cover the pods: what is asked for is the counters of all at that moment.

    ``uid``: of the Deployment. ``since``: when what the counters are read for began.
    """
    return names.digest([STAGE, uid, since, moment], 16)


def counters(context: Context, server: ServerView, moment: str, since: str, previous: ServerView | None = None) -> Run:
    """Run the Job that reads the counters of a revision, and of the previous one if that is given."""
    name = key(server.uid, moment, since)
    request = SnapshotRequest(name, context.spec.served_name, _pods(server), _pods(previous) if previous else ())
    work = Work(
        stage=STAGE,
        key=name,
        request=request,
        deadline_seconds=DEADLINE_SECONDS,
        # No result that is kept depends on it, and the image that the object is pinned to may not know the stage.
        image=context.settings.converter_image,
    )
    # A pod that is not seen yet would seem to have been started later.
    return run(context, work, start=0 < server.ready_pods <= len(server.addresses))


def unread(context: Context, known: Run, when: str, end: datetime) -> Judgement | None:
    """The verdict if counters were not read and are not waited for any longer; None if they are there or waited for."""
    patient = (context.now - end).total_seconds() < PATIENCE_SECONDS and not context.spec.suspend
    if known.record is not None or (known.failure is None and patient):
        return None
    trouble = known.failure or known.pending
    suspended = ", because spec.suspend is true" if context.spec.suspend else ""
    why = f": {trouble.message}" if trouble is not None else suspended
    return Judgement(Reason.SOAK_INCONCLUSIVE, f"the servers' counters {when} were not read{why}")


def read(record: Record) -> SnapshotResult:
    """The counters that a record holds."""
    result = record.outcome.result
    assert isinstance(result, SnapshotResult)
    return result


def restarted(server: ServerView, since: datetime, event: str) -> Judgement | None:
    """The verdict if tritonserver in a pod of the revision was started again since then. ``event``: what was then."""
    for pod, at in server.restarts.items():
        if at > since:
            seconds = (at - since).total_seconds()
            words = f"tritonserver in pod {pod} ended {seconds:.0f} s after {event}"
            why = f": {server.trouble.message}" if server.trouble is not None else ""
            return Judgement(Reason.SOAK_FAILED, f"{words}, and was started again{why}")
    return None


def _pods(server: ServerView) -> tuple[ServerPod, ...]:
    return tuple(
        ServerPod(name, f"[{ip}]:{METRICS_PORT}" if ":" in ip else f"{ip}:{METRICS_PORT}")
        for name, ip in sorted(server.addresses.items())[:MOST_PODS]
    )
