"""The truth table of a version that a look found: every row, and every combination of facts."""

from tests.unit.truth_table import ANY, decided, everything, idle
from triton_operator.stages.follow_decision import Answer, FollowFacts, Offer, answer

ROWS = {
    # offer, first, settled, only_notifies, busy -> answer
    "no look has found any": (Offer.NOTHING, ANY, ANY, ANY, ANY, Answer.NONE),
    "it was taken": (Offer.TAKEN, ANY, ANY, ANY, ANY, Answer.KEEP),
    "it did not pass": (Offer.REFUSED, ANY, ANY, ANY, ANY, Answer.REFUSE),
    "nothing else could serve": (ANY, True, ANY, ANY, ANY, Answer.TAKE),
    "a person takes it": (Offer.OTHER, ANY, ANY, True, ANY, Answer.NOTIFY),
    "one look is not enough": (Offer.OTHER, ANY, False, ANY, ANY, Answer.LOOK_AGAIN),
    "another one is worked on": (ANY, ANY, ANY, ANY, True, Answer.FINISH),
    "it is newer, served before, or serves": (ANY, ANY, ANY, ANY, ANY, Answer.TAKE),
}
EVERY = list(everything(FollowFacts))


def test_every_combination_of_facts_has_the_answer_of_its_row() -> None:
    for facts in EVERY:
        assert answer(facts) is decided(ROWS, facts), facts


def test_no_row_is_idle_and_every_answer_is_met() -> None:
    assert idle(ROWS, EVERY) == []
    assert {answer(facts) for facts in EVERY} == set(Answer)
