"""The next move of the target revision: facts in, one move out. Pure, with a truth table as its test."""

from dataclasses import dataclass
from enum import Enum, auto


class Server(Enum):
    """The state of the target's server."""

    UNWANTED = auto()
    """No replicas are desired."""
    STARTING = auto()
    READY = auto()
    LATE = auto()
    """The deadline for the target's pods to be ready has passed."""


class Figures(Enum):
    """The state of the figures from the measurement through the preview Service."""

    MISSING = auto()
    PASSED = auto()
    MISSED = auto()
    """A constraint or the regression's bound is broken."""
    FAILED = auto()
    """The Job failed, so there will be no figures."""
    LATE = auto()
    """The measurement did not begin in the time for which the active revision made room for the target."""


class Sharing(Enum):
    """What comes next for the target's canary, if the target may share requests."""

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
    sharing: Sharing
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
    """The previous revision is active again, and the target goes."""
    GIVE_UP = auto()
    """The active revision stays, with all replicas that made way for the target."""
    YIELD = auto()
    """The replicas that made way for the target come back until the rollout may go on."""
    SETTLE = auto()
    """The first revision becomes active although it breaks a constraint, because no other one answers."""
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
    """The target is active, and the rollout is complete."""


FAILED = frozenset({Move.UNDO, Move.GIVE_UP, Move.SETTLE})
"""The moves after which only a change brings the target further."""
GIVES_BACK = FAILED | {Move.YIELD}
"""The moves with which nothing makes way for the target."""
POINTS_TO = frozenset({Move.SETTLE, Move.PROMOTE, Move.SERVE})
"""The moves with which the Service points to the target."""


def may_share(facts: RolloutFacts) -> bool:
    """Whether the target may share requests: it passed its measurement, is not active, and has not failed.

    Its pods need not be ready, so a canary that has begun goes on while none of them is.
    """
    if facts.undone or facts.yields or facts.is_active:
        return False
    return facts.figures is Figures.PASSED and facts.server is not Server.LATE and facts.sharing is not Sharing.HELD


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
    if facts.sharing is Sharing.FAILED and may_share(facts):
        return Move.UNDO
    if facts.sharing is Sharing.GOES_ON and may_share(facts):
        return Move.SHARE
    if facts.server is not Server.READY:
        return Move.STOP if facts.server is Server.UNWANTED else Move.START
    if facts.figures is Figures.MISSING or facts.sharing is Sharing.HELD:
        return Move.MEASURE
    return Move.SERVE if facts.is_active else Move.PROMOTE
