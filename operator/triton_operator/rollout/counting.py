"""Verdicts of soaks and canaries that the reading of counters decides: one that failed, or found a restart. Pure."""

from dataclasses import replace
from datetime import datetime
from math import inf

from triton_converters.contract.results import SnapshotResult
from triton_operator.context import Context
from triton_operator.jobs.run import Run
from triton_operator.observed.promotion import Promotion
from triton_operator.observed.server import ServerView
from triton_operator.rollout import wording
from triton_operator.rollout.inconclusive import LOOK_SECONDS
from triton_operator.rollout.traffic import Verdict

PATIENCE_SECONDS = 300.0
"""Seconds for which counters are waited for after the end of a soak or a step, from when the Job that reads them may
run.

That takes seconds once its node has the image. Until it has, both revisions take up their nodes.
"""

LONGEST_GAP_SECONDS = 60.0
"""Most seconds between two looks at a revision that is down, which are three pauses.

After more, the operator was away, and nobody knows whether a pod was ready meanwhile.
"""


def unread_verdict(
    context: Context,
    reading: Run[SnapshotResult],
    moment: str,
    *,
    spoiled: bool = False,
) -> Verdict | None:
    """Return the verdict if counters were not read and are not waited for any more; None: they were, or still are.

    ``moment``: when they should have been read, in words. ``spoiled``: whether nothing can be judged without them,
    however long the rollout goes on.
    """
    is_patient = context.spec.suspend or patience_seconds(context, reading) > 0
    if reading.record is not None or (reading.failure is None and is_patient):
        return None
    return wording.unread_verdict(moment, reading.failure or reading.pending, spoiled=spoiled)


def patience_seconds(context: Context, reading: Run[SnapshotResult]) -> float:
    """Return the seconds for which counters are still waited for; infinite: nothing has run that could read them.

    A Job that is suspended or queued, and an operator that was away, say nothing about the revision.
    """
    since = reading.runs_since
    return inf if since is None else PATIENCE_SECONDS - (context.now - since).total_seconds()


def with_outage(context: Context, promotion: Promotion, active: ServerView) -> Promotion:
    """Return the record of a soak or a canary with since when no pod of the active revision answers.

    It is written only once a pause, because each write of it wakes the next pass.
    """
    if active.answers:
        return replace(promotion, down_since="", down_seen="")
    now = context.now.isoformat()
    if not promotion.down_since or not promotion.down_seen:
        return replace(promotion, down_since=now, down_seen=now)
    unseen = (context.now - datetime.fromisoformat(promotion.down_seen)).total_seconds()
    if unseen > LONGEST_GAP_SECONDS:
        return replace(promotion, down_since=now, down_seen=now)
    return replace(promotion, down_seen=now) if unseen >= LOOK_SECONDS else promotion


def is_down_for_long(context: Context, promotion: Promotion) -> bool:
    """Whether the active revision has been down for so long that another one that answers is better."""
    since, deadline = promotion.down_since, context.spec.serving.progress_deadline_seconds
    return bool(since) and (context.now - datetime.fromisoformat(since)).total_seconds() > deadline


def outage_verdict(
    context: Context, promotion: Promotion, active: ServerView, previous: ServerView | None
) -> Verdict | None:
    """Return the verdict on a revision that has been down for long while the previous one answers; else None."""
    if previous is None or not previous.answers or not is_down_for_long(context, promotion):
        return None
    return wording.outage_verdict(context.spec.serving.progress_deadline_seconds, active.trouble)


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
