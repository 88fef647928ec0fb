"""What an installation demands of pods with users' code, and what it lets specs name."""

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.conftest import Attack
from tests.simulation.cluster import SETTINGS, Cluster
from tests.simulation.test_failures import named_claim
from tests.simulation.test_kept_on_the_claim import REFUSED
from tests.states.deployment import a_deployment
from triton_operator import names

READER = "vision/models-reader"
SANDBOX = "dev.gvisor.flag.network"
ANNOTATED = {"annotations": {"prometheus.io/scrape": "true", SANDBOX: "host"}}
ALLOWED = replace(
    SETTINGS,
    allowed_images=("registry.example/team/",),
    allowed_claims=("models", "team-*"),
    allowed_service_accounts=(READER, "other/reader"),
    allowed_annotations=("prometheus.io/",),
)
USER_CODE = {"reference", "convert", "metrics"}


def image(name: str) -> dict[str, Any]:
    return {"image": name}


@pytest.mark.parametrize(
    ("fields", "words", "setting"),
    [
        ({"conversion": image("docker.io/mine:1")}, "spec.conversion.image names image docker.io/mine:1", "images"),
        ({"serving": image("registry.example/team-b/triton:1")}, "spec.serving.image names", "images"),
        ({"serving": image("registry.example/teamtriton:1")}, "spec.serving.image names", "images"),
        ({"source": {"uri": "pvc://others/m"}}, "spec.source.uri names claim others,", "claims"),
        ({"weights": {"uri": "pvc://others/m"}}, "spec.weights.uri names claim others,", "claims"),
        ({"dataset": {"uri": "pvc://other-team-a/data"}}, "spec.dataset.uri names claim other-team-a,", "claims"),
        (
            {"source": {"uri": "s3://models/ocr", "serviceAccountName": "admin"}},
            "spec.source.serviceAccountName names ServiceAccount vision/admin,",
            "serviceAccounts",
        ),
        (
            {"dataset": {"uri": "gs://models/ocr", "serviceAccountName": "reader"}},
            "spec.dataset.serviceAccountName names ServiceAccount vision/reader,",
            "serviceAccounts",
        ),
        ({"repository": {"claimName": "others"}}, "spec.repository.claimName names claim others,", "claims"),
        *(
            (
                fields,
                f"spec.{place}.annotations names annotation {SANDBOX},",
                "annotations",
            )
            for place, fields in (
                ("pod", {"pod": ANNOTATED}),
                ("conversion.pod", {"conversion": {"pod": ANNOTATED}}),
                ("serving.pod", {"serving": {"pod": ANNOTATED}}),
            )
        ),
    ],
)
def test_what_is_not_allowed_starts_nothing_and_says_whom_to_ask(
    fields: dict[str, Any], words: str, setting: str
) -> None:
    cluster = a_deployment().asking(**fields).where(settings=ALLOWED).settled().cluster()
    stalled = cluster.condition("Stalled")
    assert (stalled["status"], stalled["reason"]) == ("True", "NotAllowed")
    assert stalled["message"].startswith(words)
    assert (
        f"ask the administrator who installed the operator to add it to the Helm value allowed.{setting}"
        in (stalled["message"])
    )
    assert cluster.story == []


def test_the_claim_that_was_made_for_another_object_is_its_own_alone(attack: Attack) -> None:
    cluster = a_deployment().asking(repository={"claimName": "letters-repository"}).cluster()
    named_claim(cluster, "letters-repository", "letters")
    claim = cluster.objects["PersistentVolumeClaim", "letters-repository"]["metadata"]
    cluster.act()
    stalled = cluster.condition("Stalled")
    assert (stalled["status"], stalled["reason"]) == ("True", "NotAllowed")
    assert "letters-repository, which is that of TritonDeployment letters alone" in stalled["message"]
    assert not cluster.of_kind("Job")
    attack("author of an object", "another object's files, by its claim's name", str(stalled["message"]))
    # As the advice says, of a claim whose object is gone; and of a claim that its own object names.
    for label in (None, "digits"):
        claim["labels"] = {} if label is None else names.labels(label, "repository")
        cluster.settle()
        assert cluster.condition("Ready")["status"] == "True"


def test_the_claim_that_another_object_is_to_get_is_its_own_alone_before_it_is_there(attack: Attack) -> None:
    cluster = a_deployment().asking(repository={"claimName": "letters-repository"}).settled().cluster()
    stalled = cluster.condition("Stalled")
    assert (stalled["status"], stalled["reason"]) == ("True", "NotAllowed")
    assert "the operator makes for TritonDeployment letters; to use a claim of that name, make it" in stalled["message"]
    assert not cluster.of_kind("Job")
    attack("author of an object", "another object's files, by the name of a claim to come", str(stalled["message"]))
    named_claim(cluster, "letters-repository")
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True", "it is the user's"


@pytest.mark.parametrize("claim", ["shared", "digits-repository"])
def test_a_claim_that_is_to_come_is_waited_for(claim: str) -> None:
    cluster = a_deployment().asking(repository={"claimName": claim}).cluster()
    cluster.act()
    assert cluster.started("source") == 1


@pytest.mark.parametrize("is_valid", [True, False])
@pytest.mark.parametrize(("claim", "owner"), [("letters-repository", "letters"), ("payroll", "")])
def test_no_job_of_a_soak_runs_on_a_claim_that_the_object_may_not_name(claim: str, owner: str, is_valid: bool) -> None:
    cluster = a_deployment().one_candidate().soaked().serving().where(settings=ALLOWED).cluster()
    cluster.edit(source={"uri": "pvc://models/v2"})
    cluster.until_has("Soaking", "Soaked")
    named_claim(cluster, claim, owner)
    cluster.edit(repository={"claimName": claim}, **({} if is_valid else REFUSED))
    cluster.run(30)
    assert cluster.has("NotAllowed" if is_valid else "InvalidSpec", "Stalled")
    assert f'"claimName": "{claim}"' not in json.dumps(cluster.of_kind("Job"))


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"conversion": image("registry.example/team/torch:1"), "serving": image("registry.example/team/triton:1")},
        {"conversion": image("example/converter:1"), "serving": image("example/server:1")},
        {"dataset": {"uri": "pvc://team-a/data"}, "repository": {"claimName": "team-b"}},
        {"source": {"uri": "configmap://code"}},
    ],
)
def test_what_is_allowed_gets_ready(fields: dict[str, Any]) -> None:
    a_deployment().asking(**fields).where(settings=ALLOWED).serving().cluster()


def test_no_serviceaccount_is_allowed_unless_the_installation_names_it() -> None:
    cluster = (
        a_deployment()
        .asking(source={"uri": "s3://models/ocr", "serviceAccountName": "models-reader"})
        .settled()
        .cluster()
    )
    assert cluster.condition("Stalled")["reason"] == "NotAllowed"
    cluster.settings = ALLOWED
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"


def test_only_the_source_job_has_the_serviceaccount_and_no_pod_a_token() -> None:
    source = {"uri": "s3://models/ocr", "serviceAccountName": "models-reader"}
    cluster = (
        a_deployment()
        .asking(source=source, weights={"uri": "s3://models/weights"})
        .where(settings=ALLOWED)
        .settled()
        .cluster()
    )
    pods = {
        body["metadata"]["name"]: body["spec"]["template"]["spec"]
        for body in (*cluster.of_kind("Job"), *cluster.of_kind("Deployment"))
    }
    assert not [name for name, pod in pods.items() if pod["automountServiceAccountToken"]]
    (has,) = [pod for pod in pods.values() if "serviceAccountName" in pod]
    assert has["serviceAccountName"] == "models-reader"
    assert "s3://models/ocr" in has["containers"][0]["args"][1]
    named = [pod for pod in pods.values() if "models-reader" in str(pod)]
    assert named == [has]
    assert {"name": "SOURCE_SERVICE_ACCOUNT", "value": "models-reader"} in has["containers"][0]["env"]


def test_another_serviceaccount_does_nothing_again() -> None:
    cluster = a_deployment().asking(source={"uri": "s3://models/ocr"}).where(settings=ALLOWED).settled().cluster()
    story = list(cluster.story)
    cluster.edit(source={"uri": "s3://models/ocr", "serviceAccountName": "models-reader"})
    cluster.settle()
    assert cluster.story == story


def test_what_serves_goes_on_and_nothing_is_done_again_once_it_is_allowed(serving: Cluster) -> None:
    story, server, jobs = list(serving.story), serving.serving(), len(serving.of_kind("Job"))
    serving.settings = replace(SETTINGS, allowed_claims=("none",))
    serving.settle()
    assert serving.condition("UpToDate")["reason"] == "NotAllowed"
    assert serving.condition("Available")["status"] == "True"
    assert (serving.serving(), len(serving.of_kind("Job"))) == (server, jobs)
    serving.edit(serving={"replicas": 2})
    serving.settle()
    assert serving.objects["Deployment", server or ""]["spec"]["replicas"] == 2
    serving.settings = SETTINGS
    serving.settle()
    assert serving.condition("Ready")["status"] == "True"
    assert serving.story == story


def test_no_spec_lowers_what_the_installation_demands_of_users_code() -> None:
    demands = replace(SETTINGS, user_code_runtime_class="gvisor", user_code_host_users=False)
    own = {"pod": {"runtimeClassName": "weaker"}}
    cluster = a_deployment().asking(conversion=own, serving=own).where(settings=demands).settled().cluster()
    found = {
        each["metadata"]["labels"].get(names.STAGE_LABEL, "server"): each["spec"]["template"]["spec"]
        for each in (*cluster.of_kind("Job"), *cluster.of_kind("Deployment"))
    }
    assert found.keys() > USER_CODE
    for stage, pod in found.items():
        expected = ("gvisor", False) if stage in USER_CODE else ("weaker", None)
        assert (pod["runtimeClassName"], pod.get("hostUsers")) == expected, stage


def test_other_demands_do_nothing_again(serving: Cluster) -> None:
    story = list(serving.story)
    serving.settings = replace(SETTINGS, user_code_runtime_class="gvisor", user_code_host_users=False)
    serving.settle()
    assert serving.story == story


def test_traces_need_a_collector_of_the_installations() -> None:
    cluster = a_deployment().asking(serving={"tracing": True}).settled().cluster()
    stalled = cluster.condition("Stalled")
    assert (stalled["status"], stalled["reason"]) == ("True", "NotAllowed")
    assert "set the Helm value tracing.endpoint" in stalled["message"]
    assert cluster.story == []


SCRAPED = {"prometheus.io/scrape": "true"}


def annotations(cluster: Cluster) -> dict[str, dict[str, str]]:
    """The annotations of each Job's and server's pods that a user set, by the Job's stage or `server`."""
    templates = {
        each["metadata"]["labels"].get(names.STAGE_LABEL, "server"): each["spec"]["template"]["metadata"]
        for each in (*cluster.of_kind("Job"), *cluster.of_kind("Deployment"))
    }
    return {
        stage: {key: value for key, value in found.get("annotations", {}).items() if key != names.LOGGED_CONTAINER}
        for stage, found in templates.items()
    }


def test_pods_that_run_users_code_have_no_annotation_of_a_spec_once_the_installation_bounds_them(
    attack: Attack,
) -> None:
    cluster = a_deployment().asking(pod={"annotations": SCRAPED}).where(settings=ALLOWED).settled().cluster()
    found = annotations(cluster)
    on_user_code = {stage: given for stage, given in found.items() if stage in USER_CODE}
    attack("author of an object", "pods with user code, by annotations that servers may have", str(on_user_code))
    assert on_user_code == {stage: {} for stage in USER_CODE}
    others = {stage: given for stage, given in found.items() if stage not in USER_CODE}
    assert "server" in others
    assert others == dict.fromkeys(others, SCRAPED)
    assert cluster.condition("Ready")["status"] == "True"


def test_without_a_bound_every_pod_has_the_annotations_of_a_spec() -> None:
    cluster = a_deployment().asking(pod={"annotations": SCRAPED}).settled().cluster()
    found = annotations(cluster)
    assert found.keys() > USER_CODE
    assert found == dict.fromkeys(found, SCRAPED)


def test_a_bound_on_annotations_does_nothing_again(serving: Cluster) -> None:
    story = list(serving.story)
    serving.settings = replace(SETTINGS, allowed_annotations=("prometheus.io/",))
    serving.settle()
    assert serving.story == story
