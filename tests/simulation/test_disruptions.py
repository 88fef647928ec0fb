"""The PodDisruptionBudget: a drain ends one of several servers at a time, and is never kept waiting for ever."""

from typing import Any

import pytest

from tests.simulation.cluster import Body, Cluster
from tests.simulation.edits import a_wider_batch
from tests.states.deployment import a_deployment

SHARED = {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteMany"]}}}
BUDGET = ("PodDisruptionBudget", "digits-servers")


def settled(replicas: int, repository: Body = SHARED, **serving: Any) -> Cluster:
    """An object with so many servers, Ready."""
    return (
        a_deployment()
        .one_candidate()
        .asking(serving={"replicas": replicas, **serving}, repository=repository)
        .serving()
        .cluster()
    )


def protected(cluster: Cluster) -> set[str]:
    """Names of the pods that the budget selects."""
    wanted = cluster.objects[BUDGET]["spec"]["selector"]["matchLabels"].items()
    return {each["metadata"]["name"] for each in cluster.of_kind("Pod") if wanted <= each["metadata"]["labels"].items()}


def test_of_two_servers_one_may_go() -> None:
    cluster = settled(2)
    budget = cluster.objects[BUDGET]["spec"]
    assert budget["maxUnavailable"] == 1
    assert budget["unhealthyPodEvictionPolicy"] == "AlwaysAllow"
    assert len(protected(cluster)) == 2, "no Job's pod is among them"
    assert all(name.startswith(cluster.serving() or "?") for name in protected(cluster))


def test_one_server_has_no_budget_and_scaling_makes_and_deletes_it() -> None:
    cluster = settled(1)
    for replicas, there in ((1, False), (3, True), (1, False), (2, True), (0, False)):
        cluster.edit(serving={"replicas": replicas})
        cluster.settle()
        assert (BUDGET in cluster.objects) is there, replicas


def test_an_autoscaler_that_keeps_two_servers_has_one_from_the_start() -> None:
    cluster = settled(1, autoscaling={"minReplicas": 2, "maxReplicas": 4})
    assert BUDGET in cluster.objects
    cluster.edit(serving={"replicas": 1, "autoscaling": {"maxReplicas": 4}})
    cluster.settle()
    assert BUDGET not in cluster.objects


def test_servers_that_stay_on_one_node_have_none() -> None:
    """The pod that replaces an evicted one needs the node of the others, which takes no pod while it is drained."""
    assert BUDGET not in settled(2, {}).objects


@pytest.mark.parametrize(("modes", "there"), [(["ReadWriteMany"], True), (["ReadWriteOnce"], False), (None, False)])
def test_of_the_users_claim_its_own_modes_count(modes: list[str] | None, there: bool) -> None:
    cluster = (
        a_deployment().one_candidate().asking(serving={"replicas": 2}, repository={"claimName": "models"}).cluster()
    )
    if modes is not None:
        metadata = {"name": "models", "uid": "uid-claim", "creationTimestamp": "2026-11-01T00:00:00Z", "labels": {}}
        claim = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": metadata,
            "spec": {"accessModes": modes},
        }
        cluster.objects["PersistentVolumeClaim", "models"] = claim
    cluster.settle()
    assert (BUDGET in cluster.objects) is there


def test_it_follows_the_active_revision() -> None:
    cluster = settled(2)
    first = cluster.serving()
    cluster.edit(a_wider_batch())
    for _ in cluster.passes(until=lambda cluster: cluster.serving() != first):
        assert cluster.objects[BUDGET]["spec"]["selector"]["matchLabels"]["triton-operator.dev/server"] == first
    cluster.settle()
    assert len(protected(cluster)) == 2
    assert all(name.startswith(cluster.serving() or "?") for name in protected(cluster))
