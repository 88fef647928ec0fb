"""What the operator asked the API server for in the whole suite, against what its role grants. Runs last."""

import pytest

from hack.devcluster.control_plane import OPERATOR
from hack.devcluster.paths import cluster_paths
from tests.e2e.audit import Requests, Right, granted, requests
from tests.e2e.kubectl import Kubectl


@pytest.fixture(scope="module")
def asked(unlabelled: None, began: float) -> Requests:
    """All requests of the operator since the suite began, with those that only an accident makes it send."""
    return requests(cluster_paths().audit_log, OPERATOR, began)


def test_every_right_was_used(asked: Requests, cluster: Kubectl) -> None:
    """A right that nothing needs is one that a thief of the token has for nothing."""
    rights = granted(cluster.get("clusterrole", "triton-operator")["rules"])
    assert {right.verb for right in asked.used} >= {"list", "watch"}, "reads are audited: start the cluster anew"
    assert sorted(rights - asked.used) == []


def test_no_request_was_refused_by_the_rules(asked: Requests) -> None:
    assert sorted(asked.refused) == []


def test_nothing_was_used_that_the_role_does_not_grant(asked: Requests, cluster: Kubectl) -> None:
    """But for the Lease, which is in the role of the operator's own namespace."""
    rights = granted(cluster.get("clusterrole", "triton-operator")["rules"])
    leases = {Right("coordination.k8s.io", "leases", verb) for verb in ("create", "get", "update")}
    assert sorted(asked.used - rights - leases) == []
