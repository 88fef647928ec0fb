"""A claim that exists is only ever enlarged, and what else the spec asks of it stops nothing."""

from typing import Any

import pytest

from tests.simulation.cluster import Cluster
from tests.simulation.deployments import UNANCHORED
from tests.simulation.test_failures import named_claim
from tests.simulation.test_kept_on_the_claim import REFUSED
from tests.simulation.test_rollback import version
from tests.states.deployment import a_deployment
from triton_operator.kube.drift import drift
from triton_operator.kube.managed_fields import FIELD_MANAGER

Body = dict[str, Any]


@pytest.fixture
def claim(serving: Cluster) -> Body:
    """The claim as the API server completes it, and as it records what the operator applied."""
    body = serving.objects["PersistentVolumeClaim", "digits-repository"]
    body["spec"] |= {"storageClassName": "standard", "volumeMode": "Filesystem", "volumeName": "pv-1"}
    applied: Body = {"f:accessModes": {}, "f:storageClassName": {}, "f:resources": {"f:requests": {"f:storage": {}}}}
    entry = {"manager": FIELD_MANAGER, "operation": "Apply", "fieldsV1": {"f:spec": applied}}
    body["metadata"]["managedFields"] = [entry]
    return body


def ask(cluster: Cluster, **template: Any) -> None:
    """Edit the spec's template of the claim."""
    cluster.edit(repository={"volumeClaimTemplate": {"spec": template}})


def wanted(cluster: Cluster) -> Body:
    """The claim's spec as the plan wants it."""
    (spec,) = [each["spec"] for each in cluster.intent().objects if each["kind"] == "PersistentVolumeClaim"]
    return dict(spec)


def requested(size: str) -> Body:
    return {"requests": {"storage": size}}


def assert_goes_on(cluster: Cluster, story: list[str]) -> None:
    """The object settles as Ready, and nothing was done again."""
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"
    assert cluster.story == story


RETAIN = {"retentionPolicy": {"whenDeleted": "Retain"}}


def owners(cluster: Cluster) -> list[str]:
    """Who owns the claim, by uid."""
    cluster.settle()
    claim = cluster.objects["PersistentVolumeClaim", "digits-repository"]
    return [each["uid"] for each in claim["metadata"].get("ownerReferences", ())]


@pytest.mark.parametrize("repository", [{}, {"retentionPolicy": {"whenDeleted": "Delete"}}])
def test_a_retained_claim_stays_with_the_next_object_of_its_name_until_it_is_released(repository: Body) -> None:
    former = a_deployment().asking(repository=RETAIN).serving().cluster()
    assert owners(former) == []
    cluster = a_deployment().asking(repository=repository).cluster()
    cluster.uid = "uid-of-the-next"
    kept = former.objects["PersistentVolumeClaim", "digits-repository"]
    cluster.objects["PersistentVolumeClaim", "digits-repository"] = kept
    assert owners(cluster) == []
    words = "kubectl annotate pvc digits-repository --namespace vision --overwrite triton-operator.dev/release="
    assert words + cluster.uid in cluster.condition("Ready")["message"]
    for uid, expected in ((former.uid, []), (cluster.uid, [cluster.uid])):
        claim = cluster.objects["PersistentVolumeClaim", "digits-repository"]
        claim["metadata"].setdefault("annotations", {})["triton-operator.dev/release"] = uid
        assert owners(cluster) == expected
    assert words not in cluster.condition("Ready")["message"]
    cluster.edit(repository=RETAIN)
    assert owners(cluster) == [], "what was released may be retained again"


@pytest.mark.parametrize("repository", [{}, RETAIN, {"claimName": "digits-repository"}])
def test_nothing_is_cleaned_from_a_retained_claim_until_it_is_released(repository: Body) -> None:
    former = a_deployment().one_candidate().asking(repository=RETAIN).serving().cluster()
    state = (
        a_deployment().one_candidate().asking(revisionHistoryLimit=0, repository=repository, **version(1), **UNANCHORED)
    )
    cluster = state.cluster()
    cluster.uid, cluster.now, cluster.born = "uid-of-the-next", former.now, former.now.strftime("%Y-%m-%dT%H:%M:%SZ")
    kept = former.objects["PersistentVolumeClaim", "digits-repository"]
    cluster.objects["PersistentVolumeClaim", "digits-repository"] = kept
    for number in (1, 2):
        cluster.edit(**version(number))
        cluster.settle()
    assert cluster.started("clean") == 0
    words = "nothing that an earlier object left on it is cleaned away; to release it, type: kubectl annotate pvc"
    assert words in cluster.condition("Ready")["message"]
    claim = cluster.objects["PersistentVolumeClaim", "digits-repository"]
    claim["metadata"]["annotations"] = {"triton-operator.dev/release": cluster.uid}
    cluster.settle()
    assert cluster.started("clean") == 1
    assert words not in cluster.condition("Ready")["message"]


def test_a_claim_that_its_own_object_retains_is_cleaned() -> None:
    asked = {"revisionHistoryLimit": 0, "repository": RETAIN, **version(1), **UNANCHORED}
    cluster = a_deployment().one_candidate().asking(**asked).cluster()
    for number in (1, 2):
        cluster.edit(**version(number))
        cluster.settle()
    assert cluster.started("clean") == 1
    assert "retained" not in cluster.condition("Ready")["message"]


def test_a_new_claim_is_as_the_template_says() -> None:
    cluster = a_deployment().cluster()
    ask(cluster, resources=requested("5Gi"), storageClassName="fast", accessModes=["ReadWriteMany"])
    assert wanted(cluster) == {
        "accessModes": ["ReadWriteMany"],
        "resources": requested("5Gi"),
        "storageClassName": "fast",
    }


@pytest.mark.parametrize("size", ["50Gi", "21474836481"])
def test_a_claim_that_somebody_enlarged_keeps_its_size(serving: Cluster, claim: Body, size: str) -> None:
    story = list(serving.story)
    claim["spec"]["resources"] = requested(size)
    assert serving.act() == 0
    assert_goes_on(serving, story)
    assert claim["spec"]["resources"] == requested(size)


def test_a_smaller_size_in_the_spec_changes_nothing(serving: Cluster, claim: Body) -> None:
    story = list(serving.story)
    ask(serving, resources=requested("10Gi"))
    assert_goes_on(serving, story)
    assert serving.objects["PersistentVolumeClaim", "digits-repository"] is claim


def test_a_larger_size_in_the_spec_enlarges_the_claim(serving: Cluster, claim: Body) -> None:
    story = list(serving.story)
    ask(serving, resources=requested("50Gi"))
    assert wanted(serving) == {
        "accessModes": ["ReadWriteOnce"],
        "resources": requested("50Gi"),
        "storageClassName": "standard",
    }
    assert_goes_on(serving, story)
    assert serving.objects["PersistentVolumeClaim", "digits-repository"]["spec"]["resources"] == requested("50Gi")


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ({"storageClassName": "fast"}, "keeps storageClassName standard"),
        ({"accessModes": ["ReadWriteMany"]}, "keeps accessModes ReadWriteOnce"),
        (
            {"storageClassName": "fast", "accessModes": ["ReadWriteMany"]},
            "keeps storageClassName standard and accessModes ReadWriteOnce",
        ),
    ],
)
def test_what_a_claim_cannot_change_is_told_and_stops_nothing(
    serving: Cluster, claim: Body, template: Body, words: str
) -> None:
    story = list(serving.story)
    ask(serving, **template)
    assert_goes_on(serving, story)
    assert serving.objects["PersistentVolumeClaim", "digits-repository"] is claim
    assert f"; PersistentVolumeClaim digits-repository {words}, " in serving.condition("Ready")["message"]
    ask(serving)
    assert_goes_on(serving, story)
    assert serving.condition("Ready")["message"] == "digits serves, verified and measured"


def test_a_storage_class_that_the_spec_no_longer_names_stays(serving: Cluster, claim: Body) -> None:
    ask(serving, storageClassName="standard")
    serving.settle()
    ask(serving)
    (desired,) = [each for each in serving.intent().objects if each["kind"] == "PersistentVolumeClaim"]
    assert drift(desired, claim) is None


def test_a_claim_that_is_gone_is_made_as_the_template_says(serving: Cluster, claim: Body) -> None:
    ask(serving, storageClassName="fast")
    serving.settle()
    serving.delete("PersistentVolumeClaim", claim["metadata"]["name"])
    serving.settle()
    assert serving.objects["PersistentVolumeClaim", "digits-repository"]["spec"]["storageClassName"] == "fast"
    assert serving.condition("Ready")["message"] == "digits serves, verified and measured"


def test_a_claim_that_is_being_deleted_is_told_at_once_and_serves(serving: Cluster, claim: Body) -> None:
    claim["metadata"]["deletionTimestamp"] = serving.now.isoformat()
    serving.act()
    told = serving.condition("ClaimTerminating")
    assert (told["status"], told["reason"]) == ("True", "ClaimTerminating")
    assert "VolumeSnapshot" in told["message"]
    assert "Retain" in told["message"]
    assert ("Warning", "ClaimTerminating") in {(each.type, each.reason) for each in serving.events}
    assert serving.condition("Ready")["status"] == "True"


@pytest.mark.parametrize("repository", [{}, {"claimName": "shared"}])
def test_a_refused_object_holds_no_claim_that_is_being_deleted(repository: Body) -> None:
    cluster = a_deployment().one_candidate().asking(repository=repository).cluster()
    named_claim(cluster, "shared")
    cluster.settle()
    assert cluster.of_kind("Job")
    cluster.edit(**REFUSED)
    cluster.act()
    claim = cluster.objects["PersistentVolumeClaim", repository.get("claimName", "digits-repository")]
    claim["metadata"]["deletionTimestamp"] = cluster.now.isoformat()
    cluster.run(3)
    assert cluster.of_kind("Job") == []
    assert cluster.has("ClaimTerminating", "ClaimTerminating")
    assert cluster.has("InvalidSpec", "Stalled")
    assert (cluster.condition("Available")["status"], cluster.act()) == ("True", 0)
    cluster.delete("PersistentVolumeClaim", claim["metadata"]["name"])
    cluster.run(2)
    assert not cluster.has("ClaimTerminating", "ClaimTerminating")


def test_no_job_of_the_operator_holds_a_claim_that_is_being_deleted(serving: Cluster, claim: Body) -> None:
    recorded = dict(serving.objects["ConfigMap", "digits-results"]["data"])
    assert serving.of_kind("Job")
    claim["metadata"]["deletionTimestamp"] = serving.now.isoformat()
    serving.settle()
    assert serving.of_kind("Job") == []
    assert serving.objects["ConfigMap", "digits-results"]["data"] == recorded
    story = list(serving.story)
    serving.edit(source={"uri": "pvc://models/v2", "version": "2"})
    serving.settle()
    assert serving.story == story, "no Job starts on a claim that goes"
    assert serving.condition("Available")["status"] == "True"
    serving.delete("PersistentVolumeClaim", claim["metadata"]["name"])
    serving.settle()
    assert serving.condition("Ready")["status"] == "True"
    assert serving.started("source") == 2


def test_a_profile_that_waits_for_a_claim_to_be_made_anew_says_so(serving: Cluster, claim: Body) -> None:
    serving.edit(serving={"arguments": ["--http-thread-count=4"]})
    claim["metadata"]["deletionTimestamp"] = serving.now.isoformat()
    serving.act()
    verified = serving.condition("Verified")
    assert verified["reason"] == "ClaimTerminating"
    assert "which is being deleted" in verified["message"]
