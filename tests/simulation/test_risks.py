"""Conditions that warn: they are there only while there is something to say, and stop nothing."""

from tests.simulation.answers import Script, when
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


def test_an_entry_of_the_records_that_somebody_cut_is_named_until_it_is_gone() -> None:
    cluster = a_deployment().one_candidate().asking(**version(1)).serving().cluster()
    first = cluster.status["serving"]["revision"]
    cluster.edit(**version(2))
    cluster.settle()
    data = cluster.objects["ConfigMap", "digits-results"]["data"]
    data["history"] = data["history"][:40]
    cluster.settle()
    told = cluster.condition("RecordsUnreadable")
    assert "ConfigMap digits-results has entries that cannot be read: history. Nothing is cleaned" in told["message"]
    assert [each.type for each in cluster.events if each.reason == "RecordsUnreadable"] == ["Warning"]
    cluster.edit(rollout={"revision": first})
    cluster.settle()
    unknown = cluster.condition("Ready")
    assert unknown["reason"] == "RevisionUnknown"
    assert "entry history of ConfigMap digits-results, which has them, cannot be read" in unknown["message"]
    del cluster.objects["ConfigMap", "digits-results"]["data"]["history"]
    cluster.edit(rollout={"revision": None})
    cluster.settle()
    assert (cluster.condition("Ready")["status"], "RecordsUnreadable" in types(cluster)) == ("True", False)


def test_a_clean_job_that_does_not_start_is_told_with_who_shares_the_claim() -> None:
    spec = {"repository": {"claimName": "shared"}, "revisionHistoryLimit": 0} | UNANCHORED
    cluster = a_deployment().one_candidate().asking(**spec, **version(1)).where(neighbours=("letters",)).cluster()
    words = 'configmap "letters-results" not found'
    state = {"name": "clean", "state": {"waiting": {"reason": "CreateContainerConfigError", "message": words}}}
    cluster.scripts = when("clean", Script(pending={"phase": "Pending", "containerStatuses": [state]}))
    cluster.settle()
    cluster.edit(**version(2))
    cluster.run(60)
    assert cluster.started("clean") == 1
    message = cluster.condition("ClaimShared")["message"]
    assert "; it is not cleaned: pod digits-clean-" in message
    assert words in message
