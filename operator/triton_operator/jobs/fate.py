"""What becomes of work without a result: facts in, one fate out. Pure, with a table as its test."""

from dataclasses import dataclass
from enum import Enum, auto


class State(Enum):
    """How far the work's Job is."""

    ABSENT = auto()
    ACTIVE = auto()
    """It goes on, or ended just now and its pod may still be seen."""
    FAILED = auto()
    """It failed, or it is given up."""
    ENDED = auto()
    """It ended, and no answer is left of it."""


class Known(Enum):
    """What is recorded of the Job's failure."""

    NOTHING = auto()
    STANDS = auto()
    REPEATS = auto()
    """It is recorded, and the work is to be tried again."""


class Reading(Enum):
    """How far the Job is that reads the work's answer from the claim."""

    NONE = auto()
    """None is needed."""
    GOES_ON = auto()
    """It is there or it has answered."""
    FAILED = auto()


@dataclass(frozen=True)
class WorkFacts:
    """Everything that decides what becomes of the work."""

    known: Known
    job: State
    reading: Reading
    may_start: bool
    """Whether a Job may be created."""


class Fate(Enum):
    """What becomes of the work."""

    FAILED_BEFORE = auto()
    """Its failure is known."""
    MAKES_WAY = auto()
    """Its failed Job goes, so that another can start."""
    READS = auto()
    """Another Job reads its answer."""
    UNREADABLE = auto()
    """That other Job failed, so the work did."""
    WAITS = auto()
    """No Job may start yet."""
    RUNS = auto()
    """Its Job is created, or goes on."""
    FAILS = auto()
    """Its failure is seen, and from now on recorded."""
    REPEATS = auto()
    """Its Job ended without an answer, so it goes, and another one starts."""


def next_fate(facts: WorkFacts) -> Fate:
    """Return the fate; the first line that applies decides."""
    if facts.known is Known.STANDS:
        return Fate.FAILED_BEFORE
    if facts.known is Known.REPEATS and facts.job is not State.ABSENT:
        return Fate.MAKES_WAY
    if facts.reading is not Reading.NONE:
        return Fate.READS if facts.reading is Reading.GOES_ON else Fate.UNREADABLE
    if facts.job is State.ABSENT:
        return Fate.RUNS if facts.may_start else Fate.WAITS
    return {State.ACTIVE: Fate.RUNS, State.FAILED: Fate.FAILS, State.ENDED: Fate.REPEATS}[facts.job]
