"""What serves is the image that was profiled, whatever its name stands for later."""

from typing import Any

import pytest

from tests.simulation.cluster import Cluster, pulled
from tests.simulation.edits import another_source
from tests.states.deployment import a_deployment
from triton_converters.contract.records import IMAGE
from triton_operator import names

NAME = "example/server:1"
CONVERTER = "example/converter:1"
PROFILED = pulled(NAME)
MOVED = f"example/server@sha256:{'b' * 64}"
GIVEN = f"example/mine@sha256:{'c' * 64}"
UNKNOWN = {
    "nothing": "",
    "an imported image": f"sha256:{'d' * 64}",
    "another repository": f"registry.example/copy@sha256:{'b' * 64}",
}
"""What the kubelet may report that is no digest of the image's own repository."""
MANUAL = {"approval": "Manual"}


def moved(image: str) -> str:
    """The ID of an image once the tag of the server's image stands for another one."""
    return MOVED if image == NAME else pulled(image)


def profiles_done(cluster: Cluster) -> Cluster:
    """Passes and steps until the first server is about to be made."""
    while not any(each["kind"] == "Deployment" for each in cluster.intent().objects):
        cluster.run(1)
    return cluster


def image(server: dict[str, Any]) -> str:
    (container,) = server["spec"]["template"]["spec"]["containers"]
    return str(container["image"])


def served(cluster: Cluster) -> str:
    """The image of the active revision."""
    return image(cluster.objects["Deployment", cluster.serving() or ""])


def image_ids(cluster: Cluster) -> dict[str, str]:
    """What the results say of images, by the stage."""
    data = cluster.objects["ConfigMap", names.results("digits")]["data"]
    return {name.split(".")[1]: text for name, text in data.items() if name.startswith(IMAGE)}


def test_a_tag_that_moves_after_the_profiles_changes_nothing_that_is_served() -> None:
    cluster = profiles_done(a_deployment().cluster())
    cluster.image_id = moved
    cluster.settle()
    assert served(cluster) == PROFILED
    environment = cluster.status["performance"]["environment"]
    assert (environment["image"], environment["imageDigest"]) == (NAME, PROFILED)
    assert image_ids(cluster) == {"profile": PROFILED, "reference": pulled(CONVERTER)}


def test_an_approval_after_the_tag_moved_serves_what_was_profiled() -> None:
    cluster = a_deployment().asking(selection=MANUAL).settled().cluster()
    cluster.image_id = moved
    for job in cluster.of_kind("Job"):
        cluster.delete("Job", job["metadata"]["name"])
    cluster.edit(selection=MANUAL | {"approvedRevision": cluster.candidate("ts-script-fp32")["revision"]})
    cluster.settle()
    assert cluster.condition("Selected")["reason"] == "Selected"
    assert served(cluster) == PROFILED


def test_each_source_is_served_by_the_image_it_was_profiled_with(serving: Cluster) -> None:
    first = serving.spec["source"]
    serving.image_id = moved
    serving.edit(another_source())
    serving.settle()
    assert served(serving) == MOVED
    before = len(serving.story)
    serving.edit(source=first)
    serving.settle()
    assert served(serving) == PROFILED
    assert serving.story[before:] == ["server", "promotion"]


def test_a_server_that_is_deleted_comes_back_with_the_image_it_had(serving: Cluster) -> None:
    serving.image_id = moved
    serving.delete("Deployment", serving.serving() or "")
    serving.settle()
    assert served(serving) == PROFILED


@pytest.mark.parametrize("reported", UNKNOWN.values(), ids=UNKNOWN)
def test_without_a_digest_of_its_repository_an_image_keeps_its_name(reported: str) -> None:
    cluster = a_deployment().where(image_id=lambda name: reported).serving().cluster()
    assert served(cluster) == NAME


def test_an_image_that_the_spec_gives_by_digest_stays_as_it_is_written() -> None:
    cluster = a_deployment().asking(serving={"image": GIVEN}).settled().cluster()
    assert served(cluster) == GIVEN


def test_an_object_from_before_digests_were_recorded_stays_as_it_is(serving: Cluster) -> None:
    """Its record has no digest, and its server was made by name."""
    old = a_deployment().where(image_id=lambda name: "").settled().cluster()
    assert image_ids(old) == {}
    story, server = list(old.story), old.serving()
    assert server == serving.serving(), "a digest changes no name"
    old.image_id = pulled
    for pod in old.of_kind("Pod"):
        for container in pod["status"].get("initContainerStatuses", []):
            container["imageID"] = PROFILED
    assert old.act() == 0
    old.settle()
    assert old.story == story
    old.delete("Deployment", server or "")
    old.settle()
    assert served(old) == NAME


def test_a_profile_that_is_made_again_changes_no_server_that_exists(serving: Cluster) -> None:
    """The results are lost and the Jobs replay theirs from the claim, beside a server of the moved tag."""
    serving.image_id = moved
    serving.delete("ConfigMap", names.results("digits"))
    for job in serving.of_kind("Job"):
        serving.delete("Job", job["metadata"]["name"])
    serving.settle()
    assert image_ids(serving) == {"profile": MOVED, "reference": pulled(CONVERTER)}
    assert served(serving) == PROFILED


def job_images(cluster: Cluster, stage: str) -> set[tuple[str, str]]:
    """Name and image of the containers of a stage's Jobs that exist."""
    return {
        (each["name"], each["image"])
        for job in cluster.of_kind("Job")
        if job["metadata"]["labels"][names.STAGE_LABEL] == stage
        for pod in [job["spec"]["template"]["spec"]]
        for each in [*pod["initContainers"], *pod["containers"]]
    }


@pytest.mark.parametrize("stage", ["convert", "metrics"])
def test_users_code_runs_in_the_image_that_the_reference_ran_in(stage: str) -> None:
    own = "example/torch:1"
    cluster = a_deployment().asking(conversion={"image": own}).cluster()
    while not cluster.started("convert"):
        cluster.run(1)
    cluster.image_id = lambda name: f"example/torch@sha256:{'b' * 64}" if name == own else pulled(name)
    cluster.settle()
    assert job_images(cluster, "reference") >= {("run", own)}
    assert job_images(cluster, stage) == {("prepare", CONVERTER), ("run", pulled(own)), (stage, CONVERTER)}


def test_our_own_image_is_the_same_one_in_all_containers_of_a_job() -> None:
    """What prepares, runs and publishes is one program: a moved tag must not mix two of its versions."""
    cluster = a_deployment().settled().cluster()
    assert {image for _, image in job_images(cluster, "convert")} == {pulled(CONVERTER)}


def test_an_image_of_unknown_digest_runs_by_its_name() -> None:
    cluster = a_deployment().where(image_id=lambda name: f"sha256:{'d' * 64}").settled().cluster()
    assert {image for _, image in job_images(cluster, "convert")} == {CONVERTER}
