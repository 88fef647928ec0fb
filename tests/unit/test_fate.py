"""The truth table of work without a result: every row, and every combination of facts."""

from tests.unit.truth_table import ANY, decided, everything, idle
from triton_operator.jobs.fate import Fate, JobPhase, Reading, RecordedFailure, WorkFacts, next_fate

ROWS = {
    # recorded, job, reading, may_start -> fate
    "its failure is recorded and stands": (RecordedFailure.STANDS, ANY, ANY, ANY, Fate.FAILED_BEFORE),
    # The failed Job goes first: its name is that of the next one.
    "it is tried again, and its Job is there": (RecordedFailure.REPEATS, JobPhase.ACTIVE, ANY, ANY, Fate.MAKES_WAY),
    "it is tried again, and its failed Job is there": (
        RecordedFailure.REPEATS,
        JobPhase.FAILED,
        ANY,
        ANY,
        Fate.MAKES_WAY,
    ),
    "it is tried again, and its ended Job is there": (
        RecordedFailure.REPEATS,
        JobPhase.ENDED,
        ANY,
        ANY,
        Fate.MAKES_WAY,
    ),
    "another Job reads its answer": (ANY, ANY, Reading.GOES_ON, ANY, Fate.READS),
    "no other Job could read its answer": (ANY, ANY, Reading.FAILED, ANY, Fate.UNREADABLE),
    "nobody has begun it": (ANY, JobPhase.ABSENT, ANY, True, Fate.RUNS),
    "nobody may begin it": (ANY, JobPhase.ABSENT, ANY, False, Fate.WAITS),
    # A Job that exists goes on, whether another one may start or not.
    "its Job goes on": (ANY, JobPhase.ACTIVE, ANY, ANY, Fate.RUNS),
    "its Job failed": (ANY, JobPhase.FAILED, ANY, ANY, Fate.FAILS),
    "its Job ended without an answer": (ANY, JobPhase.ENDED, ANY, ANY, Fate.REPEATS),
}
EVERY = list(everything(WorkFacts))


def test_every_combination_of_facts_has_the_fate_of_its_row() -> None:
    for facts in EVERY:
        assert next_fate(facts) is decided(ROWS, facts), facts


def test_no_row_is_idle_and_every_fate_is_met() -> None:
    assert idle(ROWS, EVERY) == []
    assert {next_fate(facts) for facts in EVERY} == set(Fate)
