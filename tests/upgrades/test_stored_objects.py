"""An upgrade from 2bb6dae5 starts no Job, restarts no server and takes no condition away, but for named exceptions."""

from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

from tests.upgrades.stored import STORED, State, state
from triton_operator import names
from triton_operator.api.status import TritonDeploymentStatus
from triton_operator.api.triton_deployment import InvalidSpecError, parse
from triton_operator.kube.drift import drift
from triton_operator.observed.gpu import Nodes
from triton_operator.observed.snapshot import observe
from triton_operator.planning.plan import plan

Body = dict[str, Any]
ROOT = Path(__file__).parents[2]
CHANGELOG = (ROOT / "CHANGELOG.md", *sorted(ROOT.glob("changelog.d/*.md")))
HARMLESS = {"ConfigMap", "NetworkPolicy"}
"""Kinds that may be written anew: no pod starts or ends for them."""


@dataclass(frozen=True)
class Named:
    """Changes that the changelog announces."""

    sentence: str
    """Of CHANGELOG.md or a fragment of it, as it is there but for line ends."""
    changes: tuple[str, ...]
    """Patterns (fnmatch) of what `changes` tells: "create Job packages", "change Deployment: spec.template*"."""
    states: tuple[str, ...] = ("*",)
    """Patterns of the states' names."""

    def holds(self, name: str, change: str) -> bool:
        """Whether it announces that change of that state."""
        return _fits(name, self.states) and _fits(change, self.changes)


EXCEPTIONS = (
    Named(
        "What was made with a dataset on a claim, or with packages of an index with a Secret, is made anew once.",
        ("delete Job *", "create Job *", "condition *"),
        ("resnet50-on-an-a100", "ready-resnet50-on-an-a100"),
    ),
    Named(
        "A revision that failed by its figures, and did not become active, has no pods any longer.",
        ("change Deployment: spec.replicas",),
        ("constraint-broken-in-the-preview", "performance-regression-blocks"),
    ),
    Named(
        "An upgrade starts a profile or a search that runs at that moment once more.",
        ("delete Job profile", "delete Job search", "create Job profile", "create Job search"),
        ("profiling", "ensemble-profiling", "resnet50-on-an-a100", "searching", "second-part-of-a-search"),
    ),
    Named(
        "An upgrade tries a profile or a search that had failed once more; the active revision stays.",
        ("delete Job *", "create Job profile", "create Job search", "condition *"),
        ("ready-with-a-candidate-that-differs", "search-failed", "server-refuses-the-model"),
    ),
    Named(
        "A packages Job that runs or has failed at an upgrade is tried once more; what was installed stays valid.",
        ("delete Job packages", "create Job packages"),
        ("installing-packages",),
    ),
    Named(
        "`Available` is False until the Service leads to the first revision.",
        ("condition Available: True Available is False RollingOut",),
        ("rolling-out", "measuring-the-preview", "ensemble-measuring"),
    ),
    Named(
        "An edit whose revision is undone is now `Stalled` and not `Ready`.",
        ("condition Ready: True SoakFailed is False SoakFailed",),
        ("undone", "canary-undone", "soaked-and-undone"),
    ),
)


def _fits(text: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(text, pattern) for pattern in patterns)


def what(body: Body) -> str:
    """A kind, and of a Job its stage: names hold hashes."""
    return " ".join(filter(None, (body["kind"], body["metadata"]["labels"].get(names.STAGE_LABEL, ""))))


def changes(stored: State) -> list[str]:
    """What the first pass of this operator does, and what conditions it takes for others."""
    try:
        deployment = parse(stored.body)
    except InvalidSpecError as error:
        return [f"refuse: {error}"]
    seen = observe(
        deployment.name,
        stored.children,
        Nodes(stored.gpu_product_exists),
        claim_name=deployment.claim_name,
        has_keda=stored.has_keda,
        has_gateway_api=stored.has_gateway_api,
    )
    wanted = plan(deployment, seen, stored.settings, stored.now)
    children = {(each["kind"], each["metadata"]["name"]): each for each in stored.children}
    gone = [f"delete {what(children[each.kind, each.name])}" for each in wanted.deletions]
    written = [told for each in wanted.objects if (told := _written(each, children))]
    return [*gone, *written, *_conditions(stored.body["status"]["conditions"], wanted.status)]


def _written(body: Body, children: dict[tuple[str, str], Body]) -> str:
    """What a pass does about an object that it wants; empty: nothing that counts."""
    kind = body["kind"]
    child = children.get((kind, body["metadata"]["name"]))
    if kind in HARMLESS:
        return ""
    if child is None:
        return f"create {what(body)}"
    # A Job is never changed: its name stands for its template.
    field = drift(body, child) if kind != "Job" else None
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
    assert [
        each for each in changes(state(name).renamed) if not any(known.holds(name, each) for known in EXCEPTIONS)
    ] == []


def test_every_exception_is_in_the_changelog_and_happens() -> None:
    told = " ".join(word for file in CHANGELOG for word in file.read_text(encoding="utf-8").split())
    assert [known.sentence for known in EXCEPTIONS if known.sentence not in told] == []
    found = [(name, each) for name in STORED for each in changes(state(name).renamed)] if EXCEPTIONS else []
    assert [known for known in EXCEPTIONS if not any(known.holds(*each) for each in found)] == []
