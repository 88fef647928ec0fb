"""An object keeps the images that it was pinned to: what they are asked, the parsers of 2bb6dae5 must understand."""

import json
import subprocess
import sys
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.simulation.cluster import Cluster, pulled
from tests.states.deployment import apart
from tests.states.moments import MOMENTS
from tests.upgrades.stored import HERE, STORED, state
from triton_converters.contract.stages import STAGES
from triton_operator.planning import pins

Body = dict[str, Any]
Request = tuple[str, str]
"""The stage's name, and JSON."""
ASKED = {*STAGES, "check"}
"""What a container may be asked: a stage, or the check before a server."""
NEW_IMAGES_ONLY = {
    "packages": "pip and what is around it are the installation's",
    "snapshot": "no result that is kept depends on it",
}
"""Stages that the installation's image runs, whatever the object is pinned to, and why. 2bb6dae5 need not know them."""
NEW_MOMENTS = {"int8", "python-step", "packages-of-a-python-step", "fixed-paths"}
"""Moments of what only newer images are asked: test_int8.py and test_python_steps.py show that those of 2bb6dae5 are
not."""
PINNED = {"example/converter:1", "example/converter-gpu:1", "example/converter-tensorflow:1"}
NEW = "new-"
"""What the names of the states begin with that are followed, from their first Job to their server."""
NEWER: dict[str, Any] = {
    "converter_image": "example/converter:2",
    "converter_gpu_image": "example/converter-gpu:2",
    "converter_tensorflow_image": "example/converter-tensorflow:2",
}
"""The settings of an installation whose images can be told apart from PINNED."""
STEPS = 80
"""Of the simulation; they take each of these objects there."""


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Body]:
    """All objects of all clusters, as they are made."""
    bodies: list[Body] = []
    tell = Cluster._tell

    def keep(cluster: Cluster, body: Body) -> None:
        bodies.append(body)
        tell(cluster, body)

    monkeypatch.setattr(Cluster, "_tell", keep)
    return bodies


@pytest.fixture
def upgraded(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every cluster gets an installation with newer images once its object is pinned to those that there were."""
    act = Cluster.act

    def newer(cluster: Cluster) -> Any:
        if cluster.status.get("images"):
            cluster.settings = replace(cluster.settings, **NEWER)
        return act(cluster)

    monkeypatch.setattr(Cluster, "act", newer)
    with apart():
        yield


@pytest.fixture
def pinned_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every object is pinned to images that do not know what came after version 3 of the commands."""
    monkeypatch.setattr(pins, "COMMANDS_VERSION", 3)
    with apart():
        yield


def of_moment(cluster: Cluster) -> list[Body]:
    """What is there, and what its pass makes."""
    return [*cluster.objects.values(), *cluster.intent().objects]


def requests(bodies: Iterable[Body], names: Collection[str] = PINNED) -> set[Request]:
    """What containers of these images, by default those of 2bb6dae5, are asked by these objects."""
    images = {*names, *map(pulled, names)}
    templates = [each["spec"]["template"]["spec"] for each in bodies if each["kind"] in ("Job", "Deployment")]
    return {
        request
        for pod in templates
        for container in [*pod.get("initContainers", []), *pod["containers"]]
        if container["image"] in images
        for request in asked(container)
    }


def asked(container: Body) -> Iterator[Request]:
    """The request in a container's arguments, if there is one: `run STAGE` has none."""
    program, arguments = container["command"][-1], list(container.get("args", []))
    if program == "triton_converters.revision_check":
        yield "check", arguments[0]
    elif program == "triton_converters" and arguments[0] != "run":
        if arguments[0] == "prepare" and len(arguments) == 4:
            yield "check", arguments.pop()
        yield arguments[-2], arguments[-1]


def refused(found: set[Request]) -> list[list[str]]:
    """Stages and errors of what the parsers of 2bb6dae5 do not take."""
    argv = [sys.executable, "-I", str(HERE / "old_parsers.py"), str(HERE / "contract-2bb6dae5.zip")]
    ran = subprocess.run(argv, input=json.dumps(sorted(found)), capture_output=True, text=True, check=True, timeout=60)
    told: list[list[str]] = json.loads(ran.stdout)
    return told


def go_on(cluster: Cluster) -> None:
    """Passes and steps until nothing changes and no pass is due."""
    for _ in range(STEPS):
        if cluster.act() + cluster.step() == 0 and cluster.intent().requeue_after is None:
            return


def test_what_objects_of_that_version_ask_their_pinned_images_is_understood(made: list[Body]) -> None:
    """They go on under this operator, whose installation has newer images, from their first Job to their server."""
    for name in STORED:
        if name.startswith(NEW):
            go_on(state(name).renamed.cluster())
    found = requests(made)
    # The stored objects have their source Jobs already, and nothing to clean.
    assert {stage for stage, _ in found} == ASKED - {"source", "clean"} - NEW_IMAGES_ONLY.keys()
    assert refused(found) == []


@pytest.mark.usefixtures("pinned_before")
def test_what_objects_of_today_ask_is_understood_where_it_may_reach_those_images() -> None:
    """Of every golden moment: what is there, and what its pass makes."""
    moments = [MOMENTS[name].cluster() for name in MOMENTS.keys() - NEW_MOMENTS]
    found = {request for each in moments for request in requests(of_moment(each))}
    assert {stage for stage, _ in found} == ASKED
    assert refused({request for request in found if request[0] not in NEW_IMAGES_ONLY}) == []


@pytest.mark.usefixtures("upgraded")
@pytest.mark.parametrize("stage", NEW_IMAGES_ONLY)
def test_the_installations_image_alone_runs_what_those_images_need_not_know(stage: str) -> None:
    """In every golden moment that has the stage, come by once more while the installation has newer images."""
    either = {*PINNED, *NEWER.values()}
    moments = [of_moment(each.cluster()) for each in MOMENTS.values()]
    with_it = [each for each in moments if stage in {told for told, _ in requests(each, either)}]
    bodies = [body for each in with_it for body in each]
    assert stage in {told for told, _ in requests(bodies, NEWER.values())}
    assert stage not in {told for told, _ in requests(bodies)}


def test_a_field_that_those_parsers_do_not_know_is_refused() -> None:
    wrong = ("clean", '{"key":"0","forecast":1}')
    ((stage, said),) = refused({wrong})
    assert stage == "clean"
    assert "unknown" in said
