"""All objects as one table: which of them are ready, what serves, and how good it was. Pure."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from triton_operator.api.status import TritonDeploymentStatus
from triton_plugin.errors import SubjectError
from triton_plugin.reading.subject import Subject, parse, printable
from triton_plugin.telling.columns import load_of_figures, milliseconds
from triton_plugin.telling.report.page import render

LINKED = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
"""Namespaces and names that are safe as parts of a file's name."""
LONGEST = 300
"""Characters of a message; the object's report has the whole."""
UNITS = ((86400, "d"), (3600, "h"), (60, "min"))
"""The units of an age, in seconds."""


@dataclass(frozen=True)
class ObjectRow:
    """One object."""

    namespace: str
    name: str
    state: str
    """Readiness in words."""
    is_ready: bool
    is_stalled: bool = False
    """Whether nothing more is tried until somebody changes something."""
    reason: str = ""
    """What stops the object, or what is newer than what serves."""
    message: str = ""
    serves: str = ""
    """The active candidate; empty: none."""
    form: str = ""
    """The format and precision of the active candidate."""
    throughput: str = ""
    p99: str = ""
    """Milliseconds, as a number."""
    load: str = ""
    """Batch and concurrency of both figures; empty: not known."""
    accuracy: str = ""
    metric: str = ""
    """The name of the metric that is the accuracy."""
    measured_at: str = ""
    """When what serves was measured, with seconds in UTC; empty: it was not."""
    age_seconds: int | None = None
    link: str = ""
    """Path of the object's report; empty: there is none."""

    @property
    def age(self) -> str:
        """How long ago it was measured, in the largest unit that fits; empty: it was not."""
        if self.age_seconds is None:
            return ""
        unit = next((each for each in UNITS if self.age_seconds >= each[0]), None)
        return f"{self.age_seconds // unit[0]} {unit[1]}" if unit else "under 1 min"


@dataclass(frozen=True)
class Overview:
    """The rows, and what they are of."""

    place: str
    """The namespace, or that it is all of them, in words."""
    written_at: str
    rows: tuple[ObjectRow, ...]

    @property
    def ready(self) -> int:
        """How many objects are ready."""
        return sum(row.is_ready for row in self.rows)


def overview(rows: Iterable[ObjectRow], place: str, now: datetime) -> Overview:
    """Return the table, sorted by namespace and name. ``now`` has a time zone."""
    found = sorted(rows, key=lambda row: (row.namespace, row.name))
    return Overview(place, now.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC"), tuple(found))


def as_html(found: Overview) -> str:
    """Return the table as one HTML file that loads nothing. All values are escaped."""
    return render("overview.html", overview=found)


def read(body: Mapping[str, Any], results: Mapping[str, Any] | None = None) -> Subject | ObjectRow:
    """Return an object of a list or, if this version cannot read it, its row, which says so."""
    try:
        return parse(body, results)
    except SubjectError as error:
        metadata = printable(body["metadata"])
        namespace, name = metadata.get("namespace", "default"), metadata["name"]
        return ObjectRow(namespace, name, "Unreadable", is_ready=False, is_stalled=True, message=_cut(str(error)))


def row(subject: Subject, now: datetime, link: str = "") -> ObjectRow:
    """Return an object's row. ``now`` has a time zone; ``link``: path of its report, if there is one."""
    status, active = subject.status, subject.status.active
    state, reason, message = _state(subject)
    measured_at = status.performance.measured_at if status.performance else ""
    return ObjectRow(
        namespace=subject.namespace,
        name=subject.name,
        state=state,
        is_ready=subject.holds("Ready"),
        is_stalled=subject.holds("Stalled"),
        reason=reason,
        message=_cut(message),
        serves=active.candidate if active else "",
        form=f"{active.format}, {active.precision}" if active else "",
        throughput=active.throughput if active else "",
        p99=milliseconds(active.p99_latency) if active else "",
        load=load_of_figures(active, status.performance.online) if active and status.performance else "",
        accuracy=active.accuracy if active else "",
        metric=_metric(status) if active and active.accuracy else "",
        measured_at=measured_at if active else "",
        age_seconds=_age(measured_at, now) if active else None,
        link=link,
    )


def file_name(subject: Subject) -> str:
    """Return the name of an object's report in a folder; empty for names that no API server takes."""
    parts = (subject.namespace, subject.name)
    return f"{'.'.join(parts)}.html" if all(LINKED.fullmatch(each) for each in parts) else ""


def _state(subject: Subject) -> tuple[str, str, str]:
    """Return what is said of an object in a word, and the reason and message of what stops it or is newer."""
    ready = subject.condition("Ready")
    if ready is None or ready.observed_generation != subject.generation:
        return "Pending", "", "The operator has not processed this generation of the spec yet."
    if not subject.holds("Ready"):
        return "Not ready", ready.reason, ready.message
    newer = subject.newer_condition
    return ("Ready", newer.reason, newer.message) if newer else ("Ready", "", "")


def _metric(status: TritonDeploymentStatus) -> str:
    """Return the name of the main metric."""
    judged = [each for each in status.accuracy if each.threshold] or status.accuracy
    return judged[0].metric if judged else ""


def _age(measured_at: str, now: datetime) -> int | None:
    # A clock that is ahead of ours makes no negative age.
    return max(int((now - datetime.fromisoformat(measured_at)).total_seconds()), 0) if measured_at else None


def _cut(message: str) -> str:
    return message if len(message) <= LONGEST else f"{message[:LONGEST]} ..."
