"""The next move of the active revision's soak: facts in, one move out. Pure, with a truth table as its test."""

from dataclasses import dataclass
from enum import Enum, auto

from triton_operator.rollout.inconclusive import Course


class Beginning(Enum):
    """The state of the record of the Service's move to the active revision."""

    NO_REVISION = auto()
    """No revision is active."""
    NOTHING = auto()
    """The revision has been active since before the spec asked for a soak, or was the first."""
    JUDGED = auto()
    """The soak has its verdict."""
    OPEN = auto()
    """The soak has none yet."""


@dataclass(frozen=True)
class SoakFacts:
    """Everything that decides the next move of a soak."""

    is_asked_for: bool
    """Whether the spec asks for soaks."""
    beginning: Beginning
    ends_early: bool = False
    """Whether the soak has to end before its time, because no later requests could decide anything."""
    crashed: bool = False
    """Whether the revision's server ended by itself, and that of the previous one did not."""
    course: Course | None = None
    """What follows from the requests and the crashes so far; None: they do not decide yet."""
    answers: bool = True
    """Whether a pod of the active revision is ready. While none is, the previous one is kept, to come back."""


class SoakMove(Enum):
    """The next move of a soak."""

    NONE = auto()
    """There is no soak."""
    AWAIT_REVISION = auto()
    """The soak begins once a revision is active."""
    AWAIT_NEXT = auto()
    """The next revision is soaked, this one is not."""
    STAND = auto()
    """The verdict that the soak has already stands."""
    END_EARLY = auto()
    """The soak ends without a verdict before its time, because no later requests could decide anything."""
    GO_ON = auto()
    """The soak goes on."""
    JUDGE = auto()
    """The soak ends with what was found, and the revision stays."""
    UNDO = auto()
    """The soak ends with what was found, and the previous revision is active again."""
    HOLD = auto()
    """The soak goes on past its time, and is judged again."""
    BEGIN_ANEW = auto()
    """The soak goes on past its time, and only requests from now on count."""


_FOLLOWS = {
    None: SoakMove.GO_ON,
    Course.GO_ON: SoakMove.JUDGE,
    Course.UNDO: SoakMove.UNDO,
    Course.WAIT: SoakMove.HOLD,
    Course.BEGIN_ANEW: SoakMove.BEGIN_ANEW,
}
_BEFORE = {
    Beginning.NO_REVISION: SoakMove.AWAIT_REVISION,
    Beginning.NOTHING: SoakMove.AWAIT_NEXT,
    Beginning.JUDGED: SoakMove.STAND,
}


def next_soak(facts: SoakFacts) -> SoakMove:
    """Return the next move of the soak; the first line that applies decides."""
    if not facts.is_asked_for:
        return SoakMove.NONE
    if facts.beginning is not Beginning.OPEN:
        return _BEFORE[facts.beginning]
    if facts.ends_early and not facts.crashed:
        return SoakMove.END_EARLY
    if facts.course is Course.GO_ON and not facts.answers:
        return SoakMove.GO_ON
    return _FOLLOWS[facts.course]
