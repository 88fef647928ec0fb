"""Which failures of Jobs pass by themselves, and when the next try is due. Pure.

Nobody has to change the spec for them: a server comes back, another object's files go from the claim, a node is no
longer short of disk. So none of them stops an object for good; the pause between two tries grows with the time that the
failure has lasted, which is recorded with it.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from triton_converters.contract.reasons import Reason
from triton_operator.observed.failures import Failure

RETRY_SECONDS = 15.0
"""The shortest pause in seconds: GitOps applies everything at once, so what is missing often exists a little later."""
ANSWER_SECONDS = 300.0
"""The longest pause in seconds after a failure of a server outside the cluster.

One request costs that server little, and a person who has repaired it watches the object for about five minutes.
"""
ROOM_SECONDS = 3600.0
"""The longest pause in seconds after a failure of disks or nodes: each try may send a whole source again, or take a
GPU."""

PASSING: Mapping[Reason, float] = {
    Reason.SOURCE_NOT_FOUND: ANSWER_SECONDS,
    Reason.SOURCE_UNREACHABLE: ANSWER_SECONDS,
    Reason.SOURCE_TRUNCATED: ANSWER_SECONDS,
    Reason.SOURCE_CHANGED: ANSWER_SECONDS,
    Reason.INDEX_UNREACHABLE: ANSWER_SECONDS,
    Reason.SERVER_UNREACHABLE: ANSWER_SECONDS,
    Reason.IMAGE_PULL_FAILED: ANSWER_SECONDS,
    Reason.STORAGE_FULL: ROOM_SECONDS,
    Reason.EVICTED: ROOM_SECONDS,
    Reason.NODE_NOT_READY: ROOM_SECONDS,
    Reason.UNSCHEDULABLE: ROOM_SECONDS,
}
"""The failures that pass by themselves, of every stage, and the longest pause between two tries in seconds."""


def with_times(failure: Failure, previous: Failure | None, now: datetime) -> Failure:
    """Return the failure as it is recorded: with its times, if it passes by itself.

    ``previous``: the last recorded failure of the same work; None: it did not fail before.
    """
    if failure.reason not in PASSING or failure.at:
        return failure
    recorded_at = now.isoformat()
    return replace(failure, since=(previous.since if previous is not None else "") or recorded_at, at=recorded_at)


def failed_seconds(failure: Failure, now: datetime) -> float:
    """Return the seconds for which the work has failed, over all tries; the failure has its times."""
    return (now - datetime.fromisoformat(failure.since)).total_seconds()


def seconds_until_due(failure: Failure, now: datetime) -> float:
    """Return the seconds until the next try, 0 or less once it is due; the failure has its times.

    The pause is as long as the work had been failing at its last try, within the bounds. So the time of failing doubles
    from one try to the next.
    """
    failed_at = datetime.fromisoformat(failure.at)
    pause = min(max(failed_seconds(failure, failed_at), RETRY_SECONDS), PASSING[failure.reason])
    return pause - (now - failed_at).total_seconds()
