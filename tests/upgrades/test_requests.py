"""An object keeps the images that it was pinned to: what they are asked, the parsers of 2bb6dae5 must understand."""

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from tests.simulation.cluster import Cluster, pulled
from tests.states.moments import MOMENTS
from tests.states.passes import planned, reached
from tests.upgrades.stored import HERE, STORED, state
from triton_converters.contract.stages import STAGES

Body = dict[str, Any]
Request = tuple[str, str]
"""The stage's name, and JSON."""
ASKED = {*STAGES, "check"}
"""What a container may be asked: a stage, or the check before a server."""
NEW_IMAGES_ONLY: dict[str, str] = {}
"""Stages whose requests have a shape that 2bb6dae5 does not know: why they reach no image of that version."""
PINNED = {"example/converter:1", "example/converter-gpu:1", "example/converter-tensorflow:1"}
NEW = "new-"
"""What the names of the states begin with that are followed, from their first Job to their server."""
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


def requests(bodies: Iterable[Body]) -> set[Request]:
    """What containers of images of 2bb6dae5 are asked by these objects."""
    images = PINNED | set(map(pulled, PINNED))
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
    # The stored objects have their source Jobs already, and nothing to clean. The newest image takes snapshots, and
    # installs packages.
    assert {stage for stage, _ in found} == ASKED - {"source", "clean", "snapshot", "packages"}
    assert refused(found) == []


def test_what_objects_of_today_ask_is_understood_where_it_may_reach_those_images() -> None:
    """Of every golden moment: what is there, and what its pass makes."""
    bodies = [each for name in MOMENTS for each in (*reached(name).objects.values(), *planned(name).objects)]
    found = {request for request in requests(bodies) if request[0] not in NEW_IMAGES_ONLY}
    assert {stage for stage, _ in found} == ASKED - NEW_IMAGES_ONLY.keys()
    assert refused(found) == []


def test_a_field_that_those_parsers_do_not_know_is_refused() -> None:
    wrong = ("clean", '{"key":"0","forecast":1}')
    ((stage, said),) = refused({wrong})
    assert stage == "clean"
    assert "unknown" in said
