"""The scale subresource: more or fewer replicas are a change of nothing else, whoever asks for them and when."""

from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from tests.simulation.answers import Script, when
from tests.simulation.cluster import Cluster
from tests.simulation.edits import a_wider_batch, another_source
from tests.states.deployment import a_deployment

ONE_GPU = {"resourceName": "nvidia.com/gpu", "count": 1}
HANGS = when("measure", Script(hangs=True))
DEADLINE = {"progressDeadlineSeconds": 60}
PAST_THE_DEADLINE = 40
"""Steps, which take longer than that."""


def replicas(cluster: Cluster) -> dict[str, int]:
    """What each Deployment is asked for."""
    return {each["metadata"]["name"]: each["spec"]["replicas"] for each in cluster.of_kind("Deployment")}


def scale(cluster: Cluster) -> dict[str, Any]:
    """The part of the status that /scale shows."""
    serving = cluster.status["serving"]
    return {"replicas": serving.get("replicas", 0), "selector": serving["selector"]}


def selected(cluster: Cluster) -> set[str]:
    """Names of the owners of the pods that the selector of /scale matches."""
    wanted = dict(term.split("=") for term in scale(cluster)["selector"].split(","))
    owners = {each["metadata"]["uid"]: each["metadata"]["name"] for each in cluster.objects.values()}
    return {
        owners[pod["metadata"]["ownerReferences"][0]["uid"]]
        for pod in cluster.of_kind("Pod")
        if wanted.items() <= pod["metadata"]["labels"].items()
    }


SHARED = {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteMany"]}}}


@pytest.mark.parametrize(
    ("count", "repository", "says_so"),
    [(1, {}, False), (2, {}, True), (2, SHARED, False), (2, {"claimName": "models"}, False)],
    ids=["one", "a claim of one node", "a claim of several nodes", "the user's claim"],
)
def test_several_replicas_that_one_lost_node_takes_away(count: int, repository: dict[str, Any], says_so: bool) -> None:
    cluster = a_deployment().asking(serving={"replicas": count}, repository=repository).settled().cluster()
    assert ("all its pods run on one node" in cluster.condition("Available")["message"]) is says_so


def measuring(cluster: Cluster) -> str:
    """Roll another revision out until its measurement runs; returns the active Deployment's name."""
    cluster.edit(a_wider_batch())
    cluster.until_active("measure")
    return cluster.serving() or ""


@pytest.mark.parametrize("count", [2, 100])
def test_a_scaled_object_stays_ready_and_does_nothing_else(serving: Cluster, count: int) -> None:
    before, story, name = deepcopy(serving.status), list(serving.story), serving.serving() or ""
    serving.settings = replace(serving.settings, converter_image="example/converter:2", server_image="example/server:2")
    for wanted in (count, 1):
        serving.edit(serving={"replicas": wanted})
        for _ in serving.passes(5):
            assert serving.condition("Ready")["status"] == "True"
            assert serving.condition("Available")["status"] == "True"
            assert serving.condition("Reconciling")["status"] == "False"
        serving.settle()
        assert (serving.story, replicas(serving)) == (story, {name: wanted})
        assert scale(serving) == {"replicas": wanted, "selector": before["serving"]["selector"]}
    assert serving.status["images"] == before["images"]


def test_available_says_how_many_pods_are_ready_and_what_keeps_another() -> None:
    cluster = a_deployment().asking(gpu=ONE_GPU).where(gpus=1).settled().cluster()
    assert "pods are ready" not in cluster.condition("Available")["message"]
    cluster.edit(serving={"replicas": 2})
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"
    available = cluster.condition("Available")
    assert available["status"] == "True"
    assert "1 of 2 pods are ready" in available["message"]
    assert "Insufficient nvidia.com/gpu" in available["message"]


def test_without_a_ready_pod_nothing_is_ready(serving: Cluster) -> None:
    serving.edit(serving={"replicas": 2})
    serving.settle()
    serving.starts = lambda name: False
    serving.run(2)
    assert serving.condition("Ready")["status"] == "False"
    assert serving.condition("Available")["status"] == "False"


def test_a_target_takes_traffic_only_once_all_its_pods_are_ready() -> None:
    cluster = a_deployment().asking(gpu=ONE_GPU, serving={"replicas": 2}).where(gpus=1).cluster()
    cluster.run(60)
    assert cluster.serving() is None
    assert cluster.condition("Ready")["status"] == "False"
    cluster.gpus = 2
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"


def test_the_selector_matches_the_active_revisions_pods_and_is_never_empty() -> None:
    """An autoscaler must see neither a Job's pod nor one that a measurement loads."""
    cluster = a_deployment().cluster()
    for _ in cluster.passes(until=lambda cluster: cluster.serving() is not None):
        assert scale(cluster)["replicas"] == 0
        assert selected(cluster) == set()
    cluster.settle()
    first = cluster.serving()
    cluster.edit(a_wider_batch())
    while cluster.serving() == first:
        assert selected(cluster) == {first}
        cluster.run(1)
    cluster.settle()
    assert selected(cluster) == {cluster.serving()} != {first}


@pytest.mark.parametrize("waits", ["a conversion", "an approval", "a target that does not start"])
def test_the_active_revision_is_scaled_while_another_one_is_on_its_way(serving: Cluster, waits: str) -> None:
    first = serving.serving() or ""
    if waits == "a conversion":
        serving.edit(another_source())
        serving.until_active("convert")
    elif waits == "an approval":
        serving.edit(another_source(), selection={"approval": "Manual"})
        serving.settle()
        assert serving.condition("Ready")["reason"] == "AwaitingApproval"
    else:
        serving.starts = lambda name: name == first
        serving.edit(a_wider_batch())
        serving.until(lambda serving: len(replicas(serving)) != 1)
    serving.edit(serving={"replicas": 3})
    serving.act()
    assert replicas(serving)[first] == 3
    serving.run(2)
    assert (serving.serving(), scale(serving)["replicas"]) == (first, 3)
    assert serving.condition("Available")["status"] == "True"


@pytest.mark.parametrize("steps", [20, PAST_THE_DEADLINE])
def test_a_pod_more_for_which_no_gpu_is_free_stops_no_server_and_fails_no_rollout(steps: int) -> None:
    cluster = a_deployment().asking(gpu=ONE_GPU, serving=DEADLINE).where(gpus=2).settled().cluster()
    good, cluster.scripts = cluster.scripts, HANGS
    first = measuring(cluster)
    cluster.run(steps)
    cluster.edit(serving=DEADLINE | {"replicas": 2})
    cluster.run(60)
    cluster.scripts = good
    cluster.run(20)
    assert set(replicas(cluster).values()) == {2}
    assert (cluster.serving(), cluster.condition("Available")["status"]) == (first, "True")
    assert cluster.condition("Ready")["reason"] == "Unschedulable"
    assert cluster.condition("Stalled")["status"] == "False"
    cluster.gpus = 4
    cluster.settle()
    assert (cluster.serving() != first, cluster.condition("Ready")["status"]) == (True, "True")


def test_no_replicas_stop_the_server_and_keep_the_selector(serving: Cluster) -> None:
    name, before = serving.serving() or "", scale(serving)
    serving.edit(serving={"replicas": 0})
    serving.settle()
    assert replicas(serving) == {name: 0}
    assert serving.condition("Available")["reason"] == "Suspended"
    assert serving.condition("Ready")["reason"] == "Suspended"
    assert scale(serving) == before | {"replicas": 0}
    serving.edit(serving={})
    serving.settle()
    assert serving.condition("Ready")["status"] == "True"


@pytest.mark.parametrize("gpus", [None, 1, 2])
def test_no_replicas_for_a_while_fail_no_rollout(gpus: int | None) -> None:
    cluster = a_deployment().asking(gpu=gpus and ONE_GPU, serving=DEADLINE).where(gpus=gpus).settled().cluster()
    good, cluster.scripts = cluster.scripts, HANGS
    first = measuring(cluster)
    cluster.edit(serving=DEADLINE | {"replicas": 0})
    cluster.act()
    assert [cluster.condition(each)["reason"] for each in ("Ready", "Available")] == ["Suspended"] * 2
    cluster.run(PAST_THE_DEADLINE)
    assert replicas(cluster) == {first: 0}
    assert cluster.active("measure") == [], "without a server it would fail"
    cluster.scripts = good
    cluster.edit(serving=DEADLINE | {"replicas": 1})
    for _ in cluster.passes(30):
        assert cluster.condition("Stalled")["status"] == "False"
    cluster.settle()
    assert (cluster.serving() != first, cluster.condition("Ready")["status"]) == (True, "True")


def test_a_target_that_failed_stays_away_when_replicas_are_wanted_again() -> None:
    """It would take the only GPU from the active revision."""
    cluster = a_deployment().asking(gpu=ONE_GPU, serving=DEADLINE).where(gpus=1).settled().cluster()
    first = cluster.serving() or ""
    cluster.scripts = when("measure", Script(p99=20_000))
    cluster.edit(a_wider_batch())
    cluster.settle()
    for wanted in (0, 1):
        cluster.edit(serving=DEADLINE | {"replicas": wanted})
        cluster.settle()
    assert (cluster.serving(), replicas(cluster)[first], sum(replicas(cluster).values())) == (first, 1, 1)
    assert cluster.condition("Available")["status"] == "True"
    assert cluster.condition("Stalled")["reason"] == "ConstraintsNotMet"
    cluster.run(PAST_THE_DEADLINE)
    assert cluster.condition("Stalled")["reason"] == "ConstraintsNotMet", "it was not late"
