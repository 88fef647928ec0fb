"""The states that served, newest first, each with the records it needs. Kept in the results ConfigMap. Pure."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from triton_converters.contract.document import Document, given
from triton_converters.contract.records import record_name
from triton_operator.observed.revision import Revision

MOST_STATES = 21
"""The active one and as many others as spec.revisionHistoryLimit may ask for."""


@dataclass(frozen=True)
class State(Document):
    """A state of the object that served."""

    records: tuple[str, ...]
    """Names of the records that the state needs, sorted."""
    profile: str = ""
    """Name of the record of the active candidate's profile; empty: its results were lost."""
    images: Mapping[str, Any] = field(default_factory=dict)
    """The images that it was made with, as in the status; empty: its results were lost."""
    resolved: Mapping[str, Any] = field(default_factory=dict)
    """What the operator chose for fields that the spec leaves out, as in the status; empty: it chose nothing."""
    revision: Revision | None = None
    """The revision that served; None: its Deployment did not say how it was made."""

    @classmethod
    def without_results(cls, revision: Revision) -> "State":
        """Return the state of a revision of which no results are recorded: its directory on the claim is needed."""
        return cls((record_name("convert", revision.key),), revision=revision)

    def has_same_server(self, other: "State") -> bool:
        """Whether both are states of one Deployment; what was measured of it may differ.

        Two sources of the same files have one Deployment, but each its images, which going back to it has to find; of
        a state whose results were lost, they are not known. Where no revision is known, the records tell.
        """
        if self.revision is None or other.revision is None:
            return self.records == other.records
        same_images = not (self.images and other.images) or self.images == other.images
        return self.revision.server == other.revision.server and same_images


@dataclass(frozen=True)
class History:
    """The states that served, the newest of each Deployment, and how often one was dropped."""

    served: tuple[State, ...] = ()
    """The one that served last comes first. It is the active one, unless that is on trial."""
    dropped: int = 0
    """How often a state was dropped. A Job cleans the claim each time."""
    trial: State | None = None
    """The active one while a soak may still undo it, or a successor ended its soak; None: there is none."""

    def with_served(self, state: State, limit: int) -> "History":
        """Return the history with a state that serves for good; at most ``limit`` others are kept."""
        states: list[State] = []
        for each in (state, *self.served):
            if not any(map(each.has_same_server, states)):
                states.append(each)
        kept_states = tuple(states[: limit + 1])
        trial = None if self.trial is None or self.trial.has_same_server(state) else self.trial
        return History(kept_states, self.dropped + (len(kept_states) < len(states)), trial)

    def with_trial(self, state: State | None) -> "History":
        """Return the history with a state that serves on trial; None: there is none any more. Nothing is dropped."""
        return replace(self, trial=state)

    @property
    def states(self) -> tuple[State, ...]:
        """All states, the one on trial first."""
        return self.served if self.trial is None else (self.trial, *self.served)

    @cached_property
    def revisions(self) -> dict[str, Revision]:
        """The revisions that served, the last one first, by the names that tell them apart.

        The name is KEY or, where several servers of one key served, KEY.SERVER. What they hold is not read yet.
        """
        by_server: dict[str, Revision] = {}
        for revision in (each.revision for each in self.states):
            if revision is not None:
                by_server.setdefault(revision.server, revision)
        servers = Counter(each.key for each in by_server.values())
        return {each.key if servers[each.key] == 1 else each.name: each for each in by_server.values()}

    def revision_named(self, name: str, active: Revision | None) -> Revision | None:
        """Return the revision of that name; None: it is not known. ``active``: the active one, known or not.

        KEY stands for the active one if it has that key, or else for the last server of that key that served. So it
        goes on to mean the same while it is named. KEY.SERVER stands for that server.
        """
        revisions = [*([active] if active is not None else []), *self.revisions.values()]
        return next((each for each in revisions if name in (each.key, each.name)), None)

    def state(self, revision: Revision) -> State:
        """Return the state of a revision, with what is known of it."""
        return next((each for each in self.states if each.revision == revision), State.without_results(revision))

    def revision_of_server(self, server: str | None) -> Revision | None:
        """Return the revision in the Deployment of that name; None: it is not recorded."""
        return next((each for each in self.revisions.values() if each.server == server), None)

    @property
    def records(self) -> frozenset[str]:
        """Names of the records of all states."""
        return frozenset(name for state in self.states for name in state.records)

    def to_json(self) -> str:
        """Return the history as JSON."""
        document: dict[str, Any] = {
            "served": [state.records for state in self.served],
            "profiles": [state.profile for state in self.served],
            "images": [state.images for state in self.served],
            "revisions": [state.revision for state in self.served],
            "dropped": self.dropped,
        }
        if any(state.resolved for state in self.served):
            document["resolved"] = [state.resolved for state in self.served]
        if self.trial is not None:
            document["trial"] = self.trial
        return json.dumps(document, separators=(",", ":"), default=given)

    @classmethod
    def from_json(cls, text: str) -> "History":
        """Read what to_json wrote; an empty history if the text is not valid."""
        try:
            stored = _StoredHistory.from_json(text)
            count = len(stored.served)
            empty: tuple[Mapping[str, Any], ...] = ({},) * count
            others = stored.profiles, stored.images, stored.resolved or empty, stored.revisions
            states = zip(stored.served, *others, strict=True)
            return cls(tuple(State(*state) for state in states)[:MOST_STATES], stored.dropped, stored.trial)
        except ValueError:
            return cls()


@dataclass(frozen=True)
class _StoredHistory(Document):
    """A History as JSON has it."""

    served: tuple[tuple[str, ...], ...]
    """Names of each state's records."""
    dropped: int
    profiles: tuple[str, ...]
    """Name of each state's profile record."""
    images: tuple[Mapping[str, Any], ...]
    """Each state's images."""
    revisions: tuple[Revision | None, ...]
    """Each state's revision."""
    resolved: tuple[Mapping[str, Any], ...] = ()
    """What the operator chose in each state; empty if it chose nothing in any."""
    trial: State | None = None
    """The state that is on trial; None: there is none."""
