"""Data for the dataloader: mounted from a claim, or published like the source."""

from dataclasses import replace
from typing import Any

import pytest

from tests.conftest import Attack
from tests.simulation.answers import GOOD, Script
from tests.simulation.cluster import SETTINGS, Cluster
from tests.simulation.deployments import a_spec
from tests.simulation.made_jobs import WEB, jobs, request, sha256
from tests.states.deployment import a_deployment
from triton_converters.contract.reasons import Reason

Body = dict[str, Any]
DATA = "oci://models.example/acme/digits:v1"


def with_data(uri: str = DATA, **data: Any) -> Cluster:
    dataloader = {"entrypoint": "dataloader.py", "arguments": {"data_dir": "$(DATASET)/train"}}
    spec = a_spec(source={"uri": "configmap://digits"}, dataset={"uri": uri} | data, dataloader=dataloader)
    return Cluster(spec, settings=replace(SETTINGS, sources_egress=(WEB,)))


def mounts(job: Body, path: str) -> dict[str, Body]:
    """The mounts at a path, by container."""
    containers = [*job["spec"].get("initContainers", []), *job["spec"]["containers"]]
    found = {each["name"]: [m for m in each["volumeMounts"] if m["mountPath"] == path] for each in containers}
    return {name: mount for name, (mount, *_) in ((n, m) for n, m in found.items() if m)}


def test_only_the_job_that_downloads_the_data_gets_the_secret_and_is_let_out() -> None:
    cluster = with_data(secretRef={"name": "registry"})
    cluster.act()
    found = jobs(cluster, "source")
    assert sorted(request(each)["uri"] for each in found) == ["configmap://digits", DATA]
    assert [request(each)["uri"] for each in found if "registry" in str(each["spec"]["volumes"])] == [DATA]
    out = [each for each in found if "triton-operator.dev/downloads" in each["metadata"]["labels"]]
    assert [request(each)["uri"] for each in out] == [DATA]


def test_only_the_users_code_reads_it_and_only_reads() -> None:
    cluster = with_data()
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"
    assert f"{DATA} is published as sha256:{sha256(DATA)}" in cluster.condition("SourceResolved")["message"]
    mount = {
        "name": "repository",
        "mountPath": "/data",
        "subPath": f".triton-operator/sources/{sha256(DATA)}",
        "readOnly": True,
    }
    for stage in ("reference", "convert", "metrics"):
        for job in jobs(cluster, stage):
            assert mounts(job, "/data") == {"run": mount}
            assert request(job)["data"] == sha256(DATA)
    assert '"data_dir":"/data/train"' in str(jobs(cluster, "reference")[0]["spec"]["containers"][0]["args"])
    for stage in ("source", "profile", "measure"):
        assert "/data" not in str([each["spec"]["containers"] for each in jobs(cluster, stage)])
    assert "'/data'" not in str(cluster.of_kind("Deployment"))


def test_data_on_a_claim_is_mounted_and_read_by_no_job_of_ours() -> None:
    cluster = with_data("pvc://datasets/digits")
    cluster.settle()
    assert cluster.started("source") == 1
    (reference,) = jobs(cluster, "reference")
    assert mounts(reference, "/data/digits")["run"]["name"] == "data"
    assert "data" not in request(reference)
    assert '"data_dir":"/data/digits/train"' in str(reference["spec"]["containers"][0]["args"])


@pytest.mark.parametrize("claim", ["models", "letters-repository", "digits-repository"])
def test_of_a_claim_the_users_code_sees_the_data_s_folder_alone(claim: str, attack: Attack) -> None:
    """Whoever keeps results on the claim: nobody does, others, or the object itself."""
    cluster = with_data(f"pvc://{claim}/data/digits/")
    cluster.settle()
    for stage in ("reference", "convert", "metrics"):
        for job in jobs(cluster, stage):
            looks, run = job["spec"]["initContainers"]
            name = "repository" if claim == "digits-repository" else "data"
            folder = {"name": name, "mountPath": "/data/data/digits", "subPath": "data/digits", "readOnly": True}
            assert [each for each in run["volumeMounts"] if each["mountPath"].startswith("/data")] == [folder]
            # It starts first, and looks where the folder leads.
            assert mounts(job, "/data") == {"prepare": {"name": name, "mountPath": "/data", "readOnly": True}}
            assert {"name": "TRITON_DATASET", "value": f"pvc://{claim}/data/digits/"} in looks["env"]
    attack("author of an object", f"the files of others on claim {claim}, by a dataset", "only the folder is mounted")


@pytest.mark.parametrize("field", ["source", "weights", "dataset"])
def test_no_pod_has_two_volumes_of_one_claim(field: str) -> None:
    """Its kubelet would mount one of them, and wait for the other for good."""
    cluster = a_deployment().asking(**{field: {"uri": "pvc://digits-repository/files"}}).serving().cluster()
    for job in cluster.of_kind("Job"):
        pod = job["spec"]["template"]["spec"]
        claims = [
            each["persistentVolumeClaim"]["claimName"] for each in pod["volumes"] if "persistentVolumeClaim" in each
        ]
        assert len(set(claims)) == len(claims), job["metadata"]["name"]
        named = {
            mount["name"]
            for each in [*pod.get("initContainers", []), *pod["containers"]]
            for mount in each["volumeMounts"]
        }
        assert named <= {each["name"] for each in pod["volumes"]}


WHOLE = ["pvc://models", "pvc://models/", "pvc://models//", "pvc://models/.", "pvc://models/./data", "pvc://models/..",
         "pvc://models/.triton-operator/sources", "pvc://models/data/../.triton-operator"]  # fmt: skip


@pytest.mark.parametrize("uri", WHOLE)
def test_no_dataset_is_a_whole_claim_or_what_the_operator_keeps_there(uri: str, attack: Attack) -> None:
    """Also where the API server has an older definition, without the rule that refuses it."""
    cluster = with_data(uri)
    cluster.act()
    stalled = cluster.condition("Stalled")
    assert (stalled["status"], stalled["reason"]) == ("True", "InvalidSpec")
    assert "pvc://CLAIM/PATH" in stalled["message"]
    assert not cluster.of_kind("Job")
    attack("author of an object", f"the files of others, by the dataset {uri}", str(stalled["message"]))


def test_other_data_is_converted_with_again_and_the_same_is_not() -> None:
    cluster = with_data()
    cluster.settle()
    references = cluster.started("reference")
    story = cluster.started("convert")
    cluster.edit(dataset={"uri": DATA, "version": "2026-11-23"})
    cluster.settle()
    assert (cluster.started("reference"), cluster.started("convert")) == (references, story)
    cluster.edit(dataset={"uri": "oci://models.example/acme/digits:v2"})
    cluster.settle()
    assert cluster.started("reference") == references + 1
    assert cluster.started("convert") > story


@pytest.mark.parametrize("change", [{"secretRef": {"name": "other"}}, {"sha256": sha256(DATA)}])
def test_who_reads_it_and_what_is_expected_change_nothing(change: Body) -> None:
    cluster = with_data()
    cluster.settle()
    kept = (cluster.started("reference"), cluster.started("convert"), cluster.serving())
    cluster.edit(dataset={"uri": DATA} | change)
    cluster.settle()
    assert (cluster.started("reference"), cluster.started("convert"), cluster.serving()) == kept


def test_what_is_source_and_data_is_read_once() -> None:
    cluster = (
        a_deployment()
        .asking(source={"uri": "configmap://digits"}, dataset={"uri": "configmap://digits"})
        .settled()
        .cluster()
    )
    assert cluster.started("source") == 1
    assert request(jobs(cluster, "reference")[0])["data"] == sha256("configmap://digits")


def test_a_job_is_told_its_field() -> None:
    cluster = with_data()
    denied = Script(exit_code=42, reason=Reason.SOURCE_ACCESS_DENIED, message="models.example answered 401")
    cluster.scripts = lambda stage, name, asked: (
        denied if stage == "source" and (asked.uri, asked.field) == (DATA, "spec.dataset") else GOOD
    )
    cluster.until_has("SourceAccessDenied", "Stalled")
    stalled = cluster.condition("Stalled")
    assert (stalled["status"], stalled["reason"]) == ("True", "SourceAccessDenied")
    assert "models.example answered 401" in stalled["message"]
