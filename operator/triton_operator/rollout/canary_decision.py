"""The next move of the target's canary: facts in, one move out. Pure, with a truth table as its test."""

from dataclasses import dataclass
from enum import Enum, auto

from triton_operator.rollout.decision import Trial
from triton_operator.rollout.inconclusive import Course


class CanaryStage(Enum):
    """The stage of the target's canary, as recorded."""

    BEFORE = auto()
    """No step of the canary has begun."""
    RUNS = auto()
    """A step of the canary goes on."""
    PASSED = auto()
    """All steps of the canary are over, or the Service's move is recorded."""


@dataclass(frozen=True)
class CanaryFacts:
    """Everything that decides the next move of a canary."""

    possible: bool
    """Whether the spec asks for one, and the cluster has what leads requests to it."""
    compared: bool
    """Whether another revision answers, or did not long ago, with which the target can be compared."""
    stage: CanaryStage
    ready: bool
    """Whether the canary may begin."""
    course: Course | None
    """What follows from the present step; None: it does not decide yet."""


class CanaryMove(Enum):
    """The next move of a canary."""

    NONE = auto()
    """There is none, or it cannot begin yet: the target gets no share."""
    KEEP = auto()
    """There is nothing to compare with, so the Service moves; until then the share stays."""
    HAND_OVER = auto()
    """The canary passed, so the Service moves to the target; until then the last step's share stays."""
    BEGIN = auto()
    """The canary is recorded, and the target gets its share in the next pass."""
    GO_ON = auto()
    """The present step of the canary goes on."""
    PASS = auto()
    """The next step of the canary begins."""
    UNDO = auto()
    """The canary ends without success, and the active revision stays."""
    HOLD = auto()
    """The present step of the canary goes on past its time, and is judged again."""
    BEGIN_ANEW = auto()
    """The present step of the canary goes on past its time, and only requests from now on count."""


TRIALS = {
    CanaryMove.NONE: Trial.NONE,
    CanaryMove.KEEP: Trial.NONE,
    CanaryMove.HAND_OVER: Trial.NONE,
    CanaryMove.BEGIN: Trial.GOES_ON,
    CanaryMove.GO_ON: Trial.GOES_ON,
    CanaryMove.PASS: Trial.GOES_ON,
    CanaryMove.HOLD: Trial.GOES_ON,
    CanaryMove.BEGIN_ANEW: Trial.GOES_ON,
    CanaryMove.UNDO: Trial.FAILED,
}
"""What each move of the canary means for the table of the rollout (`decision.next_move`)."""

_FOLLOWS = {
    None: CanaryMove.GO_ON,
    Course.GO_ON: CanaryMove.PASS,
    Course.UNDO: CanaryMove.UNDO,
    Course.WAIT: CanaryMove.HOLD,
    Course.BEGIN_ANEW: CanaryMove.BEGIN_ANEW,
}


def next_step(facts: CanaryFacts) -> CanaryMove:
    """Return the next move of the canary; the first line that applies decides."""
    if not facts.possible:
        return CanaryMove.NONE
    if not facts.compared:
        return CanaryMove.KEEP
    if facts.stage is CanaryStage.PASSED:
        return CanaryMove.HAND_OVER
    if facts.stage is CanaryStage.BEFORE:
        return CanaryMove.BEGIN if facts.ready else CanaryMove.NONE
    return _FOLLOWS[facts.course]
