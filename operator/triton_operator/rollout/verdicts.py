"""The verdict on a revision on trial: by restarts, and by its requests, compared with the other revision's. Pure.

A Job reads the counters of both revisions when a soak, or a step of a canary, begins, and another one at its end. A
canary compares what both answered in between. A soak's previous revision gets no requests after the move, so what it
counted until then is taken, less what it had counted when it became active itself: the requests of its measurement.
"""

from collections.abc import Sequence
from datetime import datetime
from math import inf

from triton_converters.contract.figures import as_written, telling
from triton_converters.contract.reasons import Reason
from triton_converters.contract.records import record_name
from triton_converters.contract.results import Counters, SnapshotResult
from triton_operator.api.serving import Soak
from triton_operator.context import Context
from triton_operator.effects import Effects
from triton_operator.jobs.run import Run
from triton_operator.jobs.snapshot import STAGE, counters, key, recorded_counters
from triton_operator.observed.promotion import Promotion
from triton_operator.observed.server import ServerView
from triton_operator.observed.trouble import Trouble
from triton_operator.rollout.traffic import SoakVerdict, Traffic, total, traffic_between
from triton_operator.rollout.trial_times import due_time

PATIENCE_SECONDS = 300.0
"""Seconds for which counters are waited for after the end of a soak or a step, from when the Job that reads them may
run.

That takes seconds once its node has the image. Until it has, both revisions take up their nodes.
"""

FIRST = "first"
"""Name of the moment from which requests to an active revision count."""


def move_record(context: Context, server: str | None) -> Promotion | None:
    """Return the record of the Service's move to a Deployment; None: there is none, or it is a canary's record.

    The active one may have been deleted, and made again, since it was recorded.
    """
    observed = context.observed
    record = context.observed.promotions.get(server or "")
    known = (observed.servers.get(server or ""), observed.active_record if server == context.active_server else None)
    is_its = record is not None and record.uid in [each.uid for each in known if each is not None]
    return record if is_its and record is not None and not record.by_route else None


def own_reading(context: Context, active: ServerView) -> Run[SnapshotResult]:
    """Run the Job that reads the counters of the active revision, from which its requests count."""
    return counters(context, active, FIRST, _own_since(context, active))


def _own_since(context: Context, server: ServerView) -> str:
    record = move_record(context, server.name)
    return record.since if record is not None else ""


def first_reading(context: Context, tried: ServerView, other: ServerView, record: Promotion) -> Run[SnapshotResult]:
    """Run the Job that reads the counters from which the requests of a soak or a step count."""
    return counters(context, tried, f"canary {len(record.steps)}" if record.by_route else FIRST, record.since, other)


def traffic_verdict(
    context: Context, tried: ServerView, other: ServerView, record: Promotion, first: Run[SnapshotResult]
) -> tuple[SoakVerdict | None, Effects, float]:
    """Return the verdict by the counters, what it needs, and the seconds for which counters are still waited for.

    The verdict is None until then; the seconds are infinite while nothing has run that could read the counters.
    ``first``: the run of `first_reading`.
    """
    records = context.observed.records
    own, move = (
        record_name(STAGE, key(server.uid, FIRST, since))
        for server, since in ((other, _own_since(context, other)), (tried, record.at))
    )
    effects = Effects(needed=frozenset({own, move}))
    if context.spec.suspend or context.now < due_time(context, record):
        return None, effects, inf
    if first.record is None:
        moment = "at the start of the step" if record.by_route else "when the revision became active"
        return _unread(context, first, moment, effects, spoiled=True)
    # Each time that a held trial is judged has a reading of its own.
    moment = f"canary {len(record.steps) + 1}" if record.by_route else "last"
    moment += f" {record.again_at}" if record.again_at else ""
    last = counters(context, tried, moment, record.since, other if record.by_route else None)
    effects += last.effects
    if last.record is None:
        return _unread(context, last, f"at the end of the {'step' if record.by_route else 'soak'}", effects)
    start, end = recorded_counters(first.record), recorded_counters(last.record)
    own_time: tuple[Sequence[Counters], Sequence[Counters]] | None = (start.previous, end.previous)
    if not record.by_route:
        # At the move, because later counters would be lost with a restart of its servers.
        at_move = recorded_counters(records.get(move, first.record)).previous
        own_time = (recorded_counters(records[own]).active, at_move) if own in records else None
    previous = total(traffic_between(*own_time).values()) if own_time is not None else None
    bounds = context.spec.serving.soak
    when = "at the same time" if record.by_route else "before"
    assert bounds is not None
    return judge(bounds, traffic_between(start.active, end.active), previous, when), effects, inf


def _unread(
    context: Context, reading: Run[SnapshotResult], moment: str, effects: Effects, *, spoiled: bool = False
) -> tuple[SoakVerdict | None, Effects, float]:
    """Return what `traffic_verdict` does if counters were not read: no verdict while they are waited for.

    A Job that is suspended or queued, and an operator that was away, say nothing about the revision. ``moment``: when
    they should have been read, in words. ``spoiled``: whether nothing can be judged without them.
    """
    since = reading.runs_since
    patience = inf if since is None else PATIENCE_SECONDS - (context.now - since).total_seconds()
    if reading.failure is None and patience > 0:
        return None, effects, patience
    trouble = reading.failure or reading.pending
    message = f"the servers' counters {moment} were not read{_cause(trouble)}"
    return SoakVerdict(Reason.SOAK_INCONCLUSIVE, message, spoiled), effects, inf


def restart_verdict(tried: ServerView, other: ServerView | None, record: Promotion) -> SoakVerdict | None:
    """Return the verdict if tritonserver in a pod of the revision was started again since requests count; else None.

    ``other``: the revision that it is compared with. If servers of both were started again, it may be their node.
    """
    since = datetime.fromisoformat(record.since)
    for pod, restarted_at in tried.restarts.items():
        if restarted_at > since:
            seconds = (restarted_at - since).total_seconds()
            event = "the canary began" if record.by_route else "the revision became active"
            ended = f"tritonserver in pod {pod} ended {seconds:.0f} s after {event}"
            if other is not None and any(each > since for each in other.restarts.values()):
                message = f"{ended}, and so did one of Deployment {other.name}; look for what became of the node"
                return SoakVerdict(Reason.SOAK_INCONCLUSIVE, message, spoiled=True)
            return SoakVerdict(Reason.SOAK_FAILED, f"{ended}, and was started again{_cause(tried.trouble)}")
    return None


def judge(bounds: Soak, active: dict[str, Traffic], previous: Traffic | None, when: str = "before") -> SoakVerdict:
    """Return the verdict on the new revision: compare its pods with the whole of the previous revision.

    ``active``: the new revision's requests by pod. ``previous``: those of all pods of the previous revision; None: they
    are not known. ``when``: when the previous revision answered them, in words.

    Each figure is computed for all pods together, and for each pod that answered at least ``minRequests`` requests. The
    worst one counts.
    """
    all_pods, min_requests = total(active.values()), bounds.min_requests
    if all_pods.requests < min_requests:
        message = f"it answered {all_pods.requests} requests, and minRequests is {min_requests}"
        return SoakVerdict(Reason.SOAK_INCONCLUSIVE, message)
    judged_traffic = {f"pod {name}": each for name, each in active.items() if each.requests >= min_requests}
    judged_traffic["all pods together"] = all_pods
    pods, most_failing = max(judged_traffic.items(), key=lambda each: each[1].failed_percent)
    failed_share = _percent(most_failing.failed_percent, bounds.max_error_percent)
    errors = f"{failed_share} of {most_failing.requests} requests failed in {pods}"
    if most_failing.failed_percent > bounds.max_error_percent:
        message = f"{errors}, and maxErrorPercent is {as_written(bounds.max_error_percent)}; {_words(previous)}"
        return SoakVerdict(Reason.SOAK_FAILED, message)
    if previous is None or previous.succeeded < min_requests or previous.latency <= 0:
        message = f"{errors}; the mean latency is not compared: {_words(previous)}"
        return SoakVerdict(Reason.SOAK_INCONCLUSIVE, message)
    pods, slowest = max(judged_traffic.items(), key=lambda each: each[1].latency)
    slower_percent = 100 * (slowest.latency / previous.latency - 1)
    latency = f"the mean latency is {_milliseconds(slowest)} in {pods}, and was {_milliseconds(previous)} {when}"
    most = bounds.max_latency_percent
    if slower_percent > most:
        message = f"{latency}: {_percent(slower_percent, most)} more, and maxLatencyPercent is {most}"
        return SoakVerdict(Reason.SOAK_FAILED, message)
    return SoakVerdict(Reason.SOAK_PASSED, f"{errors}; {latency}")


def _cause(trouble: Trouble | None) -> str:
    return f": {trouble.message}" if trouble is not None else ""


def _words(previous: Traffic | None) -> str:
    if previous is None:
        return "the requests to the previous revision are not known"
    failed_share = f"{_percent(previous.failed_percent)} failed"
    return f"the previous revision answered {previous.requests} requests, of which {failed_share}"


def _percent(value: float, bound: float = inf) -> str:
    (figure,) = telling([value], lambda each: each > bound, 3)
    return f"{figure} %"


def _milliseconds(traffic: Traffic) -> str:
    return f"{traffic.latency / 1000:.3g} ms"
