"""Packages that the user's code needs: a Job of our own code, and what only user code sees."""

from dataclasses import replace
from typing import Any

import pytest

from tests.simulation.answers import GOOD, Fate, when
from tests.simulation.cluster import SETTINGS, Cluster
from tests.simulation.deployments import a_model, a_spec
from tests.simulation.made_jobs import WEB, jobs, request
from triton_converters.contract.reasons import Reason

Body = dict[str, Any]
OUT = "triton-operator.dev/downloads"


def requiring(**conversion: Any) -> Cluster:
    spec = a_spec(conversion={"requirements": "requirements.txt"} | conversion)
    return Cluster(spec, settings=replace(SETTINGS, sources_egress=(WEB,)))


def key(cluster: Cluster) -> str:
    (job,) = jobs(cluster, "packages")
    return str(request(job)["key"])


def test_they_are_installed_between_the_source_and_the_reference() -> None:
    cluster = requiring()
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"
    assert [each.split()[0] for each in cluster.story if each.split()[0] in ("source", "packages", "reference")] == [
        "source",
        "packages",
        "reference",
    ]


def test_without_a_requirements_file_there_is_no_such_job() -> None:
    cluster = Cluster(a_spec())
    cluster.settle()
    assert cluster.started("packages") == 0
    assert '"packages"' not in str(cluster.of_kind("Job"))


def test_only_user_code_sees_them_and_only_reads() -> None:
    cluster = requiring()
    cluster.settle()
    mount = {
        "name": "repository",
        "mountPath": "/packages",
        "subPath": f".triton-operator/packages/{key(cluster)}/site",
        "readOnly": True,
    }
    for stage in ("reference", "convert", "metrics"):
        for job in jobs(cluster, stage):
            containers = [*job["spec"]["initContainers"], *job["spec"]["containers"]]
            assert [each["name"] for each in containers if mount in each["volumeMounts"]] == ["run"]
            assert request(job)["packages"] == key(cluster)
    for stage in ("source", "packages", "profile", "measure"):
        assert "/packages" not in str([each["spec"].get("volumeMounts") for each in jobs(cluster, stage)])
    assert "/packages" not in str(cluster.of_kind("Deployment"))


def test_the_job_runs_our_code_alone_and_only_it_is_let_out() -> None:
    cluster = requiring(indexSecretRef={"name": "registry"})
    cluster.settle()
    (job,) = jobs(cluster, "packages")
    (container,) = job["spec"]["containers"]
    assert "initContainers" not in job["spec"]
    assert container["args"][0] == "packages"
    assert [each["metadata"]["labels"].get(OUT) for each in jobs(cluster, "packages")] == ["true"]
    others = [each for each in cluster.of_kind("Job") if each["spec"]["template"] is not job]
    assert OUT not in str(others)
    assert "registry" not in str([*others, *cluster.of_kind("Deployment")])
    assert {"name": "credentials", "mountPath": "/credentials", "readOnly": True} in container["volumeMounts"]
    assert "digits-sources" in {each["metadata"]["name"] for each in cluster.of_kind("NetworkPolicy")}


def test_the_installations_index_and_proxy_reach_the_job_and_no_user_code() -> None:
    cluster = requiring(pod={"env": [{"name": "PIP_INDEX_URL", "value": "https://elsewhere.example"}]})
    cluster.settings = replace(
        cluster.settings, sources_package_index="https://index.example/simple", sources_proxy="http://proxy:3128"
    )
    cluster.settle()
    (job,) = jobs(cluster, "packages")
    given = {each["name"]: each["value"] for each in job["spec"]["containers"][0]["env"]}
    assert (given["PIP_INDEX_URL"], given["HTTPS_PROXY"]) == ("https://index.example/simple", "http://proxy:3128")
    for stage in ("reference", "convert", "metrics", "profile"):
        assert "index.example" not in str(jobs(cluster, stage))
        assert "proxy:3128" not in str(jobs(cluster, stage))


def test_they_are_of_the_image_that_runs_the_users_code() -> None:
    keras = a_model(format="tf-keras", candidates=[{"name": "onnx-fp32", "format": "onnx", "precision": "fp32"}])
    cluster = Cluster(a_spec(models=[keras], conversion={"requirements": "requirements.txt"}))
    cluster.settle()
    images = {
        stage: [each["image"] for job in jobs(cluster, stage) for each in job["spec"]["containers"]]
        for stage in ("packages", "source")
    }
    assert images["packages"] == [SETTINGS.converter_tensorflow_image]
    assert images["source"] == [SETTINGS.converter_image]


def test_another_file_is_converted_anew_and_another_index_is_not() -> None:
    cluster = requiring()
    cluster.settle()
    serving, story = cluster.serving(), list(cluster.story)
    cluster.settings = replace(cluster.settings, sources_package_index="https://mirror.example/simple")
    cluster.settle()
    assert cluster.story == story
    conversions = cluster.started("convert")
    cluster.edit(conversion={"requirements": "more/requirements.txt"})
    cluster.settle()
    assert cluster.started("packages") == 2
    assert cluster.started("convert") == 2 * conversions
    assert cluster.serving() != serving


def test_the_same_file_in_another_source_is_installed_once() -> None:
    cluster = requiring()
    cluster.settle()
    first = key(cluster)
    cluster.edit(source={"uri": "pvc://models/other"})
    cluster.settle()
    assert cluster.started("packages") == 1
    assert {request(each)["packages"] for each in jobs(cluster, "reference")} == {first}


def test_while_they_are_installed_the_condition_says_so() -> None:
    cluster = requiring()
    cluster.fates = when("packages", Fate(hangs=True))
    cluster.run(20)
    converted = cluster.condition("Converted")
    assert (converted["status"], converted["reason"]) == ("Unknown", "Running")
    assert converted["message"] == "the packages Job runs"


@pytest.mark.parametrize("reason", [Reason.PACKAGE_NOT_FOUND, Reason.PACKAGE_CONFLICT, Reason.INDEX_UNREACHABLE])
def test_a_failure_stops_the_object_until_somebody_acts(reason: Reason) -> None:
    cluster = requiring()
    cluster.fates = when("packages", Fate(exit_code=42, reason=reason, message="compass: no"))
    cluster.settle()
    stalled = cluster.condition("Stalled")
    assert (stalled["status"], stalled["reason"]) == ("True", str(reason))
    assert stalled["message"] == "packages: compass: no"
    assert cluster.started("reference") == 0
    cluster.fates = when("packages", GOOD)
    cluster.retry()
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"


def test_a_file_that_is_not_there_is_the_sources_failure() -> None:
    cluster = requiring()
    message = "pvc://models/digits has no file requirements.txt"
    cluster.fates = when("source", Fate(exit_code=42, reason=Reason.REQUIREMENTS_MISSING, message=message))
    cluster.settle()
    resolved = cluster.condition("SourceResolved")
    assert (resolved["status"], resolved["reason"]) == ("False", "RequirementsMissing")
