"""Which Deployment is active, and the table of which source tells it. Pure, with a truth table as its test.

There are three sources, and people may change each of them: the record, which is written before the Service moves; the
Service; and the last status.
"""

from dataclasses import dataclass
from enum import Enum, auto

from triton_operator import names
from triton_operator.api.status import ServingStatus
from triton_operator.observed.snapshot import Observed


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


def active_server(owner_name: str, last: ServingStatus | None, observed: Observed) -> str | None:
    """Return the name of the active revision's Deployment, which may have been deleted; None: no revision is active.

    ``last``: the part of the last status about the active revision. Its selector names the Deployment.
    """
    record, routed = observed.active_record, observed.routed_server
    selector = last.selector if last is not None else ""
    told = next((each for each in observed.servers if names.selector(owner_name, each) == selector), None)
    recorded, service = RecordState.NOTHING, ServiceTarget.THERE
    if record is not None and record.has_server and names.selector(owner_name, record.server) == selector:
        view = observed.servers.get(record.server)
        recorded = RecordState.THERE if view is not None and view.uid == record.uid else RecordState.GONE
    if routed not in observed.servers:
        service = ServiceTarget.NOWHERE if routed is None else ServiceTarget.ASTRAY
    elif record is not None and routed == record.previous:
        service = ServiceTarget.BACK
    found = teller(ActiveFacts(recorded, service, told is not None))
    by_teller = {
        Teller.RECORD: record.server if record is not None else None,
        Teller.SERVICE: routed,
        Teller.STATUS: told,
    }
    return by_teller[found]


def teller(facts: ActiveFacts) -> Teller:
    """Return the source that tells which Deployment is active; the first line that applies decides."""
    if facts.recorded is not RecordState.NOTHING and facts.service in (ServiceTarget.NOWHERE, ServiceTarget.ASTRAY):
        return Teller.RECORD
    if facts.recorded is RecordState.THERE and facts.service is not ServiceTarget.BACK:
        return Teller.RECORD
    if facts.service in (ServiceTarget.BACK, ServiceTarget.THERE):
        return Teller.SERVICE
    return Teller.STATUS if facts.status_names_server else Teller.SERVICE
