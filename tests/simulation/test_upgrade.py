"""A newer operator: what it would write otherwise changes nothing that is done or serves."""

from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from tests.simulation.answers import FINAL, when
from tests.simulation.cluster import SETTINGS, Cluster, pulled
from tests.simulation.deployments import CANDIDATES, a_model, candidate
from tests.simulation.edits import Edit, another_version
from tests.states.deployment import a_deployment
from triton_operator import names
from triton_operator.resources import pod
from triton_operator.settings import DefaultResources

NEWER = replace(
    SETTINGS, converter_image="example/converter:2", server_image="example/server:2", server_arguments=("--x=1",)
)
SPREAD = {"topologySpreadConstraints": [{"topologyKey": "topology.kubernetes.io/zone"}]}
OLD_IMAGES = {
    "converter": "example/converter:1",
    "converterTensorflow": "example/converter-tensorflow:1",
    "commandsVersion": 1,
    "server": "example/server:1",
}
NEW_IMAGES = OLD_IMAGES | {
    "converter": "example/converter:2",
    "server": "example/server:2",
    "serverArguments": ["--x=1"],
}


def images(cluster: Cluster) -> dict[str, Any]:
    """The pinned images."""
    digests = ("specDigest", "requestDigest")
    return {name: value for name, value in cluster.status["images"].items() if name not in digests}


def used(cluster: Cluster, stage: str) -> set[str]:
    """The images of all containers of the stage's Jobs that exist."""
    return {
        container["image"]
        for each in cluster.of_kind("Job")
        if each["metadata"]["labels"][names.STAGE_LABEL] == stage
        for pods in [each["spec"]["template"]["spec"]]
        for container in [*pods["containers"], *pods.get("initContainers", [])]
    }


def edited(cluster: Cluster, *edits: Edit, **fields: Any) -> list[str]:
    """What an edit runs until the cluster is at rest again."""
    before = len(cluster.story)
    cluster.edit(*edits, **fields)
    cluster.settle()
    return cluster.story[before:]


def test_newer_default_images_roll_nothing_out(serving: Cluster) -> None:
    story = list(serving.story)
    serving.settings = NEWER
    assert serving.act() == 1, "the status says that there are others"
    serving.settle()
    assert serving.story == story
    notice = serving.condition("NewImagesAvailable")
    assert (notice["status"], "converter, server, serverArguments" in notice["message"]) == ("True", True)
    assert serving.status["newImages"] == NEW_IMAGES
    assert [each.type for each in serving.events if each.reason == "NewImages"] == ["Normal"]


def test_a_server_image_of_ones_own_is_no_other(serving: Cluster) -> None:
    serving.edit(serving={"image": "example/triton:1"})
    serving.settle()
    serving.settings = replace(SETTINGS, server_image="example/server:2")
    serving.settle()
    assert "newImages" not in serving.status
    assert all(each["type"] != "NewImagesAvailable" for each in serving.status["conditions"])


def test_who_asks_for_newer_images_gets_them_once_through_all_gates(serving: Cluster) -> None:
    first, story = serving.serving(), len(serving.story)
    serving.settings = NEWER
    serving.updates = 1
    ready = set()
    for _ in serving.passes(until=lambda serving: serving.serving() != first):
        ready.add((serving.condition("Ready")["status"], serving.condition("UpToDate")["status"]))
    assert ready == {("True", "False")}, "what was active serves on"
    serving.settle()
    assert {"reference", "convert onnx-fp32", "profile onnx-fp32", "metrics", "promotion"} <= set(serving.story[story:])
    assert (images(serving), "newImages" in serving.status) == (NEW_IMAGES, False)
    assert serving.condition("UpToDate")["status"] == "True"
    newest = replace(NEWER, server_image="example/server:3")
    story, serving.settings = len(serving.story), newest
    serving.settle()
    assert (images(serving), serving.story[story:]) == (NEW_IMAGES, []), "the same wish is not granted again"
    serving.updates = 2
    serving.settle()
    assert images(serving) == NEW_IMAGES | {"server": "example/server:3"}


def test_a_wish_for_images_that_is_taken_back_takes_nothing_back(serving: Cluster) -> None:
    serving.settings = NEWER
    serving.updates = 1
    serving.settle()
    story, serving.updates = len(serving.story), 0
    serving.settle()
    assert (images(serving), serving.story[story:]) == (NEW_IMAGES, [])


def test_a_wish_for_images_is_remembered_by_what_an_edit_goes_back_to(serving: Cluster) -> None:
    serving.settings = NEWER
    serving.updates = 1
    serving.settle()
    edited(serving, another_version())
    assert "reference" not in edited(serving, source={"uri": "pvc://models/digits"})
    assert images(serving) == NEW_IMAGES


def test_newer_images_that_fail_leave_what_serves(serving: Cluster) -> None:
    first, serving.settings = serving.serving(), NEWER
    serving.scripts = when("convert", FINAL)
    serving.updates = 1
    serving.settle()
    assert serving.serving() == first
    found = {each: serving.condition(each)["status"] for each in ("Ready", "UpToDate", "Stalled")}
    assert found == {"Ready": "True", "UpToDate": "False", "Stalled": "False"}


def test_what_serves_keeps_its_pods_where_the_operator_writes_others(
    serving: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The template of every pod is another one: Jobs that ended and the server stay as they are."""
    story, before = list(serving.story), {key: body["metadata"]["uid"] for key, body in serving.objects.items()}
    monkeypatch.setitem(pod.CONTAINER_SECURITY, "runAsUser", 2000)
    assert serving.act() == 0
    serving.settle()
    assert serving.story == story
    assert {key: body["metadata"]["uid"] for key, body in serving.objects.items()} == before


def test_a_server_that_is_deleted_is_made_as_the_newer_operator_writes_it(
    serving: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(pod.CONTAINER_SECURITY, "runAsUser", 2000)
    server = serving.serving() or ""
    serving.delete("Deployment", server)
    serving.settle()
    template = serving.objects["Deployment", server]["spec"]["template"]
    assert template["spec"]["containers"][0]["securityContext"]["runAsUser"] == 2000


def test_an_edited_template_is_wanted_as_it_was_made(serving: Cluster) -> None:
    name = serving.serving() or ""
    server = serving.objects["Deployment", name]
    made = deepcopy(server["spec"]["template"])
    server["spec"]["template"]["spec"]["containers"][0]["args"][2] = "--edited"
    (wanted,) = [each for each in serving.intent().objects if each["metadata"]["name"] == name]
    assert wanted["spec"]["template"] == made


# Edits after an upgrade ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fields",
    [
        {"serving": {"replicas": 2}},
        {"serving": {"arguments": ["--backend-config=default-max-batch-size=4"]}},
        {"serving": {"image": "example/triton:1"}},
        {"selection": {"constraints": {"p99Latency": "9999us"}}},
        {"selection": {"search": {"mode": "Quick"}}},
        {"accuracy": {"thresholds": [{"metric": "accuracy", "min": 0.9}]}},
        {"accuracy": {"thresholds": []}},
        {"conversion": {"tolerances": [{"precision": "fp32", "absolute": 1e-3, "relative": 1e-3}]}},
        {"performance": {"online": {"concurrency": {"start": 8, "end": 8}}}},
        {"models": [a_model(config={"maxBatchSize": 8, "dynamicBatching": {}, "instances": 2})]},
        {"models": [a_model(candidates=[*CANDIDATES, candidate("ts-trace-fp16")])]},
        {"models": [a_model(candidates=CANDIDATES[:3])]},
        {"suspend": True},
    ],
    ids=str,
)
def test_an_edit_runs_what_it_runs_without_the_upgrade(serving: Cluster, fields: dict[str, Any]) -> None:
    upgraded = deepcopy(serving)
    upgraded.settings = NEWER
    assert edited(upgraded, **fields) == edited(serving, **fields)
    assert images(upgraded) == OLD_IMAGES
    assert used(upgraded, "convert") <= {pulled("example/converter:1")}


@pytest.mark.parametrize(
    "fields",
    [
        another_version()({}),
        {"models": [a_model(arguments={"depth": "50"})]},
        {"models": [a_model(config={"maxBatchSize": 16})]},
        {"dataloader": {"entrypoint": "dataloader.py", "arguments": {"seed": "1"}}},
        {"dataset": {"uri": "pvc://data/digits"}},
        {"accuracy": {"maxSamples": 100}},
        {"gpu": {"count": 1}},
    ],
    ids=str,
)
def test_an_edit_that_converts_everything_again_takes_the_newer_images(
    serving: Cluster, fields: dict[str, Any]
) -> None:
    serving.settings = NEWER
    ran = edited(serving, **fields)
    assert ran.count("reference") == 1
    assert images(serving) == NEW_IMAGES
    assert used(serving, "convert") == {pulled("example/converter:2")}
    assert used(serving, "profile") == {"example/converter:2", "example/server:2"}
    assert serving.condition("Ready")["status"] == "True"


@pytest.mark.parametrize("steps", [1, 12, 25])
def test_the_images_stay_while_the_edit_is_worked_on_and_the_operator_changes_again(
    serving: Cluster, steps: int
) -> None:
    serving.settings = NEWER
    serving.edit(another_version())
    serving.run(steps)
    serving.settings = SETTINGS
    serving.settle()
    assert images(serving) == NEW_IMAGES
    assert serving.started("convert") == 2 * len(CANDIDATES)


def test_going_back_after_an_upgrade_runs_nothing_again(serving: Cluster) -> None:
    first = serving.spec["source"]
    serving.settings = NEWER
    edited(serving, another_version())
    assert edited(serving, source=first) == ["server", "promotion"]
    assert images(serving) == OLD_IMAGES
    assert edited(serving, another_version()) == ["server", "promotion"]
    assert images(serving) == NEW_IMAGES


def test_an_approval_after_an_upgrade_measures_only_through_the_preview() -> None:
    """Of any candidate, and together with another edit that changes no conversion."""
    cluster = a_deployment().asking(selection={"approval": "Manual"}).settled().cluster()
    cluster.settings = NEWER
    first, second = (cluster.candidate(name)["revision"] for name in ("onnx-fp32", "ts-script-fp32"))
    approved = {"approval": "Manual", "approvedRevision": first}
    assert edited(cluster, selection=approved, serving={"replicas": 2}) == ["server", "measure onnx-fp32", "service"]
    again = edited(cluster, selection=approved | {"approvedRevision": second})
    assert again == ["server", "measure ts-script-fp32", "promotion"]
    assert cluster.condition("Selected")["reason"] == "Selected"


def test_a_server_image_of_the_spec_comes_and_goes_without_a_conversion(serving: Cluster) -> None:
    first = serving.serving()
    serving.settings = NEWER
    ran = edited(serving, serving={"image": "example/triton:1"})
    assert {each.split()[0] for each in ran} == {"profile", "metrics", "server", "measure", "promotion"}
    assert edited(serving, serving={}) == ["server", "promotion"]
    assert serving.serving() == first


def test_other_default_resources_do_nothing_again(serving: Cluster) -> None:
    defaults = DefaultResources({"memory": "256Mi"}, {"memory": "16Gi", "ephemeral-storage": "2Gi"})
    story = list(serving.story)
    server = deepcopy(serving.objects["Deployment", serving.serving() or ""])
    serving.settings = replace(SETTINGS, job_resources=defaults, server_resources=defaults)
    serving.settle()
    assert serving.story == story
    assert serving.objects["Deployment", serving.serving() or ""] == server


def test_an_installation_for_one_architecture_runs_there_unless_the_object_says_otherwise() -> None:
    label = "kubernetes.io/arch"
    cluster = a_deployment().asking(serving={"pod": {"nodeSelector": {label: "arm64"}}}).cluster()
    cluster.settings = replace(SETTINGS, architecture="amd64")
    cluster.settle()
    templates = {
        kind: [each["spec"]["template"]["spec"] for each in cluster.of_kind(kind)] for kind in ("Job", "Deployment")
    }
    assert all(templates.values())
    for job in templates["Job"]:
        serves = any(each["name"] == "tritonserver" for each in job.get("initContainers", ()))
        assert job["nodeSelector"] == {label: "arm64" if serves else "amd64"}
    assert [server["nodeSelector"] for server in templates["Deployment"]] == [{label: "arm64"}]


def test_another_architecture_of_the_installation_does_nothing_again(serving: Cluster) -> None:
    story = list(serving.story)
    serving.settings = replace(SETTINGS, architecture="amd64")
    assert serving.act() == 0
    serving.settle()
    assert serving.story == story


@pytest.mark.parametrize("held", [False, True])
def test_newer_images_than_those_that_serve_are_told_of_whatever_is_kept_for_the_next(held: bool) -> None:
    old, new = "nvcr.io/nvidia/tritonserver:25.02-py3", "nvcr.io/nvidia/tritonserver:26.08-py3"
    cluster = a_deployment().upgraded(server_image=old).settled().cluster()
    first = cluster.status["serving"]["revision"]
    if held:
        cluster.edit(rollout={"revision": first})
        cluster.settle()
    cluster.settings = replace(SETTINGS, server_image=new, converter_image="example/converter:2")
    cluster.updates += 1
    cluster.settle()
    cluster.edit(rollout={"revision": first})
    cluster.settle()
    assert cluster.status["serving"]["revision"] == first
    assert cluster.condition("NewImagesAvailable")["status"] == "True"


def test_images_that_failed_are_still_newer_than_those_that_serve() -> None:
    cluster = a_deployment().settled().upgraded(server_image="example/server:2").settled().cluster()
    cluster.scripts = when("profile", FINAL)
    cluster.updates += 1
    cluster.settle()
    assert "the next one, which does not serve yet" in cluster.condition("NewImagesAvailable")["message"]
    assert cluster.status["newImages"]["server"] == "example/server:2"
