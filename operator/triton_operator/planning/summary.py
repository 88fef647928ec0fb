"""What the conditions that summarize say: facts in, two answers out. Pure, with truth tables as its test."""

from dataclasses import dataclass
from enum import Enum, auto


@dataclass(frozen=True)
class SummaryFacts:
    """Everything that decides Ready, UpToDate, Reconciling and Stalled."""

    complete: bool
    """Whether the target serves, verified and measured."""
    rolled_back: bool
    """Whether the spec names the revision that serves, so that nothing newer is looked for."""
    met: bool
    """Whether what this generation of the spec asks for has served, and was not undone since."""
    available: bool
    """Whether a server answers."""
    soaks: bool
    """Whether the active revision is soaked."""
    stalled: bool
    """Whether nothing more is tried until something changes."""
    paused: bool
    """Whether the object waits for its user, without anything being wrong."""


class Standing(Enum):
    """What serves, compared with what the spec asks for: Ready and UpToDate."""

    UP_TO_DATE = auto()
    """All that is wanted serves."""
    SOAKED = auto()
    """All that is wanted serves, and its soak may still undo it."""
    ROLLED_BACK = auto()
    """The revision serves that the spec names."""
    SERVES_OLDER = auto()
    """The spec is met, and something newer is worked on, waits or failed."""
    UNAVAILABLE = auto()
    """The spec was met, and no server answers."""
    UNMET = auto()
    """What the spec asks for has not served yet."""


class Activity(Enum):
    """What the operator does: Reconciling, and Stalled unless a server answers as the spec asks."""

    NONE = auto()
    """Nothing is left to do."""
    SOAKS = auto()
    """Only the soak of what serves may still undo it."""
    GOES_ON = auto()
    PAUSED = auto()
    """The object waits for its user, without anything being wrong."""
    STALLED = auto()
    """Nothing more is tried until something changes."""


def standing(facts: SummaryFacts) -> Standing:
    """Return what serves; the first line that applies decides."""
    if facts.complete and facts.rolled_back:
        return Standing.ROLLED_BACK
    if facts.complete:
        return Standing.SOAKED if facts.soaks else Standing.UP_TO_DATE
    if not facts.met:
        return Standing.UNMET
    return Standing.SERVES_OLDER if facts.available else Standing.UNAVAILABLE


def activity(facts: SummaryFacts) -> Activity:
    """Return what the operator does; the first line that applies decides."""
    if facts.complete:
        return Activity.SOAKS if facts.soaks and not facts.met else Activity.NONE
    if facts.stalled:
        return Activity.STALLED
    return Activity.PAUSED if facts.paused else Activity.GOES_ON
