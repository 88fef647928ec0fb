"""The same graph with new weights: the candidate that serves alone is tried, and the others when they are due."""

from datetime import timedelta
from typing import Any

import pytest

from tests.simulation.answers import FINAL, Script
from tests.simulation.cluster import Cluster
from tests.simulation.edits import only
from tests.simulation.registry import Model, Registry, following, until, work_off
from tests.simulation.test_follow import HOUR, newest

CANDIDATES = ("onnx-fp32", "ts-trace-fp32")
WINNER = "onnx-fp32"


def serving(**source: Any) -> tuple[Cluster, Registry]:
    """A cluster whose object serves the first version, of whose two candidates the first one is the faster."""
    cluster, registry = following(**source)
    cluster.ask(only(*CANDIDATES))
    work_off(cluster)
    assert converted(cluster, 0) == {*CANDIDATES}
    return cluster, registry


def converted(cluster: Cluster, since: int) -> set[str]:
    """The candidates that were converted or profiled since a place in the story."""
    jobs = [each.split() for each in cluster.story[since:]]
    return {each[1] for each in jobs if each[0] in ("convert", "profile")}


def night(cluster: Cluster, registry: Registry, version: str, time: timedelta = HOUR) -> set[str]:
    """The next version comes; the candidates that were tried of it in that time."""
    since, registry.offers = len(cluster.story), version
    until(cluster, cluster.now + time)
    return converted(cluster, since)


def test_only_the_winner_is_tried_and_that_is_told() -> None:
    cluster, registry = serving()
    assert night(cluster, registry, "v2") == {WINNER}
    assert (registry.served(cluster), newest(cluster)) == ("v2", ("True", "Ready"))
    other = cluster.candidate("ts-trace-fp32")
    assert (other["state"], other["reason"]) == ("Skipped", "SameGraph")
    told = "tag v2 has the inputs, outputs and formats of the active revision, so onnx-fp32 alone is tried"
    assert told in cluster.condition("Selected")["message"]


def test_all_are_tried_each_week() -> None:
    cluster, registry = serving(interval="21h")
    tried = [len(night(cluster, registry, f"v{number}", timedelta(hours=24))) for number in range(2, 11)]
    assert tried == [1, 1, 1, 1, 1, 1, 1, 2, 1]


def test_all_are_tried_after_a_retry() -> None:
    cluster, registry = serving()
    night(cluster, registry, "v2")
    since = len(cluster.story)
    cluster.retry()
    until(cluster, cluster.now + timedelta(minutes=30))
    assert converted(cluster, since) == {"ts-trace-fp32"}
    assert cluster.candidate("ts-trace-fp32")["reason"] == "NotBest"
    assert night(cluster, registry, "v3") == {WINNER}


def test_the_others_are_tried_if_the_winner_fails() -> None:
    cluster, registry = serving()
    cluster.scripts = lambda stage, name, request: (
        FINAL if (stage, name) == ("convert", WINNER) else registry(stage, name, request)
    )
    assert night(cluster, registry, "v2") == {*CANDIDATES}
    assert (registry.served(cluster), newest(cluster)) == ("v2", ("True", "Ready"))
    assert cluster.status["serving"]["candidate"] == "ts-trace-fp32"


def test_a_version_that_no_candidate_passes_with_is_refused() -> None:
    cluster, registry = serving()
    registry.models["v2"] = Model(p99=50_000)
    assert night(cluster, registry, "v2") == {*CANDIDATES}
    assert newest(cluster) == ("False", "ConstraintsNotMet")
    assert night(cluster, registry, "v1") == set()
    assert night(cluster, registry, "v2") == set()
    until(cluster, cluster.now + HOUR)
    assert newest(cluster) == ("False", "ConstraintsNotMet")


def test_all_are_tried_of_another_graph() -> None:
    cluster, registry = serving()
    registry.models["v2"] = Model(outputs=12)
    assert night(cluster, registry, "v2") == {*CANDIDATES}
    assert newest(cluster) == ("False", "AwaitingApproval")


@pytest.mark.parametrize("moves", [["v1"], ["v3", "v1"]], ids=str)
def test_going_back_tries_none(moves: list[str]) -> None:
    cluster, registry = serving()
    night(cluster, registry, "v2")
    for each in moves[:-1]:
        assert night(cluster, registry, each) == {WINNER}
    assert night(cluster, registry, moves[-1]) == set()
    assert night(cluster, registry, moves[-1]) == set()
    assert registry.served(cluster) == "v1"


def test_an_approval_tries_no_other_candidate() -> None:
    cluster, registry = serving()
    cluster.edit(source=cluster.spec["source"] | {"onChange": "Stage"})
    assert night(cluster, registry, "v2") == {WINNER}
    since, key = len(cluster.story), cluster.candidate(WINNER)["revision"]
    cluster.edit(selection=cluster.spec["selection"] | {"approvedRevision": key})
    work_off(cluster)
    assert (converted(cluster, since), registry.served(cluster)) == (set(), "v2")


def test_no_other_candidate_is_tried_while_the_service_moves() -> None:
    cluster, registry = serving()
    cluster.scripts = lambda stage, name, request: (
        Script(exit_code=1) if name == "ts-trace-fp32" else registry(stage, name, request)
    )
    registry.offers, since = "v2", len(cluster.story)
    until(cluster, cluster.now + 2 * HOUR)
    assert (converted(cluster, since), registry.served(cluster)) == ({WINNER}, "v2")
