"""What served, newest first: the records each of these states needs. Kept in the results ConfigMap. Pure."""

import json
from dataclasses import dataclass


@dataclass(frozen=True)
class History:
    """The states that served, and how often one of them was dropped."""

    served: tuple[tuple[str, ...], ...] = ()
    """Names of the records each needs, sorted; the first state serves."""
    dropped: int = 0
    """Each time, a Job cleans the claim."""

    def advanced(self, needed: frozenset[str], limit: int) -> "History":
        """With a state that now serves; at most ``limit`` others are kept."""
        state = tuple(sorted(needed))
        served = (state, *(each for each in self.served if each != state))
        kept = served[: limit + 1]
        return History(kept, self.dropped + (len(kept) < len(served)))

    @property
    def records(self) -> frozenset[str]:
        """Of all states."""
        return frozenset(name for state in self.served for name in state)

    def to_json(self) -> str:
        """As it is kept."""
        return json.dumps({"served": self.served, "dropped": self.dropped}, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> "History":
        """As it was kept; an empty one where somebody broke it."""
        try:
            kept = json.loads(text)
            return cls(tuple(tuple(map(str, state)) for state in kept["served"]), int(kept["dropped"]))
        except (ValueError, KeyError, TypeError):
            return cls()
