"""Real requests judge a new revision: one that does well is kept, a slow one is undone, and no request fails."""

from tests.e2e.soaking import Soaked
from tests.e2e.suite import Suite


def test_the_first_revision_is_not_soaked(soaked: Soaked) -> None:
    assert soaked.first.says("Soaked", "Waiting"), soaked.first.summary()


def test_a_revision_that_does_as_well_is_kept(soaked: Soaked) -> None:
    assert soaked.kept.holds("Soaked")
    assert soaked.kept.holds("Ready")
    assert soaked.kept.revision not in ("", soaked.first.revision)
    assert "requests failed in" in soaked.kept.condition("Soaked")["message"]


def test_a_slow_revision_is_undone_and_says_why(soaked: Soaked) -> None:
    state = soaked.undone
    assert state.says("Soaked", "SoakFailed"), state.summary()
    assert state.condition("Stalled")["reason"] == "SoakFailed"
    assert "maxLatencyPercent is 300" in state.condition("Stalled")["message"], state.summary()
    assert state.revision == soaked.kept.revision
    assert state.status["serving"]["throughput"] == soaked.kept.status["serving"]["throughput"]


def test_the_service_points_to_the_revision_before_and_nothing_is_tried_again(soaked: Soaked) -> None:
    (server,) = soaked.servers
    assert server["metadata"]["labels"]["triton-operator.dev/key"] == soaked.kept.revision
    assert soaked.service["spec"]["selector"]["triton-operator.dev/server"] == server["metadata"]["name"]
    assert soaked.tried_again.says("Soaked", "SoakFailed"), soaked.tried_again.summary()


def test_a_rollback_serves_the_revision_that_it_names(soaked: Soaked) -> None:
    state = soaked.rolled_back
    assert state.revision == soaked.first.revision
    assert state.status["serving"]["throughput"] == soaked.first.status["serving"]["throughput"]
    (server,) = soaked.servers_in_the_end
    assert server["metadata"]["labels"]["triton-operator.dev/key"] == soaked.first.revision


def test_no_request_failed_over_all_changes(soaked: Soaked, suite: Suite) -> None:
    answers = suite.prober.answers(soaked.applied.name, soaked.since, soaked.until)
    assert answers.failures == ()
    assert answers.answered > 500
