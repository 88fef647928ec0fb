"""Who tells which Deployment is active: facts in, one answer out. Pure, with a truth table as its test.

Three things tell it, and people may change each of them: the record, which is written before the Service moves; the
Service; and the last status. An older operator writes no record.
"""

from dataclasses import dataclass
from enum import Enum, auto


class Recorded(Enum):
    """What is there of the Deployment that is recorded as the active one."""

    NOTHING = auto()
    """None is recorded, or the last status tells of another one."""
    GONE = auto()
    """The Deployment was deleted, and one of its name may be another one."""
    THERE = auto()


class Leads(Enum):
    """Where the Service leads."""

    NOWHERE = auto()
    """There is no Service, or its selector names no Deployment."""
    ASTRAY = auto()
    """To a Deployment that is not there."""
    BACK = auto()
    """To the one that was active before the recorded one, which is there: the Service did not move yet, or may not."""
    THERE = auto()
    """To any other Deployment that is there."""


class Teller(Enum):
    """What tells which Deployment is active."""

    RECORD = auto()
    SERVICE = auto()
    STATUS = auto()


@dataclass(frozen=True)
class ActiveFacts:
    """Everything that decides who tells it."""

    recorded: Recorded
    service: Leads
    told: bool
    """Whether a Deployment is there of which the last status tells."""


def teller(facts: ActiveFacts) -> Teller:
    """Return who tells which Deployment is active; the first line that applies decides."""
    if facts.recorded is not Recorded.NOTHING and facts.service in (Leads.NOWHERE, Leads.ASTRAY):
        return Teller.RECORD
    if facts.recorded is Recorded.THERE and facts.service is not Leads.BACK:
        return Teller.RECORD
    if facts.service in (Leads.BACK, Leads.THERE):
        return Teller.SERVICE
    return Teller.STATUS if facts.told else Teller.SERVICE
