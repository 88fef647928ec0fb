"""A revision that is no longer what was published: servers that run stay, and it is published anew."""

from collections.abc import Callable, Container
from dataclasses import replace
from typing import Any

import pytest

from tests.simulation.answers import CONTENT, GOOD, SEEN, Script
from tests.simulation.cluster import SETTINGS, Cluster
from tests.states.deployment import a_deployment
from triton_converters.contract.envelope import EXIT_FINAL, Outcome
from triton_converters.contract.measurement_requests import ProfileRequest
from triton_converters.contract.reasons import Reason
from triton_converters.contract.upkeep_requests import CheckRequest
from triton_operator import names

RESULTS = ("ConfigMap", "digits-results")


def saying(keys: Container[str], reason: Reason = Reason.REPOSITORY_DAMAGED) -> Callable[[str], str]:
    """The container before a server finds these revisions damaged."""
    return lambda key: Outcome("serve", key, None, reason, f"revision {key} is not it").to_json() if key in keys else ""


def served(**fields: Any) -> Cluster:
    """A cluster whose object is Ready, with one candidate."""
    return a_deployment().one_candidate().asking(**fields).settled().cluster()


def restart(cluster: Cluster, number: int = 0) -> None:
    """Delete a pod of the active server."""
    name = cluster.serving()
    pods = [each for each in cluster.of_kind("Pod") if each["metadata"]["labels"].get(names.SERVER_LABEL) == name]
    del cluster.objects["Pod", pods[number]["metadata"]["name"]]


def running(cluster: Cluster) -> list[str]:
    """Keys of the revisions of the servers' pods that run."""
    return [
        each["metadata"]["labels"][names.KEY_LABEL]
        for each in cluster.of_kind("Pod")
        if each["metadata"]["labels"].get(names.SERVER_LABEL) and each["status"]["phase"] == "Running"
    ]


def test_a_revision_damaged_before_its_first_server_starts_is_published_anew() -> None:
    damaged: set[str] = set()
    cluster = a_deployment().one_candidate().where(damaged=saying(damaged)).cluster()
    while not cluster.started("convert"):
        cluster.run(1)
    (job,) = [each for each in cluster.of_kind("Job") if each["metadata"]["labels"][names.STAGE_LABEL] == "convert"]
    damaged.add(job["metadata"]["labels"][names.KEY_LABEL])
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"
    assert (cluster.started("convert"), cluster.started("profile"), cluster.started("reference")) == (2, 2, 1)
    assert damaged.isdisjoint(running(cluster))
    assert "RepositoryDamaged" in {each.reason for each in cluster.events}
    assert "Stalled" not in {each.message.split(":")[0] for each in cluster.events}


def test_a_server_that_runs_stays_until_the_repair_serves() -> None:
    cluster = served(serving={"replicas": 2})
    first, old = cluster.status["serving"]["revision"], cluster.serving()
    cluster.damaged = saying([first])
    restart(cluster)
    conditions, pods = set(), set()
    for _ in cluster.steps(200):
        if cluster.serving() != old:
            break
        conditions.add(cluster.condition("Available")["status"])
        pods.add(len([key for key in running(cluster) if key == first]))
    assert pods == {1}, "the pod that runs is left alone"
    assert conditions == {"True"}
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"
    assert cluster.status["serving"]["revision"] != first
    assert ("Deployment", old) not in cluster.objects


@pytest.mark.parametrize("reason", [Reason.REPOSITORY_DAMAGED, Reason.RESULT_MISSING])
def test_a_server_that_cannot_restart_is_repaired_and_says_why(reason: Reason) -> None:
    cluster = served()
    first = cluster.status["serving"]["revision"]
    cluster.damaged = saying([first], reason)
    restart(cluster)
    cluster.run(2)
    assert cluster.condition("Available") | {"status": "False", "reason": reason} == cluster.condition("Available")
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"
    assert running(cluster) == [cluster.status["serving"]["revision"]] != [first]


def test_a_repair_is_remembered_when_the_operator_and_the_pods_are_gone() -> None:
    cluster = served()
    first = cluster.status["serving"]["revision"]
    cluster.damaged = saying([first])
    restart(cluster)
    cluster.settle()
    second = cluster.status["serving"]["revision"]
    cluster.damaged = lambda revision: ""
    story = len(cluster.story)
    cluster.edit(serving={"replicas": 2})
    cluster.settle()
    assert cluster.status["serving"]["revision"] == second
    assert not [each for each in cluster.story[story:] if each.startswith("convert")]
    assert f"damaged.{first}" in cluster.objects[RESULTS]["data"]


class Everything:
    """Holds every key."""

    def __contains__(self, key: object) -> bool:
        return True


def test_damage_again_and_again_ends_as_a_failure() -> None:
    cluster = served()
    cluster.damaged = saying(Everything())
    restart(cluster)
    cluster.settle()
    assert cluster.started("convert") == 3, "the first one and two repairs"
    assert cluster.condition("Stalled")["status"] == "True"
    failed = cluster.candidate("onnx-fp32")
    assert (failed["state"], failed["reason"]) == ("Failed", "RepositoryDamaged")
    assert "damaged 3 times" in failed["message"]
    assert "kubectl triton retry digits" in failed["message"]
    cluster.damaged = lambda revision: ""
    cluster.retry()
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"
    assert cluster.started("convert") == 4


def test_another_candidate_serves_if_the_best_cannot_be_repaired() -> None:
    cluster = a_deployment().settled().cluster()
    broken = {cluster.status["serving"]["revision"]}
    best = cluster.status["serving"]["candidate"]
    cluster.damaged = lambda revision: saying(broken)(revision)  # noqa: PLW0108 - `broken` grows
    for _ in range(3):
        restart(cluster)
        cluster.settle()
        broken.add(next(each["revision"] for each in cluster.status["candidates"] if each["name"] == best))
    assert cluster.status["serving"]["candidate"] != best
    assert cluster.condition("Ready")["status"] == "True"


def test_a_profile_that_refuses_the_revision_repairs_it_too() -> None:
    first: list[str] = []

    def scripts(stage: str, candidate: str, request: object) -> Script:
        if not isinstance(request, ProfileRequest):
            return GOOD
        first[:] = first or [request.revision]
        damaged = request.revision in first
        return Script(EXIT_FINAL, reason=Reason.REPOSITORY_DAMAGED, message="not it") if damaged else GOOD

    cluster = a_deployment().one_candidate().faring(scripts).serving().cluster()
    assert (cluster.started("convert"), cluster.started("profile")) == (2, 2)
    assert not [each for each in cluster.events if each.message.startswith("Stalled")]


def test_an_approval_covers_the_revision_published_anew() -> None:
    cluster = served(selection={"approval": "Manual"})
    (found,) = cluster.status["candidates"]
    cluster.edit(selection={"approval": "Manual", "approvedRevision": found["revision"]})
    cluster.settle()
    cluster.damaged = saying([found["revision"]])
    restart(cluster)
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"
    assert cluster.status["serving"]["revision"] != found["revision"]


def test_what_a_server_compares_is_the_installations_and_restarts_none() -> None:
    cluster = served()
    (before,) = cluster.of_kind("Deployment")
    (check,) = before["spec"]["template"]["spec"]["initContainers"]
    asked = CheckRequest.from_json(check["args"][0])
    assert (asked.verification, asked.content, asked.stat_digest) == ("Stat", CONTENT, SEEN)
    story = list(cluster.story)
    cluster.settings = replace(SETTINGS, verification="Content")
    cluster.settle()
    assert cluster.story == story, "no Job runs and no server is made"
    assert cluster.of_kind("Deployment") == [before]
    cluster.edit(serving={"pod": {"labels": {"team": "vision"}}})
    cluster.settle()
    (after,) = cluster.of_kind("Deployment")
    (check,) = after["spec"]["template"]["spec"]["initContainers"]
    assert CheckRequest.from_json(check["args"][0]).verification == "Content"
