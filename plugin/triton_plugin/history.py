"""Lists the revisions that served, and says which one a rollback takes. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from triton_operator.names import results
from triton_operator.observed.pod import SERVER
from triton_operator.observed.revision import Revision
from triton_plugin.subject import Subject, SubjectError, printable
from triton_plugin.tables import Grid

HEADINGS = ("Key", "Candidate", "Measured (UTC)", "Source", "Server image", "State")
ACTIVE, HELD, REPLACED = "active", "held", "replaced"
MEANS = {
    HELD: "spec.rollout.revision names it",
    REPLACED: "the revision of a row above, with another spec.serving or server image; `rollback` cannot name it, so"
    " revert that edit instead",
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
    found = [f"{word}: {meaning}" for word, meaning in MEANS.items() if word in said]
    active = subject.status.active
    if active is not None and ACTIVE not in said:
        found.append(f"The active revision, {active.revision}, is listed once its soak is over.")
    return found


def chosen(subject: Subject, key: str | None) -> str:
    """Return the key to go back to. Raises SubjectError.

    ``key``: None stands for the revision that served before the active one and is older. One that is newer was left
    by somebody who went back, and is not chosen by itself. Nothing is chosen either while something else than the
    active revision is asked for: who sees it fail would go back too far.
    """
    if key is None:
        return _before(subject)
    if key not in subject.history.revisions:
        known = ", ".join(subject.history.revisions) or "none is recorded"
        raise SubjectError(
            f"TritonDeployment {subject.name} has no record of revision {key}; name one of these: {known}"
        )
    return key


def patch(key: str | None) -> dict[str, object]:
    """Return the change of the object. ``key``: None clears the field."""
    return {"spec": {"rollout": {"revision": key}}}


def _before(subject: Subject) -> str:
    name, now = f"TritonDeployment {subject.name}", _now(subject)
    if now is None:
        raise SubjectError(f"no revision of {name} is active; name the KEY to go back to")
    older = [each for each in _served(subject) if "" < _measured(each) < now.measured and each.server != now.server]
    # Of the states with one key, the last one alone can be named.
    named = [each.key for each in older if each == subject.history.revisions[each.key]]
    further = next((key for key in named if key != now.key), "")
    command = f"kubectl triton rollback {subject.name}"
    deeper = f"; to go further back, type: {command} {further}" if further else ""
    if newer := _unsettled(subject):
        raise SubjectError(
            f"{name} serves revision {now.key}, and {newer}. To stay with the active revision, revert the edit, or"
            f" type: {command} {now.key}{deeper}"
        )
    if not older:
        raise SubjectError(
            f"no revision of {name} that is older than the active one, {now.key}, is recorded. One that is newer is"
            f" not chosen by itself: name its KEY, as kubectl triton history {subject.name} lists it"
        )
    if older[0].key not in named[:1]:
        raise SubjectError(
            f"what served before has the key of the active revision, {now.key}, because only spec.serving or the"
            " server's image differs, and of these the last one alone can be named."
            f" {_revert(subject, older[0])}{deeper}"
        )
    return older[0].key


@dataclass(frozen=True)
class _Now:
    """What to go back from."""

    key: str
    server: str
    measured: str


def _now(subject: Subject) -> _Now | None:
    """The revision that the spec holds, or else the active one, which has no record while it is soaked."""
    status, known = subject.status, subject.history.revisions
    held = known.get(subject.spec.rollout.revision or "")
    if held is not None:
        return _Now(held.key, held.server, _measured(held))
    if status.active is None or status.performance is None:
        return None
    recorded = known.get(status.active.revision)
    server = subject.server or (recorded.server if recorded else "")
    return _Now(status.active.revision, server, status.performance.measured_at)


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


def _revert(subject: Subject, before: Revision) -> str:
    """How the server comes back that a state had whose key is that of a later one."""
    image = _image(before)
    if image and image != _image(subject.history.revisions[before.key]):
        return f"To have its server back, set spec.serving.image: {image}"
    return "To go back to it, revert the edit of spec.serving"


def _served(subject: Subject) -> list[Revision]:
    """The revisions that served, the last one first; a key has several if only its server changed."""
    found = (each.revision for each in subject.history.served)
    return [each for each in found if each is not None and each.template is not None]


def _rows(subject: Subject) -> Iterator[tuple[str, ...]]:
    active, last = subject.status.active, subject.history.revisions
    listed: set[str] = set()
    for each in _served(subject):
        if each.server in listed:
            continue
        listed.add(each.server)
        states = [REPLACED]
        if each == last[each.key]:
            serves = active is not None and active.revision == each.key and subject.server in ("", each.server)
            states = [ACTIVE] if serves else []
            states += [HELD] if each.key == subject.spec.rollout.revision else []
        source, image = _source(each), _short(_image(each))
        measured = _measured(each).replace("T", " ")[: len("2026-11-21 00:00")]
        yield tuple(printable([each.key, each.candidate, measured, source, image, ", ".join(states)]))


def _measured(revision: Revision) -> str:
    """When the revision was measured before it served (RFC 3339, UTC); empty if its record does not tell."""
    return str(_at(revision.told, "performance", "measuredAt") or "")


def _source(revision: Revision) -> str:
    """What spec.source.revision was when the source was read, or else its digest."""
    read, digest = (_at(revision.told, "source", each) or "" for each in ("revision", "digest"))
    return str(read or _short(str(digest)))


def _image(revision: Revision) -> str:
    containers = _at(revision.template, "spec", "containers")
    listed = containers if isinstance(containers, list) else []
    found = (_at(each, "image") for each in listed if _at(each, "name") == SERVER)
    return str(next(found, None) or "")


def _at(value: Any, *path: str) -> Any:
    """What a record has at a path; None: nothing, or somebody wrote another shape."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _short(reference: str) -> str:
    """A digest without most of its digits, or an image's name and tag without its registry."""
    _, found, digest = reference.rpartition("sha256:")
    return f"{found}{digest[:DIGITS]}" if found else reference.rpartition("/")[2]
