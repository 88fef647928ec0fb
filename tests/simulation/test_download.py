"""Sources that are downloaded: what the Job gets, what lets it out, and what another try may cure."""

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.simulation.answers import GOOD, Script, when
from tests.simulation.cluster import SETTINGS, Cluster
from tests.simulation.moving import NEW_FILES
from tests.simulation.test_found_formats import a_file, requests
from tests.states.deployment import a_deployment
from triton_converters.contract.conversion_requests import SourceRequest
from triton_converters.contract.reasons import Reason
from triton_operator.policy_rules import PolicyRule

Body = dict[str, Any]
URI = "https://models.example/digits.onnx"
WEB: PolicyRule = {"ports": [{"protocol": "TCP", "port": 443}]}
SELECTS = {"triton-operator.dev/deployment": "digits", "triton-operator.dev/downloads": "true"}


def downloading(**source: Any) -> Cluster:
    cluster = a_deployment().asking(source={"uri": URI} | source).upgraded(sources_egress=(WEB,)).cluster()
    cluster.act()
    return cluster


def the_job(cluster: Cluster) -> Body:
    (job,) = cluster.of_kind("Job")
    return job["spec"]["template"]


def policies(cluster: Cluster) -> dict[str, Body]:
    return {each["metadata"]["name"]: each["spec"] for each in cluster.of_kind("NetworkPolicy")}


def test_only_the_pod_that_downloads_is_let_out_and_as_the_installation_says() -> None:
    cluster = downloading()
    policy = policies(cluster)["digits-sources"]
    assert (policy["podSelector"], policy["egress"], policy["ingress"]) == ({"matchLabels": SELECTS}, [WEB], [])
    assert the_job(cluster)["metadata"]["labels"].items() >= SELECTS.items()
    cluster.settings = replace(SETTINGS, sources_egress=())
    cluster.act()
    assert policies(cluster)["digits-sources"]["egress"] == []
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"
    labels = [job["spec"]["template"]["metadata"]["labels"] for job in cluster.of_kind("Job")]
    assert [each["triton-operator.dev/stage"] for each in labels if "triton-operator.dev/downloads" in each] == [
        "source"
    ]


def test_a_source_on_a_claim_is_let_out_nowhere() -> None:
    cluster = a_deployment().upgraded(sources_egress=(WEB,)).cluster()
    cluster.act()
    assert set(policies(cluster)) == {"digits-jobs"}
    assert "triton-operator.dev/downloads" not in the_job(cluster)["metadata"]["labels"]


def test_the_policy_of_a_download_goes_with_it() -> None:
    """Until it is gone it lets nobody else out: its label is on no pod of a source that is mounted."""
    cluster = downloading()
    assert policies(cluster)["digits-sources"]["podSelector"] == {"matchLabels": SELECTS}
    cluster.edit(source={"uri": "pvc://models/digits"})
    cluster.settle()
    assert "digits-sources" not in policies(cluster)
    labels = [job["spec"]["template"]["metadata"]["labels"] for job in cluster.of_kind("Job")]
    assert not [each for each in labels if "triton-operator.dev/downloads" in each]


def test_the_job_alone_mounts_the_secret_and_nothing_says_what_it_holds() -> None:
    cluster = downloading(secretRef={"name": "registry"})
    pod = the_job(cluster)["spec"]
    volume = {"name": "credentials", "secret": {"secretName": "registry", "defaultMode": 0o440}}
    assert volume in pod["volumes"]
    (container,) = pod["containers"]
    assert "initContainers" not in pod
    assert {"name": "credentials", "mountPath": "/credentials", "readOnly": True} in container["volumeMounts"]
    cluster.settle()
    others = [
        body
        for body in (*cluster.of_kind("Job"), *cluster.of_kind("Deployment"))
        if body["metadata"]["labels"].get("triton-operator.dev/stage") != "source"
    ]
    assert others
    assert "registry" not in str(others)


def test_without_a_secret_the_job_mounts_the_claim_alone() -> None:
    pod = the_job(downloading())["spec"]
    assert [each["name"] for each in pod["volumes"]] == ["repository", "tmp"]


def test_another_secret_does_nothing_again() -> None:
    cluster = downloading(secretRef={"name": "registry"})
    cluster.settle()
    story = list(cluster.story)
    cluster.edit(source={"uri": URI, "secretRef": {"name": "other"}})
    cluster.settle()
    assert cluster.story == story
    assert cluster.condition("Ready")["status"] == "True"


def test_proxy_and_authorities_reach_only_the_job_that_downloads() -> None:
    settings = replace(
        SETTINGS, sources_proxy="http://proxy:3128", sources_no_proxy=("a", "b"), sources_ca_bundle="PEM"
    )
    cluster = a_deployment().asking(source={"uri": URI}).where(settings=settings).settled().cluster()
    for job in cluster.of_kind("Job"):
        pod = job["spec"]["template"]["spec"]
        for container in (*pod.get("initContainers", []), *pod["containers"]):
            given = {each["name"]: each["value"] for each in container.get("env", [])}
            found = {name: given.get(name) for name in ("HTTPS_PROXY", "NO_PROXY", "SOURCE_CA_BUNDLE")}
            wanted: dict[str, str | None] = dict.fromkeys(found)
            if container["name"] == "source":
                wanted = {"HTTPS_PROXY": "http://proxy:3128", "NO_PROXY": "a,b", "SOURCE_CA_BUNDLE": "PEM"}
            assert found == wanted


@pytest.mark.parametrize("reason", [Reason.SOURCE_UNREACHABLE, Reason.SOURCE_TRUNCATED])
def test_what_may_pass_is_tried_again(reason: Reason) -> None:
    cluster = downloading()
    cluster.scripts = when("source", Script(exit_code=42, reason=reason, message="models.example is down"))
    cluster.run(60)
    resolved = cluster.condition("SourceResolved")
    assert (resolved["status"], resolved["reason"]) == ("False", str(reason))
    assert "models.example is down" in resolved["message"]
    assert cluster.condition("Stalled")["status"] == "True"
    cluster.scripts = when("source", GOOD)
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"


@pytest.mark.parametrize("reason", [Reason.SOURCE_ACCESS_DENIED, Reason.SOURCE_CERTIFICATE_INVALID])
def test_what_somebody_has_to_change_is_tried_again_seldom_and_at_once_if_they_ask(reason: Reason) -> None:
    cluster = downloading()
    cluster.scripts = when("source", Script(exit_code=42, reason=reason, message="refused"))
    cluster.run(60)
    assert cluster.condition("Stalled")["reason"] == str(reason)
    assert cluster.started("source") == 1
    cluster.scripts = when("source", GOOD)
    cluster.retry()
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"


def test_the_revision_of_a_repository_is_asked_for_and_that_of_a_file_is_not() -> None:
    def asked(**source: Any) -> Body:
        (container,) = the_job(downloading(version="v1.2", **source))["spec"]["containers"]
        request: Body = json.loads(container["args"][1])
        return request

    assert asked(uri="hf://acme/ocr", include=["*.onnx"]).items() >= {"revision": "v1.2", "include": ["*.onnx"]}.items()
    assert asked(uri="mlflow://host/fraud")["revision"] == "v1.2"
    assert "revision" not in asked()


@pytest.mark.parametrize("uri", ["hf://acme/ocr", "pvc://models/ocr"])
@pytest.mark.parametrize(
    "edit",
    [
        {"models": [a_file("ocr/model.onnx", config={"maxBatchSize": 2})]},
        {"models": [a_file("ocr/model.onnx", format="onnx")]},
        {"conversion": {"requirements": "requirements.txt"}},
    ],
    ids=["maxBatchSize", "format", "requirements"],
)
def test_an_edit_that_asks_for_no_other_files_reads_no_uri_again(uri: str, edit: Body) -> None:
    """Nobody released what lies there by now."""
    source = {"uri": uri}
    cluster = Cluster({"source": source, "models": [a_file("ocr/model.onnx")], "dataloader": {"entrypoint": "data.py"}})
    cluster.settle()
    published = cluster.status["source"]
    cluster.scripts = when("source", NEW_FILES)
    cluster.edit(**edit)
    (request,) = (each for each in requests(cluster.until_active("source"), "source", SourceRequest) if each.published)
    assert "digits-sources" not in policies(cluster) or "conversion" in edit
    cluster.settle()
    assert (cluster.condition("Ready")["status"], cluster.status["source"]) == ("True", published)
    assert f"sha256:{request.published}" == published["digest"]
    cluster.edit(source=source | {"version": "v2"})
    cluster.settle()
    assert cluster.status["source"]["digest"] != published["digest"]


def test_another_file_that_is_taken_besides_a_model_is_read() -> None:
    cluster = Cluster({"source": {"uri": "hf://acme/ocr"}, "models": [a_file("ocr/model.onnx")]})
    cluster.settle()
    cluster.edit(conversion={"requirements": "requirements.txt"})
    assert not [each for each in requests(cluster.until_active("source"), "source", SourceRequest) if each.published]
