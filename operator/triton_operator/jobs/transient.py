"""Which failures of Jobs pass by themselves, and when the next try is due. Pure.

Nobody has to change the spec for them: a server comes back, another object's files go from the claim, a node is no
longer short of disk, somebody corrects a Secret. So none of them stops an object for good; the pause between two tries
grows with the time that the failure has lasted, which is recorded with it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from triton_converters.contract.reason_kinds import Kind
from triton_converters.contract.reasons import Reason
from triton_operator.observed.failures import Failure


@dataclass(frozen=True)
class Pauses:
    """The bounds of the pause between two tries, in seconds."""

    shortest: float
    longest: float


RETRY_SECONDS = 15.0
"""The shortest pause in seconds: GitOps applies everything at once, so what is missing often exists a little later."""
OF_ANSWERS = Pauses(RETRY_SECONDS, 300.0)
"""After a failure of a server outside the cluster. One request costs that server little, and a person who has repaired
it watches the object for about five minutes."""
OF_ROOM = Pauses(RETRY_SECONDS, 3600.0)
"""After a failure of disks or nodes: each try may send a whole source again, or take a GPU."""
OF_RIGHTS = Pauses(300.0, 3600.0)
"""After a server has refused credentials, or has shown an invalid certificate. The operator may not read Secrets, so it
does not see that somebody corrects one; and a server may lock an account that it refuses often."""

_PAUSES = {Kind.ANSWERS: OF_ANSWERS, Kind.ROOM: OF_ROOM, Kind.RIGHTS: OF_RIGHTS}
TRANSIENT: Mapping[Reason, Pauses] = {each: _PAUSES[each.kind] for each in Reason if each.kind in _PAUSES}
"""The failures that pass by themselves, of every stage, and the pauses between two tries."""


def with_times(failure: Failure, previous: Failure | None, now: datetime) -> Failure:
    """Return the failure as it is recorded: with its times, if it passes by itself.

    ``previous``: the last recorded failure of the same work; None: it did not fail before.
    """
    if failure.reason not in TRANSIENT or failure.at:
        return failure
    recorded_at = now.isoformat()
    return replace(failure, since=(previous.since if previous is not None else "") or recorded_at, at=recorded_at)


def awaits_input(failure: Failure) -> bool:
    """Whether all results were forgotten after the failure, so that earlier Jobs publish anew what is missing.

    The record then has one time, since when it is missing.
    """
    return failure.reason is Reason.INPUT_MISSING and bool(failure.at) and failure.at == failure.since


def failed_seconds(failure: Failure, now: datetime) -> float:
    """Return the seconds for which the work has failed, over all tries; the failure has its times."""
    return (now - datetime.fromisoformat(failure.since)).total_seconds()


def seconds_until_due(failure: Failure, now: datetime) -> float:
    """Return the seconds until the next try, 0 or less once it is due; the failure has its times.

    The pause is as long as the work had been failing at its last try, within the bounds. So the time of failing doubles
    from one try to the next.
    """
    failed_at = datetime.fromisoformat(failure.at)
    pauses = TRANSIENT[failure.reason]
    pause = min(max(failed_seconds(failure, failed_at), pauses.shortest), pauses.longest)
    left = pause - (now - failed_at).total_seconds()
    # A clock that was ahead wrote it.
    return left if left <= pause else 0.0
