"""Lists the revisions that served, and says which one a rollback takes. Pure."""

from collections.abc import Iterator

from triton_plugin.subject import Subject, SubjectError, printable
from triton_plugin.tables import Grid


def table(subject: Subject) -> Grid:
    """Return the revisions, newest first. Raises SubjectError if there are none."""
    if not subject.history.revisions:
        raise SubjectError(f"no revision of TritonDeployment {subject.name} is recorded: none served yet")
    return Grid("Revisions that served", ("Key", "Candidate", "Measured", "Image", ""), list(_rows(subject)))


def chosen(subject: Subject, key: str | None) -> str:
    """Return the key to go back to; None stands for the one that served before the active one. Raises SubjectError."""
    history, active = subject.history, subject.status.active
    others = [each for each in history.revisions if active is None or each != active.revision]
    if key is None and not others:
        raise SubjectError(f"no revision of TritonDeployment {subject.name} served before the active one")
    if key is not None and key not in history.revisions:
        known = ", ".join(history.revisions) or "none is recorded"
        raise SubjectError(
            f"TritonDeployment {subject.name} has no record of revision {key}; name one of these: {known}"
        )
    return key or others[0]


def patch(key: str | None) -> dict[str, object]:
    """Return the change of the object. ``key``: None clears the field."""
    return {"spec": {"rollout": {"revision": key}}}


def _rows(subject: Subject) -> Iterator[tuple[str, ...]]:
    active, named = subject.status.active, subject.spec.rollout.revision
    for key, revision in subject.history.revisions.items():
        notes = ["active"] if active is not None and active.revision == key else []
        notes += ["named by spec.rollout.revision"] if key == named else []
        told = (revision.candidate, revision.measured_at, revision.image)
        yield tuple(printable([key, *told, ", ".join(notes)]))
