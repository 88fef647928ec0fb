"""Read the counters of servers by short Jobs, and say why they were not read. For soaks and canaries."""

from datetime import datetime

from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import SnapshotResult
from triton_operator.context import Context
from triton_operator.jobs.run import Run
from triton_operator.observed.server import ServerView
from triton_operator.rollout import wording
from triton_operator.rollout.traffic import Verdict

PATIENCE_SECONDS = 300.0
"""How long after the end of a soak its counters are waited for. Until then both revisions take room."""


def unread_verdict(
    context: Context, known: Run[SnapshotResult], when: str, end: datetime, *, spoiled: bool = False
) -> Verdict | None:
    """The verdict if counters were not read and are not waited for any longer; None if they are there or waited for.

    ``spoiled``: whether nothing can be judged without them, however long it goes on.

    What is suspended or queued says nothing of a revision, so it is waited for however long that takes.
    """
    queued = known.pending is not None and known.pending.reason is Reason.QUEUED
    patient = (context.now - end).total_seconds() < PATIENCE_SECONDS or context.spec.suspend or queued
    if known.record is not None or (known.failure is None and patient):
        return None
    return wording.unread(when, known.failure or known.pending, spoiled=spoiled)


def restart_verdict(server: ServerView, other: ServerView | None, since: datetime, event: str) -> Verdict | None:
    """The verdict if tritonserver in a pod of the revision was started again since then. ``event``: what was then.

    ``other``: the revision that it is compared with. If that was started again too, the node may have been.
    """
    for pod, at in server.restarts.items():
        if at > since:
            when = f"{(at - since).total_seconds():.0f} s after {event}"
            if other is not None and any(each > since for each in other.restarts.values()):
                return wording.both_restarted(pod, when, other.name)
            return wording.restarted(pod, when, server.trouble)
    return None
