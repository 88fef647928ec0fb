"""A source whose model is slower is told, by condition, event and plugin, or held back, as the spec says."""

from tests.e2e import plugin
from tests.e2e.regressing import NAME, Regressed
from tests.e2e.state import State
from tests.e2e.suite import Suite

SLOWER = "worse than the previously served source sha256:"


def test_the_first_source_is_compared_with_nothing(regressed: Regressed) -> None:
    condition = regressed.first.condition("PerformanceMeasured")
    assert (condition["status"], condition["reason"]) == ("True", "Measured"), regressed.first.summary()
    assert "not compared: there is no record of another source that served" in condition["message"]


def test_a_slower_source_serves_and_is_told(regressed: Regressed) -> None:
    state = regressed.reported
    condition = state.condition("PerformanceMeasured")
    assert (condition["status"], condition["reason"]) == ("True", "PerformanceRegressed"), state.summary()
    assert f"% {SLOWER}{digest(regressed.first)[:12]}, online at batch 1, concurrency 1" in condition["message"]
    assert state.revision not in ("", regressed.first.revision)
    assert throughput(state) < throughput(regressed.first) / 2


def test_a_warning_event_tells_it(regressed: Regressed) -> None:
    told = [each for each in regressed.events if each["reason"] == "PerformanceRegressed" and each["type"] == "Warning"]
    assert any(SLOWER in each["message"] for each in told), [each["message"] for each in told]


def test_a_faster_source_is_told_as_better(regressed: Regressed) -> None:
    condition = regressed.recovered.condition("PerformanceMeasured")
    assert (condition["status"], condition["reason"]) == ("True", "Measured"), regressed.recovered.summary()
    assert (
        f"% better than the previously served source sha256:{digest(regressed.reported)[:12]}" in condition["message"]
    )
    assert regressed.recovered.revision == regressed.first.revision


def test_a_slower_source_is_held_back_where_the_spec_says_so(regressed: Regressed) -> None:
    state = regressed.blocked
    assert state.holds("Ready"), state.summary()
    assert state.says("PerformanceMeasured", "PerformanceRegressed"), state.summary()
    assert "stays active, because spec.performance.regression.block is true" in state.condition("UpToDate")["message"]
    assert state.revision == regressed.recovered.revision
    assert throughput(state) == throughput(regressed.recovered)


def test_the_plugin_says_why_and_what_to_do(regressed: Regressed, suite: Suite) -> None:
    explained = plugin.run(suite.busy, "explain", NAME)
    assert regressed.blocked.revision
    assert explained.returncode == 0, f"{explained.stdout}\n{explained.stderr}"
    assert "PerformanceRegressed" in explained.stdout
    assert "to do:" in explained.stdout


def digest(state: State) -> str:
    """SHA-256 of the source."""
    return str(state.status["source"]["digest"]).removeprefix("sha256:")


def throughput(state: State) -> float:
    """Inferences per second of the revision that serves, through the preview Service."""
    return float(state.status["serving"]["throughput"])
