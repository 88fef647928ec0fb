"""What served, newest first: the records each of these states needs. Kept in the results ConfigMap. Pure."""

import json
from dataclasses import dataclass

from triton_converters.contract.document import Document


@dataclass(frozen=True)
class State:
    """One state of the object that served."""

    records: tuple[str, ...]
    """Names of the records it needs, sorted."""
    profile: str = ""
    """Of these, the profile of the candidate that served; empty: recorded by a version that did not know it."""


@dataclass(frozen=True)
class History:
    """The states that served, and how often one of them was dropped."""

    served: tuple[State, ...] = ()
    """The first one serves."""
    dropped: int = 0
    """Each time, a Job cleans the claim."""

    def advanced(self, needed: frozenset[str], profile: str, limit: int) -> "History":
        """With a state that now serves; at most ``limit`` others are kept."""
        state = State(tuple(sorted(needed)), profile)
        served = (state, *(each for each in self.served if each.records != state.records))
        kept = served[: limit + 1]
        return History(kept, self.dropped + (len(kept) < len(served)))

    @property
    def records(self) -> frozenset[str]:
        """Of all states."""
        return frozenset(name for state in self.served for name in state.records)

    def to_json(self) -> str:
        """As it is kept."""
        document = {
            "served": [state.records for state in self.served],
            "profiles": [state.profile for state in self.served],
            "dropped": self.dropped,
        }
        return json.dumps(document, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> "History":
        """As it was kept; an empty one where somebody broke it."""
        try:
            kept = _Kept.from_json(text)
            states = zip(kept.served, kept.profiles or [""] * len(kept.served), strict=True)
            return cls(tuple(State(names, profile) for names, profile in states), kept.dropped)
        except ValueError:
            return cls()


@dataclass(frozen=True)
class _Kept(Document):
    """A History as it is kept."""

    served: tuple[tuple[str, ...], ...]
    """Names of each state's records."""
    dropped: int
    profiles: tuple[str, ...] = ()
    """Of each state; none in what an earlier version kept."""
