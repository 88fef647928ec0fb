"""The tables of Ready, UpToDate, Reconciling and Stalled, also of a pass that fails. Pure; truth tables are its test.

The facts have two answers, what serves and what the operator does, and from these follow the four conditions.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto

from triton_operator.api.status import ConditionType

SUMMARY: tuple[ConditionType, ...] = ("Ready", "UpToDate", "Reconciling", "Stalled")
"""The conditions that summarize all others, in their order."""


class Hindrance(Enum):
    """What keeps a pass from being done."""

    NONE = auto()
    FAILS = auto()
    """Something fails that may succeed by itself: it is tried again, and what serves is as it was."""
    REFUSED = auto()
    """The API server refuses an object that the plan needs, until somebody changes something."""
    INVALID = auto()
    """The spec cannot be carried out, until its user corrects it; so nothing serves as it asks."""


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
    hindrance: Hindrance = Hindrance.NONE
    """What keeps the pass from being done. A plan is made before anything does, so its facts have none."""
    newer: bool = False
    """Whether the source has a version that was not taken, or it is not known whether it has."""


class Standing(Enum):
    """What serves, compared with what the spec asks for."""

    UP_TO_DATE = auto()
    """All that is desired serves."""
    BEHIND = auto()
    """All that was taken of the source serves, and there may be something newer."""
    SOAKED = auto()
    """All that is desired serves, and its soak may still undo it."""
    ROLLED_BACK = auto()
    """The revision serves that the spec names."""
    SERVES_OLDER = auto()
    """The spec is met, and something newer is worked on, waits or failed."""
    UNAVAILABLE = auto()
    """The spec was met, and no server answers."""
    UNMET = auto()
    """What the spec asks for has not served yet."""


class Activity(Enum):
    """What the operator does."""

    NONE = auto()
    """Nothing is left to do."""
    SOAKS = auto()
    """Only the soak of what serves may still undo it."""
    GOES_ON = auto()
    HINDERED = auto()
    """Something fails that may succeed by itself, so the pass is made again."""
    PAUSED = auto()
    """The object waits for its user, without anything being wrong."""
    STALLED = auto()
    """Nothing more is tried until something changes."""


NEWEST = {Standing.UP_TO_DATE, Standing.BEHIND, Standing.SOAKED, Standing.ROLLED_BACK}
"""The standings in which the flow is complete."""
WORKS = {Activity.SOAKS, Activity.GOES_ON, Activity.HINDERED}
"""The activities for which Reconciling is True, unless the spec is met and only something newer is worked on."""


def standing(facts: SummaryFacts) -> Standing:
    """Return what serves; the first line that applies decides."""
    if facts.hindrance is Hindrance.INVALID:
        return Standing.UNMET
    if facts.complete and facts.hindrance is Hindrance.REFUSED:
        # There is nothing newer, so what is refused is a part of what serves.
        return Standing.UNMET
    if facts.complete and facts.rolled_back:
        return Standing.ROLLED_BACK
    if facts.complete and facts.soaks:
        return Standing.SOAKED
    if facts.complete:
        return Standing.BEHIND if facts.newer else Standing.UP_TO_DATE
    if not facts.met:
        return Standing.UNMET
    return Standing.SERVES_OLDER if facts.available else Standing.UNAVAILABLE


def activity(facts: SummaryFacts) -> Activity:
    """Return what the operator does; the first line that applies decides."""
    if facts.hindrance in (Hindrance.REFUSED, Hindrance.INVALID):
        return Activity.STALLED
    if facts.stalled and not facts.complete:
        return Activity.STALLED
    if facts.hindrance is Hindrance.FAILS:
        return Activity.HINDERED
    if facts.complete:
        return Activity.SOAKS if facts.soaks and not facts.met else Activity.NONE
    return Activity.PAUSED if facts.paused else Activity.GOES_ON


def summary_truths(facts: SummaryFacts) -> Mapping[ConditionType, bool]:
    """Return whether each condition that summarizes holds.

    While the spec is met, and only something newer is worked on, Reconciling and Stalled are False: to a tool that
    waits for a commit the object is done.
    """
    current_standing, current_activity = standing(facts), activity(facts)
    is_older = current_standing is Standing.SERVES_OLDER
    return {
        "Ready": is_older or current_standing in NEWEST,
        "UpToDate": current_standing is Standing.UP_TO_DATE,
        "Reconciling": current_activity in WORKS and not is_older,
        "Stalled": current_activity is Activity.STALLED and not is_older,
    }


def hindered_conditions(facts: SummaryFacts) -> tuple[ConditionType, ...]:
    """Return the conditions that name the hindrance as their reason; the others keep the one that they have."""
    if facts.hindrance is Hindrance.NONE:
        return ()
    if facts.hindrance is Hindrance.FAILS:
        return ("Reconciling",)
    return ("UpToDate", "Reconciling") if standing(facts) is Standing.SERVES_OLDER else SUMMARY
