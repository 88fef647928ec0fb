"""Measurements that somebody made up in the records: they cost no more than a pass."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.simulation.answers import ENVIRONMENT, GOOD, PART_POINTS, Script, Scripts, _result
from tests.simulation.edits import another_source
from tests.simulation.test_remeasuring import SLOWER
from tests.states.deployment import a_deployment
from triton_converters.contract.envelope import Outcome
from triton_converters.contract.results import SearchEnd, SearchPoint, SearchResult, Tuning


def answering(wanted: str, change: Callable[[Any], Any], candidate: str = "") -> Scripts:
    """A client that changes what its Job answers."""

    def script(stage: str, name: str, request: Any) -> Script:
        if stage != wanted or candidate not in ("", name):
            return GOOD
        return Script(answer=Outcome(stage, request.key, change(_result(stage, name, request, GOOD))).to_json())

    return script


def test_a_sweep_without_rows_is_a_failed_one_and_is_measured_again_when_asked() -> None:
    cluster = (
        a_deployment()
        .one_candidate()
        .faring(answering("measure", lambda result: replace(result, online=())))
        .settled()
        .cluster()
    )
    assert cluster.condition("PerformanceMeasured")["reason"] == "MeasurementFailed"
    assert "measured nothing" in cluster.condition("Ready")["message"]
    cluster.scripts = lambda *_: GOOD
    cluster.retry()
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"


def crowd(result: SearchResult) -> SearchResult:
    return replace(result, points=result.points[:1] * 500, repeats=(), ended=SearchEnd.GOES_ON)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (crowd, f"{PART_POINTS + 1} points and 0 repeats, where {PART_POINTS}"),
        (
            lambda result: replace(result, points=(), repeats=(), ended=SearchEnd.GOES_ON),
            "0 points and 0 repeats, although",
        ),
        (
            lambda result: replace(result, points=result.points[:1] * PART_POINTS, repeats=(), ended=SearchEnd.GOES_ON),
            "48 measurements",
        ),
        (lambda result: replace(result, ended="<b>Nonsense</b>"), "succeeded without a valid result"),
        (lambda result: replace(result, ended=SearchEnd.FAILED), "an end that no search has"),
    ],
)
def test_a_part_beyond_its_bounds_ends_the_search_and_nothing_else(change: Callable[[Any], Any], words: str) -> None:
    search = {"selection": {"search": {"mode": "Quick", "measurements": 40}}}
    cluster = a_deployment().one_candidate().asking(**search).faring(answering("search", change)).serving().cluster()
    assert words in cluster.condition("Selected")["message"]


@pytest.mark.parametrize("seconds", [-1e308, -1e8, 1e308])
def test_seconds_of_a_search_give_no_other_one_more_than_the_budget(seconds: float) -> None:
    search = {"selection": {"search": {"mode": "Quick", "measurements": 100, "duration": "10m"}}}
    change = answering("search", lambda result: replace(result, seconds=seconds), "onnx-fp32")
    cluster = a_deployment().asking(**search).faring(change).serving().cluster()
    deadlines = [each["spec"]["template"]["spec"]["activeDeadlineSeconds"] for each in cluster.of_kind("Job")]
    assert max(deadlines) <= 600 + 3600


def test_a_part_with_a_thousand_points_is_read_as_far_as_it_takes_to_refuse_it() -> None:
    point = SearchPoint(Tuning(8, 1, True, (), 0, False), None)
    answer = Outcome(
        "search", "0" * 16, SearchResult("s", (point,) * 1000, SearchEnd.GOES_ON, 1, 0.0, ENVIRONMENT)
    ).to_json()
    result = Outcome.from_json(answer).result
    assert isinstance(result, SearchResult)
    assert len(result.points) == PART_POINTS + 1


def test_what_is_no_command_line_wedges_no_later_source() -> None:
    """Somebody edited its record."""

    def change(result: Any) -> Any:
        return replace(result, environment=replace(result.environment, perf_analyzer=("'",)))

    cluster = a_deployment().one_candidate().asking(**SLOWER).faring(answering("measure", change)).settled().cluster()
    cluster.scripts = lambda *_: GOOD
    cluster.edit(another_source())
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"
    assert cluster.condition("PerformanceMeasured")["status"] == "True"
