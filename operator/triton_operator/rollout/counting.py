"""Verdicts of soaks and canaries that the reading of counters decides: one that failed, or found a restart. Pure."""

from datetime import datetime

from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import SnapshotResult
from triton_operator.context import Context
from triton_operator.jobs.run import Run
from triton_operator.observed.server import ServerView
from triton_operator.rollout import wording
from triton_operator.rollout.traffic import Verdict

PATIENCE_SECONDS = 300.0
"""Seconds for which the counters are waited for after the end of a soak or a step.

A Job that reads them takes seconds once its node has the image. Until it has, both revisions take up their nodes.
"""


def unread_verdict(
    context: Context, reading: Run[SnapshotResult], moment: str, end: datetime, *, spoiled: bool = False
) -> Verdict | None:
    """Return the verdict if counters were not read and are not waited for any more; None: they were, or still are.

    ``moment``: when they should have been read, in words. ``spoiled``: whether nothing can be judged without them,
    however long the rollout goes on. A Job that is suspended or queued is waited for without a limit, because that says
    nothing about the revision.
    """
    is_queued = reading.pending is not None and reading.pending.reason is Reason.QUEUED
    is_patient = (context.now - end).total_seconds() < PATIENCE_SECONDS or context.spec.suspend or is_queued
    if reading.record is not None or (reading.failure is None and is_patient):
        return None
    return wording.unread_verdict(moment, reading.failure or reading.pending, spoiled=spoiled)


def restart_verdict(server: ServerView, other: ServerView | None, since: datetime, event: str) -> Verdict | None:
    """Return the verdict if tritonserver in a pod of the revision was started again after ``since``; else None.

    ``event``: what happened at ``since``, in words. ``other``: the revision that it is compared with. If servers of
    both were started again, their node may be the cause.
    """
    for pod, restarted_at in server.restarts.items():
        if restarted_at > since:
            moment = f"{(restarted_at - since).total_seconds():.0f} s after {event}"
            if other is not None and any(each > since for each in other.restarts.values()):
                return wording.both_restarted_verdict(pod, moment, other.name)
            return wording.restart_verdict(pod, moment, server.trouble)
    return None
