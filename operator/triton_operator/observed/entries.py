"""What the results ConfigMap holds: records, failures, and what an object needs to remember besides. Pure."""

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from triton_converters.contract.document import Document, DocumentError
from triton_converters.contract.records import (
    ACTIVE,
    CLAIM,
    DAMAGED,
    FAILURE,
    FINISHED,
    FOLLOWING,
    GPU,
    HISTORY,
    IMAGE,
    SOAK,
    is_record,
    read_record,
    record_bytes,
)
from triton_converters.contract.text import is_time
from triton_operator.observed.active_record import ActiveRecord
from triton_operator.observed.failures import Damage, Failure
from triton_operator.observed.following import Following
from triton_operator.observed.gpu import NO_GPU, NodeGpu
from triton_operator.observed.history import History
from triton_operator.observed.promotion import Promotion
from triton_operator.observed.record import Record

D = TypeVar("D", bound=Document)

MOST_BYTES = 6 * 1024 * 1024
"""The most JSON of records that a pass reads, once they are inflated. A ConfigMap has 1 MiB, and what Jobs answer
becomes a third of its length, so they fill half of this. It takes about a second."""
LEAST_BYTES = 1024
"""What a record counts at least, because even an empty one takes time."""


@dataclass(frozen=True)
class Entries:
    """The entries of the ConfigMap, as far as they can be read."""

    records: Mapping[str, Record] = field(default_factory=dict)
    """The Jobs' results by ``<stage>.<key>``; in `Observed` also those of pods that ended since."""
    failures: Mapping[str, Failure] = field(default_factory=dict)
    """The recorded failures, by the Job's name. The Job may be gone, or another one may have its name. Those of figures
    have the name of their record."""
    damaged: Mapping[str, Damage] = field(default_factory=dict)
    """The revisions that are not what was published, by their keys, as recorded."""
    promotions: Mapping[str, Promotion] = field(default_factory=dict)
    """The recorded changes of the active revision, by the name of the Deployment that became active."""
    active_record: ActiveRecord | None = None
    """The Deployment that was recorded as the active one; None: none was."""
    unreadable: Mapping[str, str] = field(default_factory=dict)
    """Entries that cannot be read: a newer version may have written them."""
    recorded_claim: str = ""
    """Name and uid, NAME/UID, of the claim that holds the recorded results; empty: not recorded."""
    history: History = field(default_factory=History)
    """The states that served, as recorded."""
    following: Following | None = None
    """What looks found of the source; None: it was never followed."""

    def on_another_claim(self) -> "Entries":
        """Return what still holds once another claim is used, which has none of the results."""
        return Entries(
            promotions=self.promotions,
            active_record=self.active_record,
            recorded_claim=self.recorded_claim,
            following=self.following,
        )


def read_entries(entries: Mapping[str, str]) -> Entries:
    """Read the data of the ConfigMap.

    An unreadable record counts as absent, so its Job runs again and replays the result. So does a failure, and a
    revision that is damaged is found again when a server starts on it. Without the record of a change, a revision stays
    active and is not soaked; without that of the active one, the Service's selector tells.
    Without the record of looks, the source is looked at anew.
    """
    records, unreadable = _records(entries)
    promotions, active_record = read_moves(entries)
    history = History.from_json(entries.get(HISTORY, ""))
    if entries.get(HISTORY) and not history.states:
        unreadable[HISTORY] = entries[HISTORY]
    return Entries(
        records=records,
        failures=dict(_documents(entries, FAILURE, Failure)),
        damaged=dict(_documents(entries, DAMAGED, Damage)),
        promotions=promotions,
        active_record=active_record,
        unreadable=unreadable,
        recorded_claim=entries.get(CLAIM, ""),
        history=history,
        following=dict(_documents(entries, FOLLOWING, Following)).get(""),
    )


def read_moves(entries: Mapping[str, str]) -> tuple[Mapping[str, Promotion], ActiveRecord | None]:
    """Read the changes of the active revision, and which one is active."""
    promotions = {name: text for name, text in entries.items() if name != ACTIVE}
    return dict(_documents(promotions, SOAK, Promotion)), dict(_documents(entries, ACTIVE, ActiveRecord)).get("")


def _records(entries: Mapping[str, str]) -> tuple[dict[str, Record], dict[str, str]]:
    """Return the records, and the texts of those that cannot be read, or that are too many to be read."""
    records, unreadable, remaining_bytes = {}, {}, MOST_BYTES
    gpus = dict(_documents(entries, GPU, NodeGpu))
    for name in filter(is_record, entries):
        text = entries[name]
        try:
            remaining_bytes -= max(LEAST_BYTES, record_bytes(text)) if remaining_bytes > 0 else 0
            outcome = read_record(name, text) if remaining_bytes > 0 else None
        except DocumentError:
            outcome = None
        if outcome is None:
            unreadable[name] = text
        else:
            finished = entries.get(FINISHED + name, "")
            image = entries.get(IMAGE + name, "")
            records[name] = Record(outcome, text, finished if is_time(finished) else "", image, gpus.get(name, NO_GPU))
    return records, unreadable


def _documents(entries: Mapping[str, str], prefix: str, kind: type[D]) -> Iterator[tuple[str, D]]:
    """Yield the readable ones by what follows the prefix."""
    for name, text in entries.items():
        if name.startswith(prefix):
            with contextlib.suppress(DocumentError):
                yield name.removeprefix(prefix), kind.from_json(text)
