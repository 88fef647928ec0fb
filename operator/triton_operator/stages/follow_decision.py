"""What becomes of the version that the last look found: facts in, one answer out. Pure, with a table as its test."""

from dataclasses import dataclass
from enum import Enum, auto


class Offer(Enum):
    """The version that the last look found."""

    NOTHING = auto()
    """No look has found any."""
    TAKEN = auto()
    """The one that was taken last: it serves, is worked on, or did not pass."""
    REFUSED = auto()
    """Another one, which did not pass, and all else that decided so is as it was."""
    SERVING = auto()
    """The one that serves, though another one was taken since: the alias is back, and to take it changes no answer."""
    OTHER = auto()
    """Any other one. It may have served before: then its records are kept, and no Job runs for it."""


@dataclass(frozen=True)
class FollowFacts:
    """Everything that decides what becomes of it."""

    offer: Offer
    first: bool
    """Whether nothing is kept in its place: of this source nothing was taken or published; or what was taken did not
    pass, and nothing serves."""
    settled: bool
    """Whether looks are sure of it (`Following.is_settled`)."""
    only_notifies: bool
    """Whether `onChange` is Notify."""
    busy: bool
    """Whether the version that was taken is still worked on, and neither waits for a person nor failed."""


class Answer(Enum):
    """What becomes of the version."""

    NONE = auto()
    """There is none to decide about."""
    KEEP = auto()
    """Nothing newer is there."""
    REFUSE = auto()
    """The refusal is told again."""
    NOTIFY = auto()
    """The version is told of, and a person decides."""
    LOOK_AGAIN = auto()
    """Another look has to find the version too."""
    FINISH = auto()
    """The version waits until what is worked on has ended: else those that come faster would all be lost."""
    TAKE = auto()
    """The version is published, verified and served if it passes."""


def answer(facts: FollowFacts) -> Answer:
    """Return what becomes of the version; the first line that applies decides."""
    if facts.offer is Offer.NOTHING:
        return Answer.NONE
    if facts.offer is Offer.TAKEN:
        return Answer.KEEP
    if facts.offer is Offer.REFUSED:
        return Answer.REFUSE
    if facts.first:
        return Answer.TAKE
    if facts.offer is Offer.OTHER and facts.only_notifies:
        return Answer.NOTIFY
    if facts.offer is Offer.OTHER and not facts.settled:
        return Answer.LOOK_AGAIN
    return Answer.FINISH if facts.busy else Answer.TAKE
