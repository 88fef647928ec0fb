"""What served, newest first: the records each of these states needs. Kept in the results ConfigMap. Pure."""

import json
from dataclasses import dataclass


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
            kept = json.loads(text)
            profiles = kept.get("profiles") or [""] * len(kept["served"])
            states = zip(kept["served"], profiles, strict=True)
            return cls(tuple(State(tuple(map(str, names)), str(each)) for names, each in states), int(kept["dropped"]))
        except (ValueError, KeyError, TypeError, AttributeError):
            return cls()
