"""Measurements exclude each other on a node, and the wait for the node is neither a failure nor a warning."""

from datetime import timedelta
from typing import Any

import pytest

from tests.simulation.answers import GOOD, Fate, when
from tests.simulation.cluster import Cluster
from tests.simulation.deployments import a_spec
from tests.simulation.test_search import searching
from triton_operator import names

Body = dict[str, Any]
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
TAKEN = "0/3 nodes are available: 1 node(s) didn't match pod anti-affinity rules, 2 Insufficient cpu."
MEASURES = {"key": "triton-operator.dev/stage", "operator": "In", "values": ["profile", "search", "measure"]}
ANOTHER = {"key": "triton-operator.dev/deployment", "operator": "NotIn", "values": ["digits"]}
ELSEWHERE = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["vision"]}
NO_OTHER = [
    {"labelSelector": {"matchExpressions": [MEASURES, ANOTHER]}, "topologyKey": "kubernetes.io/hostname"},
    {
        "labelSelector": {"matchExpressions": [MEASURES]},
        "namespaceSelector": {"matchExpressions": [ELSEWHERE]},
        "topologyKey": "kubernetes.io/hostname",
    },
]
"""Of other objects in the namespace, and of all in other namespaces."""


def a_wait(message: str = TAKEN) -> Fate:
    """The scheduler finds no node for the pod."""
    refused = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    return Fate(pending={"phase": "Pending", "conditions": [refused]})


def a_missing_image() -> Fate:
    """The container that looks at the revision has ended, and the server's image is not to be had."""
    over = {"name": "revision", "state": {"terminated": {"exitCode": 0}}}
    state = {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}
    return Fate(pending={"phase": "Pending", "initContainerStatuses": [over, {"name": "tritonserver", "state": state}]})


def apart(pod: Body) -> list[Body]:
    """The terms that keep a pod from a node."""
    found: list[Body] = pod.get("affinity", {}).get("podAntiAffinity", {}).get(REQUIRED, [])
    return found


def test_only_what_measures_demands_a_node_without_another_measurement() -> None:
    cluster, found = Cluster(a_spec(**searching())), {}
    for _ in range(200):
        for each in cluster.intent().objects:
            if "template" in each.get("spec", {}):
                labels = each["spec"]["template"]["metadata"]["labels"]
                found[labels[names.COMPONENT_LABEL]] = apart(each["spec"]["template"]["spec"])
        cluster.run(1)
    assert cluster.condition("Ready")["status"] == "True"
    measuring = {stage for stage, terms in found.items() if terms == NO_OTHER}
    assert measuring == {"profile", "search", "measure"}
    assert all(found[stage] == [] for stage in found.keys() - measuring)
    assert found.keys() >= {"reference", "convert", "server"}


def test_the_users_own_anti_affinity_stays() -> None:
    own = {"labelSelector": {"matchLabels": {"app": "database"}}, "topologyKey": "kubernetes.io/hostname"}
    serving = {"pod": {"affinity": {"podAntiAffinity": {REQUIRED: [own]}}}}
    cluster = Cluster(a_spec(serving=serving), when("profile", a_wait()))
    while not cluster.active("profile"):
        cluster.run(1)
    (profile,) = (each for each in cluster.of_kind("Job") if "-profile-" in each["metadata"]["name"])
    assert apart(profile["spec"]["template"]["spec"]) == [own, *NO_OTHER]
    cluster.run(5)
    # The scheduler does not say which of the two it means.
    assert cluster.condition("Ready")["reason"] == "Unschedulable"


@pytest.mark.parametrize("stage", ["profile", "search", "measure"])
def test_the_wait_for_another_measurement_is_no_failure_and_burns_no_deadline(stage: str) -> None:
    """The default deadline is an hour."""
    cluster = Cluster(a_spec(**searching()), when(stage, a_wait()))
    cluster.run(60)
    for _ in range(2):
        ready = cluster.condition("Ready")
        assert (ready["status"], ready["reason"]) == ("False", "WaitingForNode")
        assert "until no other measurement runs on its node" in ready["message"]
        assert cluster.condition("Stalled")["status"] == "False"
        assert cluster.condition("Reconciling")["status"] == "True"
        cluster.now += timedelta(hours=1)
        cluster.run(2)
    assert "WaitingForNode" not in {each.reason for each in cluster.events if each.type == "Warning"}
    started = cluster.started(stage)
    cluster.fates = when(stage, GOOD)
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"
    assert cluster.started(stage) >= started


def test_a_node_that_lacks_something_else_too_is_unschedulable() -> None:
    cluster = Cluster(a_spec(), when("profile", a_wait("0/1 nodes are available: 1 Insufficient nvidia.com/gpu.")))
    cluster.run(40)
    assert cluster.condition("Ready")["reason"] == "Unschedulable"


def test_a_measurement_that_cannot_start_keeps_its_node_for_five_minutes() -> None:
    cluster = Cluster(a_spec(), when("profile", a_missing_image()))
    while not cluster.active("profile"):
        cluster.run(1)
    started = cluster.started("profile")
    cluster.run(20)
    assert cluster.condition("Ready")["reason"] == "ImagePullFailed"
    assert cluster.started("profile") == started
    cluster.now += timedelta(minutes=5)
    cluster.run(4)
    assert cluster.started("profile") == started + 1, "a new pod queues behind those of other objects"
    assert cluster.condition("Ready")["reason"] == "ImagePullFailed"
    assert cluster.condition("Stalled")["status"] == "False"
    cluster.fates = when("profile", GOOD)
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"
