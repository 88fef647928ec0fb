"""What the operator asked the API server for in the whole suite, against what its role grants. Runs last."""

from functools import partial
from pathlib import Path

import pytest

from hack.devcluster.control_plane import OPERATOR
from hack.devcluster.paths import cluster_paths
from tests.e2e.audit import Requests, Right, granted, requests
from tests.e2e.kubectl import Kubectl, Object
from tests.e2e.last_words import eventually
from tests.e2e.suite import Suite

CHILDREN = "jobs,deployments,services,configmaps,persistentvolumeclaims,networkpolicies,poddisruptionbudgets"
NAME = "unlabelled"
NO_SUCH_PRODUCT = "NVIDIA-None"


@pytest.fixture(scope="module")
def asked(suite: Suite, lanes: object, began: float) -> Requests:
    """All requests of the operator since the suite began, with those that only an accident makes it send.

    An object that lost its label is not watched any more, and in the way of the one that the operator then misses.
    """
    audit_log: Path = cluster_paths().audit_log
    if suite.busy.kubeconfig != cluster_paths().kubeconfig:
        pytest.skip("the audit log of another cluster cannot be read from here")
    applied = suite.new(NAME)
    # Of several servers that may run on different nodes, there is a PodDisruptionBudget.
    shared = {"size": "64Mi", "storageClassName": "local-path-shared", "accessModes": ["ReadWriteMany"]}
    claim = {"repository": {"claimName": None, "claimTemplate": shared}}
    generation = applied.apply({**claim, "serving": {"replicas": 2}})
    applied.wait("its first Job", lambda state: bool(applied.jobs()), generation=generation)
    unlabel(suite.busy)
    applied.wait_ready(generation)
    unlabel(suite.busy)
    for kind in ("deployments", "poddisruptionbudgets"):
        eventually(f"{kind} with their label again", partial(labelled, suite.busy, kind))
    # Without nodes of that product, the candidate of one format is skipped; nodes are listed for it.
    spec = {**claim, "gpu": {"product": NO_SUCH_PRODUCT}}
    candidates = [{"name": "trt-fp16", "format": "trt", "precision": "fp16"}]
    generation = applied.apply({**spec, "model": {"candidates": candidates}})
    applied.wait("no node for the engine", lambda state: state.holds("Stalled"), generation=generation)
    eventually("an end of the budget", lambda: None if labelled(suite.busy, "poddisruptionbudgets") else {})
    return requests(audit_log, OPERATOR, began)


def labelled(kubectl: Kubectl, kind: str) -> Object | None:
    """The one object's child of that kind, if the operator watches it."""
    selector = f"--selector=triton-operator.dev/deployment={NAME},app.kubernetes.io/managed-by=triton-operator"
    return next(iter(kubectl.items(kind, selector)), None)


def unlabel(kubectl: Kubectl) -> None:
    """Take the label by which the operator watches its objects from those of the one object."""
    selector = f"--selector=triton-operator.dev/deployment={NAME}"
    kubectl.run("label", CHILDREN, selector, "app.kubernetes.io/managed-by-")


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
