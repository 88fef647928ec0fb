"""Lists the revisions that served, and says which one a rollback takes. Pure."""

from collections.abc import Iterator

from triton_operator import names
from triton_operator.observed.pod import SERVER
from triton_operator.observed.revision import Revision
from triton_plugin.subject import Subject, SubjectError, printable
from triton_plugin.tables import Grid


def table(subject: Subject) -> Grid:
    """Return the revisions, newest first. Raises SubjectError if there are none."""
    if not subject.history.revisions:
        raise SubjectError(f"no revision of TritonDeployment {subject.name} is recorded: none served yet")
    return Grid("Revisions that served", ("Name", "Candidate", "Measured", "Image", ""), list(_rows(subject)))


def chosen(subject: Subject, name: str | None) -> str:
    """Return the name of the revision to go back to. Raises SubjectError.

    ``name``: KEY or KEY.SERVER; None stands for what served before the active one, and is not damaged.
    """
    known, active = subject.history.revisions, _active(subject)
    if name is None:
        others = (each for each, found in known.items() if found != active and found.key not in subject.damaged)
        name = next(others, None)
        if name is None:
            raise SubjectError(f"no revision of TritonDeployment {subject.name} served before the active one")
    if subject.history.named(name, active) is None:
        raise SubjectError(
            f"TritonDeployment {subject.name} has no record of revision {name}; name one of these:"
            f" {', '.join(known) or 'none is recorded'}"
        )
    return name


def patch(name: str | None) -> dict[str, object]:
    """Return the change of the object. ``name``: None clears the field."""
    return {"spec": {"rollout": {"revision": name}}}


def _rows(subject: Subject) -> Iterator[tuple[str, ...]]:
    active = _active(subject)
    held = subject.history.named(subject.spec.rollout.revision or "", active)
    for name, revision in subject.history.revisions.items():
        notes = ["active"] if revision == active else []
        notes += ["named by spec.rollout.revision"] if revision == held else []
        notes += ["damaged"] if revision.key in subject.damaged else []
        measured = revision.told.get("performance", {}).get("measuredAt", "")
        yield tuple(printable([name, revision.candidate, str(measured), _image(revision), ", ".join(notes)]))


def _active(subject: Subject) -> Revision | None:
    """The active revision; of several servers of its key the one whose pods the status selects."""
    active, known = subject.status.active, subject.history.revisions.values()
    same = [each for each in known if active is not None and each.key == active.revision]
    selects = (each for each in same if active and names.selector(subject.name, each.server) == active.selector)
    return next(selects, same[0] if same else None)


def _image(revision: Revision) -> str:
    containers = (revision.template or {}).get("spec", {}).get("containers", [])
    return next((str(each.get("image", "")) for each in containers if each.get("name") == SERVER), "")
