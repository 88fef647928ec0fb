"""The Job that looks which version of a followed source its server has, and when the next one is due."""

from datetime import datetime, timedelta

from triton_converters.contract.look import LookRequest, LookResult
from triton_operator import names
from triton_operator.context import Context
from triton_operator.jobs.run import Run, run
from triton_operator.jobs.source import download, followed, look_request
from triton_operator.jobs.transient import OF_ANSWERS, TRANSIENT
from triton_operator.observed.following import Following
from triton_operator.resources.work import Work

STAGE = "look"
"""Part of a look's key, and the Job's stage."""
DEADLINE_SECONDS = 300
"""How long a look may take, from when a node takes its pod: the shortest interval. To list a bucket of 100,000 objects
takes about a minute."""
MOST_LOOKS = 8
"""Looks at the same time in a namespace, of all its objects: as many as an operator works on objects at once
(`controller.WORKERS`), so that after an outage, when all are due, looks take no more of the cluster than it does."""
SPREAD = 0.1
"""Share of the interval by which a look may be late, so that objects that were made together do not go on to look
together."""


def look(context: Context) -> Run[LookResult] | None:
    """Run the Job of the look that is due; None: none is."""
    due = due_at(context, followed(context))
    if due is None or due > context.now:
        return None
    has_room = context.observed.looks_beside < MOST_LOOKS
    return run(context, look_work(context), start=has_room, patience=DEADLINE_SECONDS)


def look_work(context: Context) -> Work[LookRequest, LookResult]:
    """Return the work of the next look.

    Its key covers the look before it, so it is another Job each time. A request that comes while it looks waits for the
    next one: requests that come faster than looks end would let none end.
    """
    known = followed(context)
    key = names.digest([STAGE, known.source, known.looked_at, context.triton_deployment.retry], 16)
    return Work(
        stage=STAGE,
        request=LookRequest(key, look_request(context)),
        deadline_seconds=DEADLINE_SECONDS,
        shape=download(context.spec.source),
    )


def answered_request(context: Context) -> str:
    """Return `TritonDeployment.requested_at` as the Job of the look was made with; empty: there was none."""
    key = look_work(context).key
    bodies = (each.body for each in context.observed.jobs.values() if (each.stage, each.key) == (STAGE, key))
    annotations = (each["metadata"].get("annotations", {}) for each in bodies)
    return next((each.get(names.REQUEST_ANNOTATION, "") for each in annotations), "")


def due_at(context: Context, known: Following) -> datetime | None:
    """Return when the next look is due; None: the source is not followed. ``known``: what is known of it.

    Until something of the source was taken, a look that failed is repeated as a download is.
    """
    interval = context.spec.source.interval_seconds
    if interval is None:
        return None
    asked = (
        (context.triton_deployment.requested_at, known.request),
        (context.triton_deployment.retry, known.retry),
    )
    if not known.looked_at or any(now not in ("", then) for now, then in asked):
        return context.now
    looked_at = datetime.fromisoformat(known.looked_at)
    if looked_at > context.now:
        # A clock that was ahead wrote it.
        return context.now
    if known.failed is not None and known.taken is None:
        failed_for = (looked_at - datetime.fromisoformat(known.failed.since)).total_seconds()
        pauses = TRANSIENT.get(known.failed.reason, OF_ANSWERS)
        return looked_at + timedelta(seconds=min(max(failed_for, pauses.shortest), pauses.longest, interval))
    share = int(names.digest([context.triton_deployment.uid, known.looked_at], 8), 16) / 16**8
    return looked_at + timedelta(seconds=interval * (1 + SPREAD * share))
