"""What `plan()` wants at the golden moments, for all suites that look at it; each moment is come by once a process."""

import json
from functools import cache
from typing import Any

from tests.simulation.cluster import Cluster
from tests.states.moments import MOMENTS
from triton_operator.planning.plan import Plan


@cache
def reached(case: str) -> Cluster:
    """The cluster at the case's moment, before the pass; not to be changed."""
    return MOMENTS[case].cluster()


@cache
def planned(case: str) -> Plan:
    """What the pass wants; not to be changed."""
    return reached(case).intent()


def objects(case: str) -> list[dict[str, Any]]:
    """The objects that the pass wants, as the API server is given them; the caller's own."""
    found: list[dict[str, Any]] = json.loads(json.dumps(planned(case).objects))
    return found


def status(case: str) -> dict[str, Any]:
    """The status that the pass writes, as the API server shows it; the caller's own."""
    return planned(case).status.model_dump(mode="json", by_alias=True, exclude_none=True)
