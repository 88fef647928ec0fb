"""Lists the revisions that served, and says which one a rollback takes. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass

from triton_operator.names import results
from triton_operator.observed.revision import Revision
from triton_plugin.subject import Subject, SubjectError, printable
from triton_plugin.tables import Grid

HEADINGS = ("Name", "Candidate", "Measured (UTC)", "Source", "Server image", "State")
ACTIVE, HELD, DAMAGED = "active", "held", "damaged"
MEANS = {
    HELD: "spec.rollout.revision names it",
    DAMAGED: "its files on the claim are not what was published; `rollback` takes it only by its name",
}
"""The words of the column State that explain themselves least."""
DIGITS = 8
"""Digits of a digest that are enough to tell it from the others."""


def table(subject: Subject) -> Grid:
    """Return the revisions, the one that served last first. Raises SubjectError if there are none."""
    rows = list(_rows(subject))
    if not rows:
        why = "none served yet"
        if subject.status.active is not None:
            why = f"ConfigMap {results(subject.name)} is missing, or an older version of the operator wrote it"
        raise SubjectError(f"no revision of TritonDeployment {subject.name} is recorded: {why}")
    return Grid("Revisions that served, the last one first", HEADINGS, rows)


def notes(subject: Subject) -> list[str]:
    """Return what the words of the column State mean, a line for each that is there."""
    said = " ".join(row[-1] for row in _rows(subject))
    return [f"{word}: {meaning}" for word, meaning in MEANS.items() if word in said]


def chosen(subject: Subject, name: str | None) -> str:
    """Return the name of the revision to go back to. Raises SubjectError.

    ``name``: KEY or KEY.SERVER. None stands for what served before the active one, is older, and is not damaged. What
    is newer was left by somebody who went back, and is not chosen by itself. Nothing is chosen either while something
    else than the active revision is asked for: who sees it fail would go back too far.
    """
    if name is None:
        return _before(subject)
    if subject.history.revision_named(name, _active(subject)) is None:
        known = ", ".join(subject.history.revisions) or "none is recorded"
        raise SubjectError(
            f"TritonDeployment {subject.name} has no record of revision {name}; name one of these: {known}"
        )
    return name


def patch(name: str | None) -> dict[str, object]:
    """Return the change of the object. ``name``: None clears the field."""
    return {"spec": {"rollout": {"revision": name}}}


def _before(subject: Subject) -> str:
    name, now = f"TritonDeployment {subject.name}", _now(subject)
    if now is None:
        raise SubjectError(f"no revision of {name} is active; name the one to go back to")
    older = (
        called
        for called, each in subject.history.revisions.items()
        if "" < each.measured_at < now.measured and each.server != now.server and each.key not in subject.damaged
    )
    before = next(older, "")
    command = f"kubectl triton rollback {subject.name}"
    if newer := _unsettled(subject):
        deeper = f"; to go further back, type: {command} {before}" if before else ""
        raise SubjectError(
            f"{name} serves revision {now.key}, and {newer}. To stay with the active revision, revert the edit, or"
            f" type: {command} {now.key}{deeper}"
        )
    if not before:
        raise SubjectError(
            f"no revision of {name} that is older than the active one, {now.key}, is recorded. One that is newer is"
            f" not chosen by itself: name it, as kubectl triton history {subject.name} lists it"
        )
    return before


@dataclass(frozen=True)
class _Now:
    """What to go back from."""

    key: str
    server: str
    measured: str


def _now(subject: Subject) -> _Now | None:
    """The revision that the spec holds, or else the active one, which may not be recorded."""
    status, active = subject.status, _active(subject)
    found = _held(subject) or active
    if found is not None:
        return _Now(found.key, found.server, found.measured_at)
    if status.active is None or status.performance is None:
        return None
    return _Now(status.active.revision, subject.server, status.performance.measured_at)


def _active(subject: Subject) -> Revision | None:
    """The active revision; None: it is not recorded, or nothing tells which of several servers of its key it is."""
    key = subject.status.active.revision if subject.status.active is not None else ""
    same = [each for each in subject.history.revisions.values() if each.key == key]
    return next((each for each in same if subject.server in ("", each.server)), None)


def _held(subject: Subject) -> Revision | None:
    """The revision that the spec names; None: it names none, or one that is not recorded."""
    return subject.history.revision_named(subject.spec.rollout.revision or "", _active(subject))


def _unsettled(subject: Subject) -> str:
    """What is asked for and does not serve, in words; empty: nothing, or what serves does not answer."""
    active, target = subject.status.active, subject.status.target
    if subject.status.observed_generation != subject.generation:
        return f"the operator has not looked at generation {subject.generation} of the spec yet"
    found = subject.newer or subject.condition("Ready")
    if found is None or active is None or (found.type == "Ready" and subject.holds("Ready")):
        return ""
    if target is not None and target.revision != active.revision:
        return f"revision {target.revision} is on its way ({found.reason})"
    if found.type == "Ready" and not subject.holds("Available"):
        return ""
    return f"what is asked for does not serve ({found.reason})"


def _rows(subject: Subject) -> Iterator[tuple[str, ...]]:
    active, held = _active(subject), _held(subject)
    for name, each in subject.history.revisions.items():
        states = [ACTIVE] if each == active else []
        states += [HELD] if each == held else []
        states += [DAMAGED] if each.key in subject.damaged else []
        source, image = each.source_version or _short(each.source_digest), _short(each.image)
        measured = each.measured_at.replace("T", " ")[: len("2026-11-21 00:00")]
        yield tuple(printable([name, each.candidate, measured, source, image, ", ".join(states)]))


def _short(reference: str) -> str:
    """A digest without most of its digits, or an image's name and tag without its registry."""
    _, found, digest = reference.rpartition("sha256:")
    return f"{found}{digest[:DIGITS]}" if found else reference.rpartition("/")[2]
