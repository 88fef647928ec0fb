"""What a retry measures again: figures that stalled the object, once for each retry, and nothing else."""

from copy import deepcopy
from typing import Any

import pytest

from tests.simulation.answers import GOOD, Script, when
from tests.simulation.cluster import Cluster
from tests.simulation.deployments import CANDIDATES
from tests.simulation.edits import another_source
from tests.states.deployment import a_deployment

BUSY = Script(p99=12_000)
PROFILES = [*(f"profile {each['name']}" for each in CANDIDATES), "metrics"]
SERVE = ["server", "measure onnx-fp32", "service"]
SLOWER = {"performance": {"regression": {"maxPercent": 10, "block": True}}}


def busy(**fields: Any) -> Cluster:
    """An object that was stalled because its node was busy, and no longer is."""
    cluster = a_deployment().asking(**fields).faring(when("profile", BUSY)).settled().cluster()
    assert cluster.condition("Stalled")["reason"] == "ConstraintsNotMet"
    cluster.scripts = when("profile", GOOD)
    return cluster


def again(cluster: Cluster) -> list[str]:
    """What a retry starts."""
    story = len(cluster.story)
    cluster.retry()
    cluster.settle()
    return cluster.story[story:]


def state(cluster: Cluster) -> tuple[str, str]:
    return cluster.condition("Ready")["status"], cluster.condition("Ready")["reason"]


def test_a_retry_measures_the_candidates_again_and_converts_none() -> None:
    cluster = busy()
    assert again(cluster) == [*PROFILES, *SERVE]
    assert state(cluster) == ("True", "Ready")
    assert again(cluster) == [], "nothing failed any more"


def test_each_retry_measures_once() -> None:
    cluster = busy()
    cluster.scripts = when("profile", BUSY)
    for _ in range(2):
        assert again(cluster) == PROFILES
        assert state(cluster) == ("False", "ConstraintsNotMet")
        assert cluster.act() == 0


def test_what_serves_goes_on_while_candidates_are_measured_again() -> None:
    cluster = a_deployment().settled().cluster()
    before = cluster.serving()
    cluster.scripts = when("profile", BUSY)
    cluster.edit(another_source())
    cluster.settle()
    assert state(cluster) == ("False", "ConstraintsNotMet")
    cluster.scripts = when("profile", GOOD)
    cluster.retry()
    while cluster.started("profile") < 3 * len(CANDIDATES):
        assert (cluster.serving(), cluster.condition("Available")["status"]) == (before, "True")
        cluster.run(1)
    cluster.settle()
    assert state(cluster) == ("True", "Ready")
    assert cluster.serving() != before


@pytest.fixture(scope="module")
def _measured_twice() -> Cluster:
    cluster = busy()
    again(cluster)
    return cluster


@pytest.fixture
def measured_twice(_measured_twice: Cluster) -> Cluster:
    return deepcopy(_measured_twice)


def test_an_annotation_that_is_taken_back_brings_no_old_figures_back(measured_twice: Cluster) -> None:
    story = list(measured_twice.story)
    measured_twice.retries = 0
    measured_twice.settle()
    assert state(measured_twice) == ("True", "Ready")
    assert measured_twice.story == story


def test_a_source_that_comes_back_has_its_last_figures(measured_twice: Cluster) -> None:
    source = measured_twice.spec["source"]
    measured_twice.edit(another_source())
    measured_twice.settle()
    story = len(measured_twice.story)
    measured_twice.edit(source=source)
    measured_twice.settle()
    assert state(measured_twice) == ("True", "Ready")
    assert not [each for each in measured_twice.story[story:] if each.startswith("profile")]


def test_a_source_that_is_missing_for_a_while_has_its_last_figures_after_it(measured_twice: Cluster) -> None:
    profiles = measured_twice.started("profile")
    measured_twice.scripts = when("source", Script(hangs=True))
    measured_twice.edit(source={**measured_twice.spec["source"], "version": "2"})
    measured_twice.run(5)
    measured_twice.scripts = when("source", GOOD)
    measured_twice.settle()
    assert state(measured_twice) == ("True", "Ready")
    assert measured_twice.started("profile") == profiles


def test_a_constraint_that_was_relaxed_leaves_nothing_to_measure_again() -> None:
    cluster = busy()
    cluster.edit(selection={"constraints": {"p99Latency": "20ms"}})
    cluster.settle()
    assert state(cluster) == ("True", "Ready")
    assert again(cluster) == []


def test_candidates_that_a_search_found_are_measured_again_too() -> None:
    cluster = busy(selection={"constraints": {"p99Latency": "10ms"}, "search": {"mode": "Quick"}})
    profiles = [each for each in cluster.story if each.startswith("profile")]
    assert [each for each in again(cluster) if each.startswith("profile")] == profiles
    assert state(cluster) == ("True", "Ready")


def test_a_preview_is_measured_again_alone() -> None:
    cluster = a_deployment().faring(when("measure", BUSY)).settled().cluster()
    assert state(cluster) == ("False", "ConstraintsNotMet")
    cluster.scripts = when("measure", GOOD)
    assert again(cluster) == ["measure onnx-fp32"]
    assert state(cluster) == ("True", "Ready")
    assert again(cluster) == []


@pytest.mark.parametrize(
    ("scenario", "stage", "measured"),
    [
        ("Online", "measure", ["measure onnx-fp32"]),
        ("Offline", "profile", ["profile onnx-fp32", "metrics", "comparison", *SERVE[:2]]),
    ],
)
def test_a_slower_source_is_measured_again(scenario: str, stage: str, measured: list[str]) -> None:
    selection = {"scenario": scenario}
    cluster = a_deployment().asking(selection=selection, **SLOWER).settled().cluster()
    cluster.scripts = when(stage, Script(speed=0.5))
    cluster.edit(another_source())
    cluster.settle()
    assert state(cluster) == ("False", "PerformanceRegressed")
    cluster.scripts = when(stage, GOOD)
    assert again(cluster) == [*measured, "promotion"]
    assert state(cluster) == ("True", "Ready")
    # The next source is compared with the figures that counted.
    cluster.scripts = when(stage, Script(speed=0.8))
    cluster.edit(source={"uri": "pvc://models/third"})
    cluster.settle()
    assert "20.0 % worse" in cluster.condition("PerformanceMeasured")["message"]
