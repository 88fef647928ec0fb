"""The truth table of a canary: every row, and every combination of facts."""

from tests.unit.truth_table import ANY, decided, everything, idle
from triton_operator.rollout.canary_decision import CanaryFacts, CanaryMove, CanaryStage, next_step
from triton_operator.rollout.inconclusive import Course

RUNS = CanaryStage.RUNS
ROWS = {
    # possible, compared, stage, ready, course -> move
    "none is asked for, or it is not possible": (False, ANY, ANY, ANY, ANY, CanaryMove.NONE),
    "nothing answers that it could be compared with": (True, False, ANY, ANY, ANY, CanaryMove.KEEP),
    "all its steps are over": (True, True, CanaryStage.PASSED, ANY, ANY, CanaryMove.HAND_OVER),
    "it may begin": (True, True, CanaryStage.BEFORE, True, ANY, CanaryMove.BEGIN),
    "it may not begin yet": (True, True, CanaryStage.BEFORE, False, ANY, CanaryMove.NONE),
    "nothing is decided yet": (True, True, RUNS, ANY, None, CanaryMove.GO_ON),
    "the step passed, or need not": (True, True, RUNS, ANY, Course.GO_ON, CanaryMove.PASS),
    "the step failed, or is undone without a verdict": (True, True, RUNS, ANY, Course.UNDO, CanaryMove.UNDO),
    "the step is held, and its counters are good": (True, True, RUNS, ANY, Course.WAIT, CanaryMove.HOLD),
    "the step is held, and its counters are of no use": (
        True,
        True,
        RUNS,
        ANY,
        Course.BEGIN_ANEW,
        CanaryMove.BEGIN_ANEW,
    ),
}
EVERY = list(everything(CanaryFacts, course=[None, *Course]))


def test_every_combination_of_facts_has_the_move_of_its_row() -> None:
    for facts in EVERY:
        assert next_step(facts) is decided(ROWS, facts), facts


def test_no_row_is_idle_and_every_move_is_made() -> None:
    assert idle(ROWS, EVERY) == []
    assert {next_step(facts) for facts in EVERY} == set(CanaryMove)


def test_what_runs_goes_on_whether_a_pod_is_ready_or_not() -> None:
    for facts in EVERY:
        if facts.possible and facts.compared and facts.stage is RUNS:
            assert next_step(facts) not in (CanaryMove.NONE, CanaryMove.KEEP, CanaryMove.BEGIN)
