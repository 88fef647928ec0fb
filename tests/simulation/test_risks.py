"""Conditions that warn: they are there only while there is something to say, and stop nothing."""

import pytest

from tests.simulation.api_server import KEY
from tests.simulation.cluster import Cluster
from tests.simulation.test_rollback import version
from tests.states.deployment import a_deployment
from triton_operator.kube.kinds import JOB
from triton_operator.runtime.store import Store

OLD, NEW = "nvcr.io/nvidia/tritonserver:25.06-py3", "nvcr.io/nvidia/tritonserver:26.07-py3"


def types(cluster: Cluster) -> list[str]:
    return [each["type"] for each in cluster.status["conditions"]]


def test_a_server_with_known_vulnerabilities_is_ready_and_says_so_until_it_is_another() -> None:
    cluster = a_deployment().asking(serving={"image": OLD}).serving().cluster()
    risk = cluster.condition("ServerVulnerable")
    assert (risk["status"], risk["reason"]) == ("True", "KnownVulnerabilities")
    assert OLD in risk["message"]
    assert "CVE-2025-23310" in risk["message"]
    assert [each.type for each in cluster.events if each.reason == "KnownVulnerabilities"] == ["Warning"], "once"
    cluster.edit(serving={"image": NEW})
    cluster.settle()
    assert "ServerVulnerable" not in types(cluster)


def test_the_warning_comes_with_the_first_status() -> None:
    cluster = a_deployment().asking(serving={"image": OLD}).cluster()
    cluster.act()
    assert types(cluster)[-1] == "ServerVulnerable"


@pytest.mark.parametrize("image", [NEW, "registry.example/server:latest"])
def test_without_a_risk_there_is_no_such_condition(image: str) -> None:
    cluster = a_deployment().asking(serving={"image": image}).cluster()
    cluster.act()
    assert len(types(cluster)) == 10


def test_a_shared_claim_names_who_is_trusted_while_it_is_shared() -> None:
    cluster = (
        a_deployment().asking(repository={"claimName": "shared"}).where(neighbours=("letters",)).serving().cluster()
    )
    risk = cluster.condition("ClaimShared")
    assert (risk["status"], risk["reason"]) == ("True", "SharedClaim")
    assert risk["message"].startswith("claim shared is also used by letters, ")
    assert "trust each other" in risk["message"]
    cluster.neighbours = ()
    cluster.settle()
    assert "ClaimShared" not in types(cluster)


def test_among_many_neighbours_one_more_writes_nothing() -> None:
    cluster = a_deployment().asking(repository={"claimName": "shared"}).cluster()
    cluster.neighbours = tuple(f"{'n' * 35}-{number:03}" for number in range(1, 1000))
    cluster.settle()
    message = cluster.condition("ClaimShared")["message"]
    assert len(message) < 400
    assert f"{'n' * 35}-003 and others" in message
    cluster.neighbours += ("other",)
    assert cluster.act() == 0


def test_a_claim_of_too_many_for_a_clean_job_that_the_operator_sees_is_not_cleaned_and_says_so() -> None:
    spec = {"repository": {"claimName": "shared"}, "revisionHistoryLimit": 0}
    cluster = a_deployment().one_candidate().asking(**spec, **version(1)).cluster()
    cluster.neighbours = tuple(f"{'n' * 35}-{number:04}" for number in range(1001))
    for number in (1, 2):
        cluster.edit(**version(number))
        cluster.settle()
    assert cluster.started("clean") == 0
    assert "nothing is cleaned from it, because more than 1000 " in cluster.condition("ClaimShared")["message"]
    cluster.neighbours = cluster.neighbours[1:]
    cluster.settle()
    assert "cleaned" not in cluster.condition("ClaimShared")["message"]
    (job,) = [each for each in cluster.of_kind("Job") if "-clean-" in each["metadata"]["name"]]
    store = Store()
    store.put(JOB, job)
    assert store.children(KEY) != []
