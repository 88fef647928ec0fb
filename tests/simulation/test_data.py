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
    assert mounts(reference, "/data")["run"]["name"] == "data"
    assert "data" not in request(reference)
    assert '"data_dir":"/data/digits/train"' in str(reference["spec"]["containers"][0]["args"])


def on_its_claim(path: str) -> Cluster:
    """Data on the claim on which the object and a neighbour keep their results."""
    uri = f"pvc://models{path}"
    return (
        a_deployment()
        .asking(dataset={"uri": uri}, repository={"claimName": "models"})
        .where(neighbours=("letters",))
        .settled()
        .cluster()
    )


def test_of_a_claim_with_results_the_users_code_sees_the_data_s_folder_alone(attack: Attack) -> None:
    cluster = on_its_claim("/data/digits/")
    (reference,) = jobs(cluster, "reference")
    assert mounts(reference, "/data/data/digits") == {
        "run": {"name": "data", "mountPath": "/data/data/digits", "subPath": "data/digits", "readOnly": True}
    }
    assert "/data" not in [each["mountPath"] for each in reference["spec"]["initContainers"][1]["volumeMounts"]]
    attack("author of an object", "the files of others, by a dataset on the shared claim", "only the folder is mounted")


def test_data_is_never_a_whole_claim_on_which_others_keep_their_results(attack: Attack) -> None:
    cluster = on_its_claim("")
    stalled = cluster.condition("Stalled")
    assert (stalled["status"], stalled["reason"]) == ("True", "NotAllowed")
    assert "spec.dataset.uri names all of claim models, on which letters" in stalled["message"]
    assert not jobs(cluster, "reference")
    cluster.neighbours = ()
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"
    attack(
        "author of an object", "the files of others, by all of the shared claim as the dataset", str(stalled["message"])
    )


def test_data_on_the_claim_of_another_object_is_its_folder_alone(attack: Attack) -> None:
    cluster = with_data("pvc://letters-repository/data")
    cluster.dataset_neighbours = ("letters",)
    cluster.settle()
    (reference,) = jobs(cluster, "reference")
    assert mounts(reference, "/data/data")["run"]["subPath"] == "data"
    assert "/data" not in [each["mountPath"] for each in reference["spec"]["initContainers"][1]["volumeMounts"]]
    whole = with_data("pvc://letters-repository")
    whole.dataset_neighbours = ("letters",)
    whole.settle()
    assert not jobs(whole, "reference")
    assert "all of claim letters-repository, on which letters" in whole.condition("Stalled")["message"]
    attack("author of an object", "the files of others, by a dataset on their claim", "only a folder is mounted")


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


def test_a_failure_names_the_field_to_edit() -> None:
    cluster = with_data()
    words = "models.example answered 401; name a Secret with credentials in spec.source.secretRef"
    denied = Script(exit_code=42, reason=Reason.SOURCE_ACCESS_DENIED, message=words)
    cluster.scripts = lambda stage, name, asked: denied if stage == "source" and asked.uri == DATA else GOOD
    cluster.until_has("SourceAccessDenied", "Stalled")
    stalled = cluster.condition("Stalled")
    assert (stalled["status"], stalled["reason"]) == ("True", "SourceAccessDenied")
    assert "spec.dataset.secretRef" in stalled["message"]
