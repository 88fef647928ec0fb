"""The states that served, newest first, each with the records it needs. Kept in the results ConfigMap. Pure."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from triton_converters.contract.document import Document, given
from triton_operator.observed.revision import Revision

MOST_STATES = 21
"""The active one and as many others as spec.revisionHistoryLimit may ask for."""


@dataclass(frozen=True)
class State:
    """A state of the object that served."""

    records: tuple[str, ...]
    """Names of the records it needs, sorted."""
    profile: str = ""
    """Name of the record of the active candidate's profile; empty: an older version recorded the state."""
    images: Mapping[str, Any] = field(default_factory=dict)
    """The images that it was made with, as in the status; empty: an older version recorded the state."""
    resolved: Mapping[str, Any] = field(default_factory=dict)
    """What the operator chose for fields that the spec leaves out, as in the status; empty: it chose nothing."""
    revision: Revision | None = None
    """The revision that served; None: an older version recorded the state."""


@dataclass(frozen=True)
class History:
    """The states that served, and how often one was dropped."""

    served: tuple[State, ...] = ()
    """The first state is the active one."""
    dropped: int = 0
    """How often a state was dropped. A Job cleans the claim each time."""

    def advanced(self, state: State, limit: int) -> "History":
        """Return the history with a state that now serves; at most ``limit`` others are kept."""
        served = (state, *(each for each in self.served if each.records != state.records))
        kept = served[: limit + 1]
        return History(kept, self.dropped + (len(kept) < len(served)))

    @cached_property
    def revisions(self) -> dict[str, Revision]:
        """The revisions that served, newest first, by their keys. What they hold is not read yet."""
        found: dict[str, Revision] = {}
        for revision in (each.revision for each in self.served):
            if revision is not None:
                found.setdefault(revision.key, revision)
        return found

    def state(self, revision: Revision) -> State:
        """Return the state of a revision of the history."""
        return next(each for each in self.served if each.revision == revision)

    @property
    def records(self) -> frozenset[str]:
        """Names of the records of all states."""
        return frozenset(name for state in self.served for name in state.records)

    def to_json(self) -> str:
        """Return the history as JSON."""
        document: dict[str, Any] = {
            "served": [state.records for state in self.served],
            "profiles": [state.profile for state in self.served],
            "images": [state.images for state in self.served],
            "dropped": self.dropped,
        }
        if any(state.resolved for state in self.served):
            document["resolved"] = [state.resolved for state in self.served]
        if any(state.revision for state in self.served):
            document["revisions"] = [state.revision for state in self.served]
        return json.dumps(document, separators=(",", ":"), default=given)

    @classmethod
    def from_json(cls, text: str) -> "History":
        """Read what to_json wrote; an empty history if the text is not valid."""
        try:
            kept = _Kept.from_json(text)
            count = len(kept.served)
            nothing: tuple[Mapping[str, Any], ...] = ({},) * count
            profiles = kept.profiles or ("",) * count
            others = kept.images or nothing, kept.resolved or nothing, kept.revisions or (None,) * count
            states = zip(kept.served, profiles, *others, strict=True)
            return cls(tuple(State(*state) for state in states)[:MOST_STATES], kept.dropped)
        except ValueError:
            return cls()


@dataclass(frozen=True)
class _Kept(Document):
    """A History as JSON has it."""

    served: tuple[tuple[str, ...], ...]
    """Names of each state's records."""
    dropped: int
    profiles: tuple[str, ...] = ()
    """Name of each state's profile record; empty if an earlier version wrote the text."""
    images: tuple[Mapping[str, Any], ...] = ()
    """Each state's images; empty if an earlier version wrote the text."""
    resolved: tuple[Mapping[str, Any], ...] = ()
    """What the operator chose in each state; empty if it chose nothing in any."""
    revisions: tuple[Revision | None, ...] = ()
    """Each state's revision; empty if an earlier version wrote the text."""
