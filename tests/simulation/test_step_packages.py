"""Packages of Python steps: which Jobs install them, in whose image, and what a change of them repeats."""

from dataclasses import replace
from typing import Any

import pytest

from tests.simulation import answers
from tests.simulation.answers import Script, when
from tests.simulation.cluster import SETTINGS, Cluster
from tests.simulation.deployments import a_step, an_ensemble
from tests.simulation.edits import another_source
from tests.simulation.made_jobs import WEB, jobs, request
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import SourceResult

Body = dict[str, Any]
ALLOWED = replace(SETTINGS, allowed_python_steps=True, sources_egress=(WEB,))
FILE = "steps/requirements.txt"


def requiring(settings: Any = ALLOWED, **fields: Any) -> Cluster:
    """A cluster with an object whose step needs packages; keywords are fields of its spec."""
    return Cluster(a_step(requirements=FILE) | fields, settings=settings)


def settled(settings: Any = ALLOWED, **fields: Any) -> Cluster:
    cluster = requiring(settings, **fields)
    cluster.settle()
    return cluster


def installing(cluster: Cluster, served: bool) -> Body:
    """The Job for the server's image, or for the framework's."""
    (job,) = (each for each in jobs(cluster, "packages") if request(each).get("served", False) == served)
    return job


def containers(job: Body) -> list[Body]:
    return [*job["spec"]["initContainers"], *job["spec"]["containers"]]


def images(job: Body) -> dict[str, str]:
    return {each["name"]: each["image"] for each in containers(job)}


def key(cluster: Cluster, served: bool) -> str:
    return str(request(installing(cluster, served))["key"])


def stages(cluster: Cluster) -> list[str]:
    return [each.split()[0] for each in cluster.story if each.split()[0] in ("source", "packages", "reference")]


def test_they_are_installed_for_the_framework_and_for_the_server_before_the_reference() -> None:
    cluster = settled()
    assert cluster.condition("Ready")["status"] == "True"
    assert stages(cluster) == ["source", "packages", "packages", "reference"]
    ours = SETTINGS.converter_image
    assert images(installing(cluster, served=False)) == {"prepare": ours, "run": ours, "packages": ours}
    assert images(installing(cluster, served=True)) == {"prepare": ours, "run": SETTINGS.server_image, "packages": ours}


def test_the_reference_imports_the_ones_and_the_server_the_others() -> None:
    cluster = settled()
    for stage in ("reference", "convert", "metrics"):
        (job, *_) = jobs(cluster, stage)
        assert request(job)["packages"] == key(cluster, served=False)
        assert key(cluster, served=True) not in str([each["spec"] for each in jobs(cluster, "reference")])
    (converting,) = jobs(cluster, "convert")
    assert [each.get("step_packages", "") for each in request(converting)["members"]] == [key(cluster, True), ""]
    assert "step_packages" not in set(request(converting))
    for stage in ("profile", "measure"):
        assert "/packages" not in str([each["spec"] for each in jobs(cluster, stage)])
    assert "/packages" not in str(cluster.of_kind("Deployment"))


def test_only_these_jobs_are_let_out() -> None:
    cluster = settled(conversion={"indexSecretRef": {"name": "registry"}})
    label = "triton-operator.dev/downloads"
    out = [each for each in cluster.of_kind("Job") if label in each["spec"]["template"]["metadata"]["labels"]]
    assert [each["metadata"]["labels"]["triton-operator.dev/stage"] for each in out] == ["packages", "packages"]
    assert "digits-sources" in {each["metadata"]["name"] for each in cluster.of_kind("NetworkPolicy")}
    for job in jobs(cluster, "packages"):
        assert [each["name"] for each in containers(job) if "credentials" in str(each["volumeMounts"])] == ["run"]


def test_one_file_for_the_framework_and_the_step_is_read_once() -> None:
    cluster = settled(conversion={"requirements": FILE})
    alone = requiring()
    alone.settle()
    assert key(cluster, served=False) == key(alone, served=False)
    assert key(cluster, served=True) == key(alone, served=True)


def test_the_files_of_all_code_are_resolved_together_for_the_framework_and_apart_for_servers() -> None:
    spec = a_step(requirements=FILE)
    spec["models"][1] |= {"format": "triton-python", "entrypoint": "last/last.py", "requirements": "last/needs.txt"}
    del spec["models"][1]["candidates"]
    cluster = Cluster(spec | {"conversion": {"requirements": "requirements.txt"}}, settings=ALLOWED)
    cluster.settle()
    asked = [request(each) for each in jobs(cluster, "packages")]
    files = {(each["path"], *(other["path"] for other in each.get("others", []))) for each in asked}
    assert files == {("requirements.txt", FILE, "last/needs.txt"), (FILE,), ("last/needs.txt",)}
    (converting,) = jobs(cluster, "convert")
    assert len({each["step_packages"] for each in request(converting)["members"]}) == 2


def test_files_with_the_same_content_are_installed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    result = answers._result

    def alike(stage: str, *given: Any) -> Any:
        found = result(stage, *given)
        return replace(found, step_requirements=("a" * 64,) * 2) if isinstance(found, SourceResult) else found

    monkeypatch.setattr(answers, "_result", alike)
    spec = a_step(requirements=FILE)
    spec["models"][1] |= {"format": "triton-python", "entrypoint": "last/last.py", "requirements": "last/needs.txt"}
    del spec["models"][1]["candidates"]
    cluster = settled(**spec)
    assert cluster.condition("Ready")["status"] == "True"
    assert [request(each)["path"] for each in jobs(cluster, "packages") if request(each).get("served")] == [FILE]


def test_the_users_own_image_has_the_packages_and_the_server_gets_them() -> None:
    cluster = settled(conversion={"image": "example/mine:1"})
    assert [request(each)["served"] for each in jobs(cluster, "packages")] == [True]
    assert "packages" not in request(jobs(cluster, "reference")[0])


def test_another_file_repeats_what_depends_on_it() -> None:
    cluster = settled()
    before = {stage: cluster.started(stage) for stage in ("source", "packages", "reference", "convert", "profile")}
    serving = cluster.serving()
    spec = cluster.spec["models"]
    cluster.edit(models=[spec[0] | {"requirements": "other.txt"}, spec[1]])
    cluster.settle()
    assert {stage: cluster.started(stage) for stage in before} == {stage: 2 * times for stage, times in before.items()}
    assert cluster.serving() != serving


def test_the_same_file_in_another_source_is_installed_once_and_so_is_it_in_another_release() -> None:
    cluster = settled()
    cluster.edit(another_source())
    cluster.settle()
    assert (cluster.started("packages"), cluster.started("reference")) == (2, 2)
    cluster.settings = replace(cluster.settings, converter_image="example/converter:2")
    cluster.settle()
    assert cluster.started("packages") == 2


def test_another_server_image_installs_for_the_server_alone() -> None:
    cluster = settled()
    framework, server = key(cluster, served=False), key(cluster, served=True)
    cluster.settings = replace(cluster.settings, server_image="example/server:2")
    cluster.edit(accuracy={**cluster.spec["accuracy"], "maxSamples": 8})
    cluster.settle()
    assert cluster.started("packages") == 3
    assert {request(each)["packages"] for each in jobs(cluster, "reference")} == {framework}
    assert server not in {
        each.get("step_packages") for job in jobs(cluster, "convert") for each in request(job)["members"]
    }


def test_a_file_that_moves_from_the_framework_to_a_step_takes_the_installations_images() -> None:
    """The images of before may be from before steps had packages."""
    cluster = Cluster(a_step() | {"conversion": {"requirements": FILE}}, settings=ALLOWED)
    cluster.settle()
    cluster.settings = replace(cluster.settings, converter_image="example/converter:2")
    cluster.edit(conversion={}, models=a_step(requirements=FILE)["models"])
    cluster.settle()
    assert cluster.status["images"]["converter"] == "example/converter:2"
    assert cluster.started("convert") == 2


def test_a_failure_names_the_file_and_the_server() -> None:
    cluster = requiring()
    cluster.scripts = when("packages", Script(exit_code=42, reason=Reason.PACKAGE_NOT_FOUND, message="compass: no"))
    cluster.settle()
    assert cluster.condition("Stalled")["message"] == "packages: compass: no"
    cluster = requiring(conversion={"image": "example/mine:1"})
    cluster.scripts = when("packages", Script(exit_code=42, reason=Reason.PACKAGE_NOT_FOUND, message="compass: no"))
    cluster.settle()
    assert cluster.condition("Stalled")["message"] == f"packages of {FILE} for the server: compass: no"
    assert cluster.started("reference") == 0


@pytest.mark.parametrize(("tag", "taken"), [("24.10-py3", False), ("24.11-py3", True), ("mine", True)])
def test_a_release_with_an_older_python_is_refused_in_words(tag: str, taken: bool) -> None:
    cluster = settled(replace(ALLOWED, server_image=f"nvcr.io/nvidia/tritonserver:{tag}"))
    shown = cluster.candidate("onnx-fp32")
    assert (shown.get("reason") != "FormatNotServed") is taken
    assert ("ask the administrator for release 24.11 or later" not in shown.get("message", "")) is taken
    assert cluster.started("packages") == (2 if taken else 0)


def test_the_pod_may_pull_the_servers_image() -> None:
    cluster = settled(serving={"pod": {"imagePullSecrets": [{"name": "of-servers"}]}})
    secrets = [installing(cluster, served)["spec"].get("imagePullSecrets", []) for served in (True, False)]
    assert secrets == [[{"name": "of-servers"}], []]


def test_an_object_without_them_installs_nothing() -> None:
    for spec in (a_step(), an_ensemble("onnx-fp32")):
        cluster = Cluster(spec, settings=ALLOWED)
        cluster.settle()
        assert cluster.started("packages") == 0
        assert "step_packages" not in str(cluster.of_kind("Job"))
