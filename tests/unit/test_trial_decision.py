"""The truth table of a trial: every row, every combination of facts, and what no table may allow."""

from typing import get_args

from tests.unit.truth_table import ANY, Rows, decided, everything, idle
from triton_converters.contract.reasons import Reason
from triton_operator.api.rollout import OnInconclusive, Rollout
from triton_operator.rollout.traffic import SoakVerdict
from triton_operator.rollout.trial_decision import (
    GOES_ON,
    TrialFacts,
    TrialMove,
    TrialStage,
    TrialVerdict,
    first_verdict,
    next_trial,
)
from triton_operator.rollout.wording import undo_verdict


def row(
    move: TrialMove, *, enabled: object = True, stage: object = TrialStage.RUNS, **wanted: object
) -> tuple[object, ...]:
    """A row of the table, in the order of the facts; what it does not name does not matter."""
    facts = {"enabled": enabled, "stage": stage} | wanted
    return *(facts.get(each, ANY) for each in TrialFacts.__dataclass_fields__), move


ROWS: Rows = {
    "none is asked for, or it is not possible": row(TrialMove.NONE, enabled=False, stage=ANY),
    "it was judged before, or all its steps are over": row(TrialMove.STAND, stage=TrialStage.OVER),
    "it may begin": row(TrialMove.BEGIN, stage=TrialStage.BEFORE, may_begin=True),
    "it may not begin yet": row(TrialMove.AWAIT, stage=TrialStage.BEFORE),
    "it failed": row(TrialMove.UNDO, verdict=TrialVerdict.FAILED),
    "nothing more can be compared": row(TrialMove.END, ends=True),
    "its Deployment was made again": row(TrialMove.BEGIN_ANEW, restored=True),
    "nothing is decided yet": row(TrialMove.GO_ON, verdict=TrialVerdict.NOTHING),
    "it passed": row(TrialMove.PASS, verdict=TrialVerdict.PASSED, answers=True),
    "it passed, and is down": row(TrialMove.GO_ON, verdict=TrialVerdict.PASSED),
    "it need not pass": row(TrialMove.PASS, policy="Continue", answers=True),
    "it need not pass, and is down": row(TrialMove.GO_ON, policy="Continue"),
    "it is undone without a verdict": row(TrialMove.UNDO, policy="Undo"),
    "it is held, and its counters are of no use": row(TrialMove.BEGIN_ANEW, verdict=TrialVerdict.SPOILED),
    "it is held, and its counters are good": row(TrialMove.HOLD),
}
EVERY = list(everything(TrialFacts, policy=get_args(OnInconclusive)))
RUNNING = [each for each in EVERY if each.enabled and each.stage is TrialStage.RUNS]


def test_every_combination_of_facts_has_the_move_of_its_row() -> None:
    for facts in EVERY:
        assert next_trial(facts) is decided(ROWS, facts), facts


def test_no_row_is_idle_and_every_move_is_made() -> None:
    assert idle(ROWS, EVERY) == []
    assert {next_trial(facts) for facts in EVERY} == set(TrialMove)


def test_nothing_is_undone_but_by_what_was_found_or_as_the_spec_says() -> None:
    for facts in RUNNING:
        if next_trial(facts) is TrialMove.UNDO:
            is_asked_for = facts.policy == "Undo" and facts.verdict in (TrialVerdict.UNCLEAR, TrialVerdict.SPOILED)
            assert facts.verdict is TrialVerdict.FAILED or is_asked_for


def test_what_goes_wrong_is_judged_although_the_trial_cannot_go_on() -> None:
    for facts in RUNNING:
        if facts.verdict is TrialVerdict.FAILED:
            assert next_trial(facts) is TrialMove.UNDO


def test_what_is_held_goes_on_where_nothing_went_wrong() -> None:
    for facts in RUNNING:
        if facts.policy == "Hold" and not (facts.ends or facts.verdict is TrialVerdict.FAILED):
            assert next_trial(facts) in GOES_ON


def test_a_crash_counts_first_and_servers_of_both_that_ended_last() -> None:
    crash, early_end, outage, both = (
        SoakVerdict(reason, words)
        for reason, words in (
            (Reason.SOAK_FAILED, "crash"),
            (Reason.SOAK_INCONCLUSIVE, "early end"),
            (Reason.SOAK_FAILED, "outage"),
            (Reason.SOAK_INCONCLUSIVE, "both"),
        )
    )
    assert first_verdict(crash, early_end, outage) is crash
    assert first_verdict(both, early_end, outage) is early_end
    assert first_verdict(both, None, outage) is outage
    assert first_verdict(both, None, None) is both
    assert first_verdict(None, None, None) is None


def test_without_the_field_no_traffic_is_no_proof() -> None:
    assert Rollout().on_inconclusive == "Hold"


def test_an_undo_without_a_verdict_says_so_and_one_with_a_verdict_says_that() -> None:
    failed = SoakVerdict(Reason.SOAK_FAILED, "2 % of 500 requests failed")
    assert undo_verdict(failed) == failed
    found = undo_verdict(SoakVerdict(Reason.SOAK_INCONCLUSIVE, "it answered 3 requests"))
    assert found.reason is Reason.SOAK_FAILED
    assert found.message == "it was not judged, because it answered 3 requests; spec.rollout.onInconclusive is Undo"
