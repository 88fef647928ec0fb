"""The truth tables of the conditions that summarize: every row, and every combination of facts."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.unit.truth_table import ANY, Rows, decided, everything, idle
from triton_operator.planning.summary import (
    SUMMARY,
    Activity,
    Hindrance,
    Standing,
    SummaryFacts,
    activity,
    hindered_conditions,
    standing,
    summary_truths,
)

NONE, FAILS, REFUSED, INVALID = Hindrance
STANDING: Rows = {
    # complete, rolled back, met, available, soaks, stalled, paused, hindrance, newer -> what serves
    "the spec is invalid": (ANY, ANY, ANY, ANY, ANY, ANY, ANY, INVALID, ANY, Standing.UNMET),
    "an object of what serves is refused": (True, ANY, ANY, ANY, ANY, ANY, ANY, REFUSED, ANY, Standing.UNMET),
    "a revision that the spec names serves": (True, True, ANY, ANY, ANY, ANY, ANY, ANY, ANY, Standing.ROLLED_BACK),
    "the target is soaked": (True, False, ANY, ANY, True, ANY, ANY, ANY, ANY, Standing.SOAKED),
    "there may be something newer": (True, False, ANY, ANY, False, ANY, ANY, ANY, True, Standing.BEHIND),
    "the target serves": (True, False, ANY, ANY, False, ANY, ANY, ANY, False, Standing.UP_TO_DATE),
    "the spec was never met": (False, ANY, False, ANY, ANY, ANY, ANY, ANY, ANY, Standing.UNMET),
    "the spec is met by an older revision": (False, ANY, True, True, ANY, ANY, ANY, ANY, ANY, Standing.SERVES_OLDER),
    "the spec was met, and no server answers": (False, ANY, True, False, ANY, ANY, ANY, ANY, ANY, Standing.UNAVAILABLE),
}
ACTIVITY: Rows = {
    # complete, rolled back, met, available, soaks, stalled, paused, hindrance, newer -> what is done
    "an object is refused": (ANY, ANY, ANY, ANY, ANY, ANY, ANY, REFUSED, ANY, Activity.STALLED),
    "the spec is invalid": (ANY, ANY, ANY, ANY, ANY, ANY, ANY, INVALID, ANY, Activity.STALLED),
    "something failed": (False, ANY, ANY, ANY, ANY, True, ANY, ANY, ANY, Activity.STALLED),
    "passes fail": (ANY, ANY, ANY, ANY, ANY, ANY, ANY, FAILS, ANY, Activity.HINDERED),
    "the target is soaked for the first time": (True, ANY, False, ANY, True, ANY, ANY, ANY, ANY, Activity.SOAKS),
    "the target serves": (True, ANY, ANY, ANY, ANY, ANY, ANY, ANY, ANY, Activity.NONE),
    "a person is waited for": (False, ANY, ANY, ANY, ANY, ANY, True, ANY, ANY, Activity.PAUSED),
    "work goes on": (False, ANY, ANY, ANY, ANY, ANY, False, ANY, ANY, Activity.GOES_ON),
}
TABLES = [(STANDING, standing, Standing), (ACTIVITY, activity, Activity)]
EVERY = list(everything(SummaryFacts))
SAYS = {
    # what serves, what is done -> Ready, UpToDate, Reconciling, Stalled
    (Standing.UP_TO_DATE, Activity.NONE): (True, True, False, False),
    (Standing.UP_TO_DATE, Activity.HINDERED): (True, True, True, False),
    (Standing.BEHIND, Activity.NONE): (True, False, False, False),
    (Standing.BEHIND, Activity.HINDERED): (True, False, True, False),
    (Standing.SOAKED, Activity.NONE): (True, False, False, False),
    (Standing.SOAKED, Activity.SOAKS): (True, False, True, False),
    (Standing.SOAKED, Activity.HINDERED): (True, False, True, False),
    (Standing.ROLLED_BACK, Activity.NONE): (True, False, False, False),
    (Standing.ROLLED_BACK, Activity.SOAKS): (True, False, True, False),
    (Standing.ROLLED_BACK, Activity.HINDERED): (True, False, True, False),
    (Standing.SERVES_OLDER, Activity.GOES_ON): (True, False, False, False),
    (Standing.SERVES_OLDER, Activity.PAUSED): (True, False, False, False),
    (Standing.SERVES_OLDER, Activity.HINDERED): (True, False, False, False),
    (Standing.SERVES_OLDER, Activity.STALLED): (True, False, False, False),
    (Standing.UNAVAILABLE, Activity.GOES_ON): (False, False, True, False),
    (Standing.UNAVAILABLE, Activity.PAUSED): (False, False, False, False),
    (Standing.UNAVAILABLE, Activity.HINDERED): (False, False, True, False),
    (Standing.UNAVAILABLE, Activity.STALLED): (False, False, False, True),
    (Standing.UNMET, Activity.GOES_ON): (False, False, True, False),
    (Standing.UNMET, Activity.PAUSED): (False, False, False, False),
    (Standing.UNMET, Activity.HINDERED): (False, False, True, False),
    (Standing.UNMET, Activity.STALLED): (False, False, False, True),
}


@pytest.mark.parametrize(("rows", "decide", "answers"), TABLES)
def test_every_combination_of_facts_has_the_answer_of_its_row(
    rows: Rows, decide: Callable[[SummaryFacts], object], answers: type[Standing] | type[Activity]
) -> None:
    for facts in EVERY:
        assert decide(facts) is decided(rows, facts), facts
    assert idle(rows, EVERY) == []
    assert {decide(facts) for facts in EVERY} == set(answers)


def test_all_four_conditions_follow_from_the_two_answers() -> None:
    for facts in EVERY:
        says = summary_truths(facts)
        assert tuple(says) == SUMMARY
        assert tuple(says.values()) == SAYS[standing(facts), activity(facts)], facts
    assert {(standing(facts), activity(facts)) for facts in EVERY} == set(SAYS)


def test_a_failure_that_may_pass_changes_reconciling_alone() -> None:
    for facts in EVERY:
        if facts.hindrance is FAILS:
            before, says = summary_truths(replace(facts, hindrance=NONE)), summary_truths(facts)
            assert [each for each in SUMMARY if says[each] != before[each]] in ([], ["Reconciling"])
            assert hindered_conditions(facts) == ("Reconciling",)


def test_the_conditions_that_do_not_name_a_hindrance_say_what_they_said() -> None:
    for facts in EVERY:
        before, says = summary_truths(replace(facts, hindrance=NONE)), summary_truths(facts)
        assert all(says[each] == before[each] for each in SUMMARY if each not in hindered_conditions(facts)), facts
