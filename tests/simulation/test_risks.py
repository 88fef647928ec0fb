"""Conditions that warn: they are there only while there is something to say, and stop nothing."""

from tests.simulation.api_server import KEY
from tests.simulation.cluster import Cluster
from tests.simulation.deployments import UNANCHORED
from tests.simulation.test_rollback import version
from tests.states.deployment import a_deployment
from triton_operator.kube.kinds import JOB
from triton_operator.runtime.store import Store


def types(cluster: Cluster) -> list[str]:
    return [each["type"] for each in cluster.status["conditions"]]


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
    spec = {"repository": {"claimName": "shared"}, "revisionHistoryLimit": 0} | UNANCHORED
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
