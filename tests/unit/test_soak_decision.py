"""The truth table of a soak: every row, and every combination of facts."""

from tests.unit.truth_table import ANY, decided, everything, idle
from triton_operator.rollout.inconclusive import Course
from triton_operator.rollout.soak_decision import Beginning, SoakFacts, SoakMove, next_soak

OPEN = Beginning.OPEN
ROWS = {
    # asked, beginning, ends_early, crashed, course, answers -> move
    "none is asked for": (False, ANY, ANY, ANY, ANY, ANY, SoakMove.NONE),
    "no revision is active": (True, Beginning.NO_REVISION, ANY, ANY, ANY, ANY, SoakMove.AWAIT_REVISION),
    "its beginning is not recorded": (True, Beginning.NOTHING, ANY, ANY, ANY, ANY, SoakMove.AWAIT_NEXT),
    "it was judged before": (True, Beginning.JUDGED, ANY, ANY, ANY, ANY, SoakMove.STAND),
    "nothing more can be decided, and nothing crashed": (True, OPEN, True, False, ANY, ANY, SoakMove.END_EARLY),
    "nothing is decided yet": (True, OPEN, ANY, ANY, None, ANY, SoakMove.GO_ON),
    "it need not pass, and does not answer": (True, OPEN, ANY, ANY, Course.GO_ON, False, SoakMove.GO_ON),
    "it passed, or need not": (True, OPEN, ANY, ANY, Course.GO_ON, ANY, SoakMove.JUDGE),
    "it failed, or is undone without a verdict": (True, OPEN, ANY, ANY, Course.UNDO, ANY, SoakMove.UNDO),
    "it is held, and its counters are good": (True, OPEN, ANY, ANY, Course.WAIT, ANY, SoakMove.HOLD),
    "it is held, and its counters are of no use": (True, OPEN, ANY, ANY, Course.BEGIN_ANEW, ANY, SoakMove.BEGIN_ANEW),
}
EVERY = list(everything(SoakFacts, course=[None, *Course]))


def test_every_combination_of_facts_has_the_move_of_its_row() -> None:
    for facts in EVERY:
        assert next_soak(facts) is decided(ROWS, facts), facts


def test_no_row_is_idle_and_every_move_is_made() -> None:
    assert idle(ROWS, EVERY) == []
    assert {next_soak(facts) for facts in EVERY} == set(SoakMove)


def test_nothing_is_undone_but_by_what_was_found() -> None:
    for facts in EVERY:
        if next_soak(facts) is SoakMove.UNDO:
            assert (facts.beginning, facts.course) == (OPEN, Course.UNDO)


def test_a_crash_is_judged_although_the_soak_cannot_go_on() -> None:
    assert next_soak(SoakFacts(True, OPEN, ends_early=True, crashed=True, course=Course.UNDO)) is SoakMove.UNDO
