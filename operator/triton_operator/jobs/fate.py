"""The next step for work that has no result yet: facts in, one fate out. Pure, with a table as its test."""

from dataclasses import dataclass
from enum import Enum, auto


class JobPhase(Enum):
    """The state of the work's Job."""

    ABSENT = auto()
    ACTIVE = auto()
    """The Job goes on, or it ended seconds ago and the watch of pods may still show its answer."""
    FAILED = auto()
    """The Job failed, or it is given up while it still runs."""
    ENDED = auto()
    """The Job ended, and left no answer that can still be read."""


class RecordedFailure(Enum):
    """What is recorded of the Job's failure."""

    NOTHING = auto()
    STANDS = auto()
    REPEATS = auto()
    """The failure is recorded, and the work is to be tried again all the same."""


class Reading(Enum):
    """The state of the Job that reads the work's answer from the claim."""

    NONE = auto()
    """None is needed."""
    GOES_ON = auto()
    """The reading Job runs, or it has left the answer."""
    FAILED = auto()


@dataclass(frozen=True)
class WorkFacts:
    """Everything that decides the fate of the work."""

    recorded: RecordedFailure
    job: JobPhase
    reading: Reading
    may_start: bool
    """Whether a Job may be created."""


class Fate(Enum):
    """The next step for the work."""

    FAILED_BEFORE = auto()
    """The work counts as failed without another Job, because its failure is recorded."""
    MAKES_WAY = auto()
    """The Job that failed is deleted, so that another one can start."""
    READS = auto()
    """Another Job reads the work's answer from the claim."""
    UNREADABLE = auto()
    """The Job that reads the work's answer failed, so the work failed."""
    WAITS = auto()
    """No Job may start yet."""
    RUNS = auto()
    """The work's Job is created, or goes on."""
    FAILS = auto()
    """The Job has failed in this pass, and its failure is recorded from now on."""
    REPEATS = auto()
    """The Job ended without an answer, so it is deleted, and another one starts."""


def next_fate(facts: WorkFacts) -> Fate:
    """Return the fate; the first line that applies decides."""
    if facts.recorded is RecordedFailure.STANDS:
        return Fate.FAILED_BEFORE
    if facts.recorded is RecordedFailure.REPEATS and facts.job is not JobPhase.ABSENT:
        return Fate.MAKES_WAY
    if facts.reading is not Reading.NONE:
        return Fate.READS if facts.reading is Reading.GOES_ON else Fate.UNREADABLE
    if facts.job is JobPhase.ABSENT:
        return Fate.RUNS if facts.may_start else Fate.WAITS
    return {JobPhase.ACTIVE: Fate.RUNS, JobPhase.FAILED: Fate.FAILS, JobPhase.ENDED: Fate.REPEATS}[facts.job]
