"""An upgrade from 0.1.0 starts no Job, restarts no server and takes no condition away; what is pinned to it goes on."""

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

from tests.simulation.cluster import Cluster, pulled
from tests.upgrades import stored
from triton_converters.contract.stages import STAGES
from triton_operator import names
from triton_operator.api.status import TritonDeploymentStatus
from triton_operator.kube.drift import drift

Body = dict[str, Any]
Request = tuple[str, str]
"""The stage's name, and JSON."""
ROOT = Path(__file__).parents[2]
CHANGELOG = (ROOT / "CHANGELOG.md", *sorted(ROOT.glob("changelog.d/*.md")))
HARMLESS = {"ConfigMap", "NetworkPolicy"}
"""Kinds that may be written anew: no pod starts or ends for them."""
STORED = stored.read()
PINNED = {"example/converter:1", "example/converter-tensorflow:1", "example/converter-gpu:1"}
INSTALLATIONS = {"look", "packages", "publish", "snapshot"}
"""Stages that the installation's image runs, whatever the object is pinned to: 0.1.0 need not know their requests, and
a Job that runs at an upgrade begins anew."""
ON_THE_WAY = (
    "running-the-framework",
    "judging-the-framework",
    "config-of-a-repository-read",
    "installing-packages",
    "ensemble-profiling",
    "packages-of-a-python-step",
    "second-part-of-a-search",
    "rolling-out",
    "resnet50-on-an-a100",
    "new-generation-while-serving",
    "cleaning-the-claim",
)
"""Objects that have most of their Jobs before them."""
STEPS = 120
"""Of the simulation; they take each of these objects to where it rests."""


@dataclass(frozen=True)
class Announced:
    """Changes that the changelog announces."""

    sentence: str
    """Of CHANGELOG.md or a fragment of it, as it is there but for line ends."""
    changes: tuple[str, ...]
    """Patterns (fnmatch) of what `changes` returns: "create Job packages", "change Deployment: spec.template*"."""
    states: tuple[str, ...] = ("*",)
    """Patterns of the states' names."""

    def holds(self, name: str, change: str) -> bool:
        """Whether it announces that change of that state."""
        return any(fnmatchcase(name, each) for each in self.states) and any(
            fnmatchcase(change, each) for each in self.changes
        )


EXCEPTIONS: tuple[Announced, ...] = ()


def what(body: Body) -> str:
    """A kind, and of a Job its stage: names hold hashes."""
    return " ".join(filter(None, (body["kind"], body["metadata"]["labels"].get(names.STAGE_LABEL, ""))))


def changes(state: Body) -> list[str]:
    """What the first pass of this operator does, and what conditions it takes for others."""
    cluster = stored.restored(state)
    wanted = cluster.intent()
    gone = [f"delete {what(cluster.objects[each.kind, each.name])}" for each in wanted.deletions]
    gone = [each for each in gone if each not in {f"delete Job {stage}" for stage in INSTALLATIONS}]
    written = [change for each in wanted.objects if (change := _written(each, cluster))]
    return [*gone, *written, *_conditions(state["body"]["status"]["conditions"], wanted.status)]


def _written(body: Body, cluster: Cluster) -> str:
    """What a pass does about an object that it wants; empty: nothing that counts."""
    child = cluster.objects.get((body["kind"], body["metadata"]["name"]))
    if body["kind"] in HARMLESS or body["metadata"]["labels"].get(names.STAGE_LABEL) in INSTALLATIONS:
        return ""
    if child is None:
        return f"create {what(body)}"
    # A Job is never changed: its name stands for its template.
    field = drift(body, child) if body["kind"] != "Job" else None
    # A Deployment's own annotations are no part of its pods.
    return f"change {what(body)}: {field}" if field and not field.startswith("metadata.annotations") else ""


def _conditions(before: list[Body], status: TritonDeploymentStatus) -> Iterator[str]:
    after = {str(each.type): each for each in status.conditions}
    for old in before:
        new = after.get(old["type"])
        found = (str(new.status), str(new.reason)) if new else ("absent", "")
        if found != (old["status"], old["reason"]):
            yield f"condition {old['type']}: {old['status']} {old['reason']} is {' '.join(found)}"


@pytest.mark.parametrize("name", STORED)
def test_an_upgrade_does_only_what_the_changelog_names(name: str) -> None:
    found = changes(STORED[name])
    assert [each for each in found if not any(known.holds(name, each) for known in EXCEPTIONS)] == []


def test_every_exception_is_in_the_changelog_and_happens() -> None:
    told = " ".join(word for file in CHANGELOG for word in file.read_text(encoding="utf-8").split())
    assert [known.sentence for known in EXCEPTIONS if known.sentence not in told] == []
    found = [(name, each) for name, state in STORED.items() for each in changes(state)] if EXCEPTIONS else []
    assert [known for known in EXCEPTIONS if not any(known.holds(*each) for each in found)] == []


def test_a_changed_key_and_a_changed_template_are_told() -> None:
    state = deepcopy(STORED["ready-settled"])
    children = {each["kind"]: each for each in state["children"]}
    children["Deployment"]["spec"]["template"]["spec"]["containers"][0]["args"].append("--another")
    state["children"] = [each for each in state["children"] if what(each) != "Job measure"]
    assert [each.split(":")[0] for each in changes(state)][:2] == ["change Deployment"]


def asked(body: Body) -> Iterator[Request]:
    """What containers of pinned images are asked by a Job or a Deployment."""
    pod = body["spec"]["template"]["spec"]
    for container in (*pod.get("initContainers", ()), *pod["containers"]):
        program, arguments = container.get("command", [""])[-1], list(container.get("args", []))
        if container["image"] not in {*PINNED, *map(pulled, PINNED)}:
            continue
        if program == "triton_converters.revision_check":
            yield "check", arguments[0]
        elif program == "triton_converters" and arguments[0] != "run":
            if arguments[0] == "prepare" and len(arguments) == 4:
                yield "check", arguments.pop()
            yield arguments[-2], arguments[-1]


def refused(found: Iterable[Request]) -> list[list[str]]:
    """Stages and errors of what the parsers of 0.1.0 do not take."""
    argv = [sys.executable, "-I", str(stored.HERE / "parsers.py"), str(stored.CONTRACT)]
    ran = subprocess.run(argv, input=json.dumps(sorted(found)), capture_output=True, text=True, check=True, timeout=60)
    told: list[list[str]] = json.loads(ran.stdout)
    return told


def go_on(cluster: Cluster) -> None:
    """Passes and steps until nothing changes and no pass is due."""
    for _ in range(STEPS):
        if cluster.act() + cluster.step() == 0 and cluster.intent().requeue_after is None:
            return


def test_objects_go_on_with_the_images_that_they_are_pinned_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """They come from their first Job to their server, and what these images are asked is what they understand."""
    created: list[Body] = []
    tell = Cluster._tell

    def keep(cluster: Cluster, body: Body) -> None:
        created.append(body)
        tell(cluster, body)

    monkeypatch.setattr(Cluster, "_tell", keep)
    for name in ON_THE_WAY:
        go_on(stored.restored(STORED[name]))
    requests = {each for body in created if body["kind"] in ("Job", "Deployment") for each in asked(body)}
    assert {stage for stage, _ in requests} >= {*STAGES, "check"} - {"source", "clean"} - INSTALLATIONS
    assert refused(requests) == []


def test_what_0_1_0_does_not_know_is_refused_by_its_parsers() -> None:
    ((stage, said),) = refused([("clean", '{"key":"0","forecast":1}')])
    assert stage == "clean"
    assert "unknown" in said


def test_a_failed_candidate_of_a_pinned_object_is_tried_again_with_its_images() -> None:
    cluster = stored.restored(STORED["candidate-failed-settled"])
    before = cluster.started("convert")
    cluster.retry()
    go_on(cluster)
    assert cluster.started("convert") > before
    assert cluster.has("Ready")
    assert cluster.status["images"]["converter"] in PINNED


def test_a_pinned_object_goes_to_the_newest_revision_and_back_without_a_job() -> None:
    cluster = stored.restored(STORED["rolled-back-settled"])
    first, story = cluster.status["serving"]["revision"], list(cluster.story)
    cluster.edit(rollout={})
    go_on(cluster)
    second = cluster.status["serving"]["revision"]
    cluster.edit(rollout={"revision": first})
    go_on(cluster)
    assert second != first == cluster.status["serving"]["revision"]
    assert cluster.has("Ready")
    assert {each.split()[0] for each in cluster.story[len(story) :]} <= {"server", "promotion"}
