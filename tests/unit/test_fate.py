"""What becomes of work without a result, by the whole table of facts."""

from itertools import product

import pytest

from triton_operator.jobs.fate import Fate, Known, Reading, State, WorkFacts, next_fate

NOTHING = WorkFacts(known=Known.NOTHING, job=State.ABSENT, reading=Reading.NONE, may_start=True)
"""Facts of work that nobody has done: its Job starts."""


def facts(**others: object) -> WorkFacts:
    return WorkFacts(**{**vars(NOTHING), **others})


@pytest.mark.parametrize(
    ("seen", "fate"),
    [
        (facts(), Fate.RUNS),
        (facts(may_start=False), Fate.WAITS),
        # A Job that exists goes on, whether another one may start or not.
        (facts(job=State.ACTIVE, may_start=False), Fate.RUNS),
        (facts(job=State.FAILED, may_start=False), Fate.FAILS),
        (facts(job=State.ENDED, may_start=False), Fate.REPEATS),
        (facts(known=Known.STANDS), Fate.FAILED_BEFORE),
        (facts(known=Known.STANDS, job=State.FAILED), Fate.FAILED_BEFORE),
        (facts(known=Known.STANDS, reading=Reading.GOES_ON), Fate.FAILED_BEFORE),
        # The failed Job goes first: its name is that of the next one.
        (facts(known=Known.REPEATS, job=State.FAILED), Fate.MAKES_WAY),
        (facts(known=Known.REPEATS), Fate.RUNS),
        (facts(known=Known.REPEATS, may_start=False), Fate.WAITS),
        (facts(known=Known.REPEATS, reading=Reading.FAILED), Fate.UNREADABLE),
        (facts(job=State.FAILED, reading=Reading.GOES_ON), Fate.READS),
        (facts(job=State.FAILED, reading=Reading.FAILED), Fate.UNREADABLE),
        (facts(job=State.ENDED, reading=Reading.GOES_ON), Fate.READS),
        (facts(reading=Reading.GOES_ON, may_start=False), Fate.READS),
    ],
)
def test_the_first_line_that_applies_decides(seen: WorkFacts, fate: Fate) -> None:
    assert next_fate(seen) is fate


def test_every_fact_has_a_fate_and_every_fate_a_fact() -> None:
    every = product(Known, State, Reading, (False, True))
    assert {next_fate(WorkFacts(*each)) for each in every} == set(Fate)
