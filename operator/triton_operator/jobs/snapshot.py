"""The Jobs that read the counters of servers."""

from triton_converters.contract.results import SnapshotResult
from triton_converters.contract.upkeep_requests import ServerPod, SnapshotRequest
from triton_operator import names
from triton_operator.context import Context
from triton_operator.jobs.run import Run, run
from triton_operator.observed.record import Record
from triton_operator.observed.server import ServerView
from triton_operator.resources.server import METRICS_PORT
from triton_operator.resources.work import Plain, Work

STAGE = "snapshot"
"""Part of the counters' keys, and the Job's stage."""
DEADLINE_SECONDS = 120
"""How long a Job may read counters: most of it is the start of its pod; the counters of 64 pods take seconds."""
MOST_PODS = 32
"""The most pods of a revision whose counters are read: a termination message has room for so many of two revisions."""


def key(uid: str, moment: str, since: str) -> str:
    """Return the key of the counters of a Deployment at a moment.

    It does not cover the pods, because the counters of all pods of that moment are asked for.
    ``uid``: the Deployment's. ``since``: when the soak or the canary began that the counters are for.
    """
    return names.digest([STAGE, uid, since, moment], 16)


def counters(
    context: Context, server: ServerView, moment: str, since: str, previous: ServerView | None = None
) -> Run[SnapshotResult]:
    """Run the Job that reads the counters of a revision's pods, and those of ``previous`` if it is given."""
    name = key(server.uid, moment, since)
    model = context.served_name if server.name == context.active_server else context.spec.served_name
    request = SnapshotRequest(name, model, _pods(server), _pods(previous) if previous else ())
    work = Work[SnapshotRequest, SnapshotResult](
        stage=STAGE,
        request=request,
        deadline_seconds=DEADLINE_SECONDS,
        # No result that is kept depends on it, and the image that the object is pinned to may not know the stage.
        shape=Plain(image=context.settings.converter_image),
    )
    # A pod that is not seen yet would seem to have been started later.
    return run(context, work, start=0 < server.ready_pods <= len(server.addresses))


def recorded_counters(record: Record) -> SnapshotResult:
    """Return the counters that a record holds."""
    result = record.outcome.result
    assert isinstance(result, SnapshotResult)
    return result


def _pods(server: ServerView) -> tuple[ServerPod, ...]:
    return tuple(
        ServerPod(name, f"[{ip}]:{METRICS_PORT}" if ":" in ip else f"{ip}:{METRICS_PORT}")
        for name, ip in sorted(server.addresses.items())[:MOST_PODS]
    )
