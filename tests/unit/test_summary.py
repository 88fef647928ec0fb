"""The truth tables of the conditions that summarize: every row, and every combination of facts."""

from collections.abc import Callable

import pytest

from tests.unit.truth_table import ANY, Rows, decided, everything, idle
from triton_operator.planning.summary import Activity, Standing, SummaryFacts, activity, standing

STANDING: Rows = {
    # complete, rolled back, met, available, soaks, stalled, paused -> what serves
    "a revision that the spec names serves": (True, True, ANY, ANY, ANY, ANY, ANY, Standing.ROLLED_BACK),
    "the target is soaked": (True, False, ANY, ANY, True, ANY, ANY, Standing.SOAKED),
    "the target serves": (True, False, ANY, ANY, False, ANY, ANY, Standing.UP_TO_DATE),
    "the spec was never met": (False, ANY, False, ANY, ANY, ANY, ANY, Standing.UNMET),
    "the spec is met by an older revision": (False, ANY, True, True, ANY, ANY, ANY, Standing.SERVES_OLDER),
    "the spec was met, and no server answers": (False, ANY, True, False, ANY, ANY, ANY, Standing.UNAVAILABLE),
}
ACTIVITY: Rows = {
    # complete, rolled back, met, available, soaks, stalled, paused -> what is done
    "the target is soaked for the first time": (True, ANY, False, ANY, True, ANY, ANY, Activity.SOAKS),
    "the target serves": (True, ANY, ANY, ANY, ANY, ANY, ANY, Activity.NONE),
    "something failed": (False, ANY, ANY, ANY, ANY, True, ANY, Activity.STALLED),
    "a person is waited for": (False, ANY, ANY, ANY, ANY, False, True, Activity.PAUSED),
    "work goes on": (False, ANY, ANY, ANY, ANY, False, False, Activity.GOES_ON),
}
TABLES = [(STANDING, standing, Standing), (ACTIVITY, activity, Activity)]
EVERY = list(everything(SummaryFacts))


@pytest.mark.parametrize(("rows", "decide", "answers"), TABLES)
def test_every_combination_of_facts_has_the_answer_of_its_row(
    rows: Rows, decide: Callable[[SummaryFacts], object], answers: type[Standing] | type[Activity]
) -> None:
    for facts in EVERY:
        assert decide(facts) is decided(rows, facts), facts
    assert idle(rows, EVERY) == []
    assert {decide(facts) for facts in EVERY} == set(answers)
