"""Edits of an object that serves: nothing is computed twice, no request fails, one bad candidate hurts no other."""

from tests.e2e.applied import stage_of
from tests.e2e.evolution import Evolution
from tests.e2e.suite import Suite


def test_code_that_prints_100_KB_works(evolved: Evolution) -> None:  # noqa: N802 - a unit
    step = evolved.steps["b"]
    assert step.state.status["serving"]["candidate"] == "onnx-fp32"
    assert {stage_of(job) for job in step.new_jobs} >= {"reference", "convert", "profile"}


def test_an_edited_object_is_ready_once_the_edit_serves(evolved: Evolution) -> None:
    step, first = evolved.steps["b"], evolved.steps["a"].state
    seen = evolved.applied.watch.history(evolved.applied.kubectl.namespace, evolved.applied.name)
    states = [each.state for each in seen if each.state.generation == step.state.generation]
    ready = [state.holds("Ready") for state in states if state.condition("Ready")]
    assert ready == sorted(ready)
    assert not ready[0]
    assert all(state.revision in ("", first.revision) for state in states if not state.holds("Ready"))


def test_going_back_computes_nothing_again(evolved: Evolution) -> None:
    first, again = evolved.steps["a"], evolved.steps["a-again"]
    assert again.state.generation > first.state.generation
    assert again.state.revision == first.state.revision
    assert [stage_of(job) for job in again.new_jobs] == []


def test_fp16_that_overflows_fails_alone(evolved: Evolution) -> None:
    state = evolved.steps["overflow"].state
    assert state.candidates["ts-trace-fp16"]["state"] == "Failed"
    assert state.candidates["ts-trace-fp16"]["reason"] == "OutputsNotFinite", state.summary()
    assert "OUTPUT__0" in state.candidates["ts-trace-fp16"]["message"]
    assert state.candidates["ts-trace-fp32"]["state"] == "Selected"


def test_a_trace_that_froze_a_branch_fails_and_the_script_serves(evolved: Evolution) -> None:
    state = evolved.steps["branch"].state
    assert state.candidates["ts-trace-fp32"]["state"] == "Failed"
    assert state.candidates["ts-trace-fp32"]["reason"] == "OutputsDiffer", state.summary()
    assert state.candidates["ts-script-fp32"]["state"] == "Selected"


def test_no_request_failed_while_revisions_changed(evolved: Evolution, suite: Suite) -> None:
    answers = suite.prober.answers(evolved.applied.name, evolved.since, evolved.until)
    assert answers.failures == ()
    assert answers.answered > 50
