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

    @property
    def reference(self) -> str:
        """Key of the reference that its revision was verified with; empty: its results were lost."""
        prefix = record_name("reference", "")
        return next((each.removeprefix(prefix) for each in self.records if each.startswith(prefix)), "")

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
    anchor: State | None = None
    """The state below which no slow slide leads: candidates are held against it besides the last one, however long ago
    it served, so it is never dropped. None: none has served with metrics."""

    def with_served(self, state: State, limit: int, *, anchors: bool = False) -> "History":
        """Return the history with a state that serves for good; at most ``limit`` others are kept, and the anchor.

        ``anchors``: whether it becomes the anchor if it has not served before.
        """
        states: list[State] = []
        for each in (state, *self.served):
            if not any(map(each.has_same_server, states)):
                states.append(each)
        trial = None if self.trial is None or self.trial.has_same_server(state) else self.trial
        anchor = self._next_anchor(state, anchors=anchors)
        new = History(tuple(states[: limit + 1]), self.dropped, trial, anchor)
        before = (*states, *([self.anchor] if self.anchor is not None else []))
        is_dropped = not all(any(map(each.has_same_server, new.states)) for each in before)
        return replace(new, dropped=self.dropped + is_dropped)

    def _next_anchor(self, state: State, *, anchors: bool) -> State | None:
        if self.anchor is None:
            return state if state.revision is not None and state.revision.metrics else None
        is_new = anchors and not any(map(state.has_same_server, self.served))
        return state if is_new or self.anchor.has_same_server(state) else self.anchor

    def with_trial(self, state: State | None) -> "History":
        """Return the history with a state that serves on trial; None: there is none any more. Nothing is dropped."""
        return replace(self, trial=state)

    @property
    def states(self) -> tuple[State, ...]:
        """All states, the one on trial first, and last the anchor if it has no other place."""
        states = self.served if self.trial is None else (self.trial, *self.served)
        is_apart = self.anchor is not None and not any(map(self.anchor.has_same_server, states))
        return (*states, self.anchor) if self.anchor is not None and is_apart else states

    def marks(self, reference: str) -> tuple[State, ...]:
        """Return the states against which a new revision is held: the last one of another reference, and the anchor.

        ``reference``: key of the new revision's. So the marks stay the same once it serves. They may be one state, or
        two servers of one revision, of which the first stands for both.
        """
        others = [each for each in self.states if each.revision and each.profile and each.reference != reference]
        anchors = [each for each in others[1:] if self.anchor is not None and each.has_same_server(self.anchor)]
        keys = {each.revision.key for each in others[:1] if each.revision is not None}
        return (*others[:1], *(each for each in anchors if each.revision is not None and each.revision.key not in keys))

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
        if self.anchor in self.served:
            document["anchored"] = self.served.index(self.anchor)
        elif self.anchor is not None:
            document["anchor"] = self.anchor
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
            served = tuple(State(*state) for state in states)[:MOST_STATES]
            anchor = stored.anchor if stored.anchored is None else dict(enumerate(served)).get(stored.anchored)
            return cls(served, stored.dropped, stored.trial, anchor)
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
    anchor: State | None = None
    """The anchor, unless it is one of those that served."""
    anchored: int | None = None
    """Which of those that served is the anchor, counted from 0; None: none of them is."""
