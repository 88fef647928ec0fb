"""The table of which source tells the active Deployment. Pure, with a truth table as its test.

There are three sources, and people may change each of them: the record, which is written before the Service moves; the
Service; and the last status.
"""

from dataclasses import dataclass
from enum import Enum, auto


class RecordState(Enum):
    """Whether a Deployment is recorded as the active one, and still exists."""

    NOTHING = auto()
    """None is recorded, or the last status tells of another one."""
    GONE = auto()
    """The Deployment was deleted, and one of its name may be another one."""
    THERE = auto()


class ServiceTarget(Enum):
    """The Deployment that the Service points to, compared with the recorded one."""

    NOWHERE = auto()
    """There is no Service, or its selector names no Deployment."""
    ASTRAY = auto()
    """The Service points to a Deployment that does not exist."""
    BACK = auto()
    """The Service points to the Deployment that was active before the recorded one, and that exists: it did not move
    yet, or may not."""
    THERE = auto()
    """The Service points to any other Deployment that exists."""


class Teller(Enum):
    """The source that tells which Deployment is active."""

    RECORD = auto()
    SERVICE = auto()
    STATUS = auto()


@dataclass(frozen=True)
class ActiveFacts:
    """All facts that decide which source tells it."""

    recorded: RecordState
    service: ServiceTarget
    status_names_server: bool
    """Whether the Deployment that the last status names exists."""


def teller(facts: ActiveFacts) -> Teller:
    """Return the source that tells which Deployment is active; the first line that applies decides."""
    if facts.recorded is not RecordState.NOTHING and facts.service in (ServiceTarget.NOWHERE, ServiceTarget.ASTRAY):
        return Teller.RECORD
    if facts.recorded is RecordState.THERE and facts.service is not ServiceTarget.BACK:
        return Teller.RECORD
    if facts.service in (ServiceTarget.BACK, ServiceTarget.THERE):
        return Teller.SERVICE
    return Teller.STATUS if facts.status_names_server else Teller.SERVICE
