"""What becomes of the target revision next: facts in, one move out. Pure, with a truth table as its test."""

from dataclasses import dataclass
from enum import Enum, auto


class Server(Enum):
    """How far the target's server is."""

    UNWANTED = auto()
    """No replicas are desired."""
    STARTING = auto()
    READY = auto()
    LATE = auto()
    """The deadline for the target's pods to be ready has passed."""


class Figures(Enum):
    """What the measurement through the preview Service says."""

    MISSING = auto()
    PASSED = auto()
    MISSED = auto()
    """A constraint or the regression's bound is broken."""
    FAILED = auto()
    """There will be none: the Job failed."""
    LATE = auto()
    """The measurement did not begin in the time for which the active revision made room for the target."""


class Trial(Enum):
    """What comes next of the target's canary, if the target may share requests."""

    NONE = auto()
    """No canary is asked for, or it is over, or it may not begin yet."""
    GOES_ON = auto()
    """A step begins, or goes on."""
    FAILED = auto()
    """The canary ends without success."""
    HELD = auto()
    """The preview Service still has to point to a revision whose canary has ended."""


@dataclass(frozen=True)
class RolloutFacts:
    """Everything that decides the next move."""

    server: Server
    figures: Figures
    trial: Trial
    is_active: bool
    """Whether the Service points to the target."""
    alone: bool
    """Whether no revision is active."""
    undone: bool
    """Whether the target was active, or had a canary, and failed in an earlier pass, or fails its soak now."""
    yields: bool
    """Whether the spec is suspended while the active revision makes way for the target."""


class Move(Enum):
    """The next move."""

    UNDO = auto()
    """What served before serves; the target goes."""
    GIVE_UP = auto()
    """What serves goes on, with all that made way for the target."""
    YIELD = auto()
    """What made way for the target comes back until the roll-out may go on."""
    SETTLE = auto()
    """The first revision serves although it breaks a constraint: better than nothing."""
    SHARE = auto()
    """The target's canary takes a share of the requests."""
    STOP = auto()
    """No server runs."""
    START = auto()
    """The target's server is created, or waited for."""
    MEASURE = auto()
    """The target is measured through the preview Service."""
    PROMOTE = auto()
    """The Service moves to the target."""
    SERVE = auto()
    """The target serves, and nothing is left to do."""


FAILED = frozenset({Move.UNDO, Move.GIVE_UP, Move.SETTLE})
"""The moves after which only a change brings the target further."""
GIVES_BACK = FAILED | {Move.YIELD}
"""The moves with which nothing makes way for the target."""
POINTS_TO = frozenset({Move.SETTLE, Move.PROMOTE, Move.SERVE})
"""The moves with which the Service points to the target."""


def may_share(facts: RolloutFacts) -> bool:
    """Whether the target's canary counts: only the pods that are ready may be missing before the Service moves.

    So a canary that has begun goes on while none of the target's pods is ready.
    """
    if facts.undone or facts.yields or facts.is_active:
        return False
    return facts.figures is Figures.PASSED and facts.server is not Server.LATE and facts.trial is not Trial.HELD


def next_move(facts: RolloutFacts) -> Move:
    """Return the next move; the first line that applies decides."""
    if facts.undone:
        return Move.UNDO
    if facts.figures is Figures.MISSED and facts.alone and facts.server is Server.READY:
        return Move.SETTLE
    if facts.figures in (Figures.MISSED, Figures.FAILED, Figures.LATE) or facts.server is Server.LATE:
        return Move.GIVE_UP
    if facts.yields:
        return Move.YIELD
    if facts.trial is Trial.FAILED and may_share(facts):
        return Move.UNDO
    if facts.trial is Trial.GOES_ON and may_share(facts):
        return Move.SHARE
    if facts.server is not Server.READY:
        return Move.STOP if facts.server is Server.UNWANTED else Move.START
    if facts.figures is Figures.MISSING or facts.trial is Trial.HELD:
        return Move.MEASURE
    return Move.SERVE if facts.is_active else Move.PROMOTE
