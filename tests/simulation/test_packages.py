"""Packages that the user's code needs: a Job of our own code, and what only user code sees."""

from dataclasses import replace
from typing import Any

import pytest

from tests.simulation.answers import GOOD, Script, when
from tests.simulation.cluster import SETTINGS, Cluster
from tests.simulation.deployments import a_model, a_spec
from tests.simulation.edits import another_source
from tests.simulation.made_jobs import WEB, jobs, request
from tests.states.deployment import a_deployment
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
    cluster = a_deployment().settled().cluster()
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


def installing(cluster: Cluster) -> list[Body]:
    """`prepare`, the container with pip, and the one that publishes."""
    cluster.settle()
    (job,) = jobs(cluster, "packages")
    found = [*job["spec"].get("initContainers", []), *job["spec"]["containers"]]
    assert [each["name"] for each in found] == ["prepare", "run", "packages"]
    return found


def variables(container: Body) -> dict[str, str]:
    return {each["name"]: each["value"] for each in container["env"]}


def test_pip_runs_without_the_claim() -> None:
    prepare, run, publish = installing(requiring())
    mounts = [{each["name"]: each.get("readOnly", False) for each in one["volumeMounts"]} for one in (prepare, publish)]
    assert [each["repository"] for each in mounts] == [True, False]
    assert [each["incoming"] for each in mounts] == [False, True]
    assert [{each["name"] for each in run["volumeMounts"]}, run["args"]] == [
        {"incoming", "tmp", "converters"},
        ["run", "packages"],
    ]


def test_the_job_runs_our_code_alone_and_only_it_is_let_out() -> None:
    cluster = requiring(indexSecretRef={"name": "registry"})
    prepare, run, publish = installing(cluster)
    assert [each["metadata"]["labels"].get(OUT) for each in jobs(cluster, "packages")] == ["true"]
    others = [each for each in cluster.of_kind("Job") if "packages" not in each["metadata"]["labels"].values()]
    assert OUT not in str(others)
    assert "registry" not in str([*others, *cluster.of_kind("Deployment")])
    assert {"name": "credentials", "mountPath": "/credentials", "readOnly": True} in run["volumeMounts"]
    assert "credentials" not in str([prepare, publish])
    assert "digits-sources" in {each["metadata"]["name"] for each in cluster.of_kind("NetworkPolicy")}


def test_the_installations_index_and_proxy_reach_pip_alone_and_the_users_variables_do_not() -> None:
    cluster = requiring(pod={"env": [{"name": "CHOSEN", "value": "by the user"}]})
    cluster.settings = replace(
        cluster.settings, sources_package_index="https://index.example/simple", sources_proxy="http://proxy:3128"
    )
    prepare, run, publish = installing(cluster)
    given = variables(run)
    assert (given["PIP_INDEX_URL"], given["HTTPS_PROXY"]) == ("https://index.example/simple", "http://proxy:3128")
    assert "CHOSEN" not in given
    for elsewhere in (prepare, publish, *(jobs(cluster, each) for each in ("reference", "convert", "profile"))):
        assert "index.example" not in str(elsewhere)
        assert "proxy:3128" not in str(elsewhere)


def test_they_are_of_the_image_that_runs_the_users_code() -> None:
    keras = a_model(format="tf-keras", candidates=[{"name": "onnx-fp32", "format": "onnx", "precision": "fp32"}])
    cluster = a_deployment().asking(models=[keras], conversion={"requirements": "requirements.txt"}).cluster()
    images = [each["image"] for each in installing(cluster)]
    assert images == [SETTINGS.converter_image, SETTINGS.converter_tensorflow_image, SETTINGS.converter_image]


def test_an_object_that_is_pinned_to_older_images_gets_the_programs_of_the_installation() -> None:
    """pip looks for wheels that fit the image that will import them, but it is not that image's pip."""
    cluster = requiring()
    cluster.scripts = when("packages", Script(hangs=True))
    old = [each["image"] for each in installing(cluster)]
    known = key(cluster)
    cluster.settings = replace(cluster.settings, converter_image="example/converter:2")
    prepare, run, publish = installing(cluster)
    assert [prepare["image"], run["image"], publish["image"]] == ["example/converter:2", old[1], "example/converter:2"]
    assert variables(run)["PYTHONPATH"] == "/converters"
    assert {"name": "converters", "mountPath": "/converters", "readOnly": True} in run["volumeMounts"]
    assert {"name": "converters", "mountPath": "/converters"} in prepare["volumeMounts"]
    assert key(cluster) == known


def test_a_result_stays_valid_in_another_release() -> None:
    cluster = requiring()
    cluster.settle()
    cluster.settings = replace(cluster.settings, converter_image="example/converter:2")
    cluster.settle()
    assert cluster.started("packages") == 1


def test_pip_needs_no_stronger_boundary_than_other_downloads() -> None:
    cluster = requiring()
    cluster.settings = replace(cluster.settings, user_code_runtime_class="gvisor")
    cluster.settle()
    classes = {stage: jobs(cluster, stage)[0]["spec"].get("runtimeClassName") for stage in ("packages", "reference")}
    assert classes == {"packages": None, "reference": "gvisor"}


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
    cluster.edit(another_source())
    cluster.settle()
    assert cluster.started("packages") == 1
    assert {request(each)["packages"] for each in jobs(cluster, "reference")} == {first}


def test_while_they_are_installed_the_condition_says_so() -> None:
    cluster = requiring()
    cluster.scripts = when("packages", Script(hangs=True))
    cluster.run(20)
    converted = cluster.condition("Converted")
    assert (converted["status"], converted["reason"]) == ("Unknown", "Running")
    assert converted["message"] == "the packages Job runs"


@pytest.mark.parametrize("reason", [Reason.PACKAGE_NOT_FOUND, Reason.INDEX_UNTRUSTED])
def test_a_failure_stops_the_object_until_somebody_acts(reason: Reason) -> None:
    cluster = requiring()
    cluster.scripts = when("packages", Script(exit_code=42, reason=reason, message="compass: no"))
    cluster.settle()
    stalled = cluster.condition("Stalled")
    assert (stalled["status"], stalled["reason"]) == ("True", str(reason))
    assert stalled["message"] == "packages: compass: no"
    assert cluster.started("reference") == 0
    cluster.scripts = when("packages", GOOD)
    cluster.retry()
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"


def test_a_file_that_is_not_there_is_the_sources_failure() -> None:
    cluster = requiring()
    message = "pvc://models/digits has no file requirements.txt"
    cluster.scripts = when("source", Script(exit_code=42, reason=Reason.REQUIREMENTS_INVALID, message=message))
    cluster.settle()
    resolved = cluster.condition("SourceResolved")
    assert (resolved["status"], resolved["reason"]) == ("False", "RequirementsInvalid")
