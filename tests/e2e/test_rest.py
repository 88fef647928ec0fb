"""Nothing is written where nothing changes. Runs last: the object came to rest while the other tests ran."""

import time
from pathlib import Path

import pytest

from hack.devcluster.paths import cluster_paths
from tests.e2e.audit import Write, writes
from tests.e2e.happy import Happy
from tests.e2e.suite import Suite

REST_SECONDS = 180.0
SETTLING_SECONDS = 10.0
"""After Ready the last events are recorded and the last pod's status settles."""
OPERATOR = "system:serviceaccount:triton-operator:triton-operator"


@pytest.fixture(scope="module")
def rest(happy_object: Happy) -> tuple[float, float]:
    """Three minutes after the object came to rest, from and until."""
    since = happy_object.ready.time + SETTLING_SECONDS
    time.sleep(max(0.0, since + REST_SECONDS - time.time()))
    return since, since + REST_SECONDS


@pytest.fixture(scope="module")
def audit_log() -> Path:
    """Of our cluster's API server."""
    return cluster_paths().audit_log


def test_the_operator_writes_nothing_for_three_minutes(
    happy_object: Happy, rest: tuple[float, float], audit_log: Path, suite: Suite
) -> None:
    """Of any kind and anywhere, but for its Lease and the objects of other tests, which live in the busy namespace."""
    own = [each for each in writes(audit_log, *rest) if each.user == OPERATOR and each.resource != "leases"]
    assert [each for each in own if each.namespace != suite.busy.namespace] == []
    earlier = [each for each in writes(audit_log, 0, rest[0]) if each.user == OPERATOR]
    assert any(each.resource == "tritondeployments/status" for each in earlier), "the log knows the operator's writes"


def test_nobody_writes_to_the_object_or_its_children(
    happy_object: Happy, rest: tuple[float, float], audit_log: Path, suite: Suite
) -> None:
    """Neither do Kubernetes' own controllers: nothing of it flaps.

    An Event is written about an object and not to it: a kubelet that is short of CPU tells of a probe that was late.
    """
    others = {"events", "pods/exec"}
    own: list[Write] = [
        each
        for each in writes(audit_log, *rest)
        if each.namespace == suite.quiet.namespace and each.name.startswith("happy") and each.resource not in others
    ]
    assert own == []


def test_it_stays_ready(happy_object: Happy, rest: tuple[float, float]) -> None:
    seen = happy_object.applied.watch.history(happy_object.applied.kubectl.namespace, "happy")
    during = [sighting for sighting in seen if rest[0] <= sighting.time <= rest[1]]
    assert during == []
    assert happy_object.applied.state.holds("Ready")
