"""Bad input gets a clear error while the revision that serves goes on answering."""

import re
from operator import attrgetter

import pytest

from tests.conftest import Fault
from tests.e2e.bad_inputs import ALIKE, BAD_INPUTS, BadInput
from tests.e2e.hosts import Hosts, Outcome
from tests.e2e.suite import Suite, thorough

PROMPTLY_SECONDS = 60.0
"""Far more than a pass takes: two cores do many other things here."""


def failed_condition(bad_input: BadInput, outcome: Outcome) -> str:
    """The message of the condition that has to report it, once its status and reason are right."""
    condition = outcome.state.condition(bad_input.condition)
    assert condition, outcome.report
    assert (condition["status"], condition["reason"]) == ("False", bad_input.reason), outcome.report
    return str(condition["message"])


@pytest.mark.parametrize(
    "bad_input", [thorough(each, each.name in ALIKE) for each in BAD_INPUTS], ids=attrgetter("name")
)
def test_bad_input_is_reported_and_what_serves_goes_on(
    bad_input: BadInput, bad_inputs: Hosts, suite: Suite, fault: Fault
) -> None:
    what = f"while a revision is active: {bad_input.name}"
    fault(what)
    outcome = bad_inputs.outcome(bad_input)
    message = failed_condition(bad_input, outcome)
    assert re.search(bad_input.message, message, re.DOTALL), message
    assert len(message) <= 1024
    assert_ready_says_so(bad_input, outcome)
    if bad_input.candidate:
        assert_candidate_failed(bad_input, outcome)
    if outcome.reported_after_seconds is not None:
        assert outcome.reported_after_seconds <= PROMPTLY_SECONDS
    assert_nothing_is_lost(outcome, suite)
    fault(what, 1, " ".join([(bad_input.candidate or [bad_input.reason])[0], when(outcome)]).strip())


def when(outcome: Outcome) -> str:
    """How long after the pod's end it was reported, in words; empty where no pod failed."""
    seconds = outcome.reported_after_seconds
    return "" if seconds is None else f"after {seconds:.1f} s"


def assert_ready_says_so(bad_input: BadInput, outcome: Outcome) -> None:
    """Ready repeats the reason; Stalled is true where only the user can mend it, else Reconciling is."""
    state = outcome.state
    assert state.says("Ready", bad_input.reason), state.summary()
    assert state.holds("Stalled") is bad_input.stalled, state.summary()
    assert state.holds("Reconciling") is not bad_input.stalled, state.summary()


def assert_candidate_failed(bad_input: BadInput, outcome: Outcome) -> None:
    """The candidate's own reason and message say why."""
    assert bad_input.candidate
    reason, message = bad_input.candidate
    (candidate,) = outcome.state.candidates.values()
    assert (candidate["state"], candidate["reason"]) == ("Failed", reason), outcome.state.summary()
    assert re.search(message, candidate["message"], re.DOTALL), candidate["message"]


def assert_nothing_is_lost(outcome: Outcome, suite: Suite) -> None:
    """The revision, the Service's selector and every answer stay as they were."""
    assert outcome.revision_before
    assert outcome.state.revision == outcome.revision_before
    assert outcome.selector_after == outcome.selector_before
    answers = suite.prober.answers(outcome.host, outcome.since, outcome.until)
    assert answers.failures == ()
    assert answers.answered > 0
    assert len(answers.different) == 1


def test_the_mended_spec_is_ready_again_without_any_job(bad_inputs: Hosts) -> None:
    for host, mended in bad_inputs.mended().items():
        assert mended.after.revision == mended.before.revision, host
        assert mended.new_jobs == (), host
        assert mended.unfinished_jobs == (), f"{host}: Jobs of specs that are gone still run"


def test_a_pickled_checkpoint_is_not_executed(bad_inputs: Hosts, suite: Suite) -> None:
    """The canary appears where the file is unpickled, so its absence means something."""
    hostile = next(each for each in BAD_INPUTS if each.name == "checkpoint-with-code")
    bad_inputs.outcome(hostile)
    assert "canary" not in suite.workbench.run("ls", "/repository").split()
    unpickle = "import torch; torch.load('/models/suite/hostile.pt', weights_only=False)"
    suite.workbench.run("python3", "-c", unpickle)
    assert "canary" in suite.workbench.run("ls", "/repository").split()
    suite.workbench.run("rm", "/repository/canary")
