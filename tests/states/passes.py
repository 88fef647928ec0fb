"""What the operator does at the moments that have a name, for all suites that look at it; each pass is made once."""

import json
from dataclasses import dataclass
from functools import cache
from typing import Any

from tests.simulation.api_server import ApiServer
from tests.simulation.cluster import Cluster
from tests.states.moments import MOMENTS, REPORTS
from triton_operator.planning.plan import Event, Plan
from triton_operator.runtime.queue import Result


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


@dataclass(frozen=True)
class Report:
    """What a pass did that the Reconciler reports itself; not to be changed."""

    spec: dict[str, Any]
    writes: tuple[str, ...]
    """In their order, each as "VERB KIND NAME"."""
    events: tuple[Event, ...]
    result: Result
    status: dict[str, Any]


@cache
def reported(case: str) -> Report:
    """What the pass of a moment in REPORTS did."""
    cluster, writes = REPORTS[case].cluster(), list[str]()
    told = len(cluster.events)

    def look(verb: str, body: dict[str, Any]) -> None:
        writes.append(f"{verb} {body['kind']} {body['metadata']['name']}")

    result = cluster.report(ApiServer(cluster, look, cluster.refuses))
    return Report(cluster.spec, tuple(writes), tuple(cluster.events[told:]), result, cluster.status)
