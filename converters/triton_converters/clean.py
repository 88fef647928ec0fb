"""Clean: remove from the claim what no TritonDeployment's record names any more.

The results ConfigMaps of every TritonDeployment that uses the claim are mounted; each entry of theirs is a mark. A
directory goes where it has no mark and nobody wrote it or replayed from it for a while: a Job whose answer is not
recorded yet has just touched what it made or found. A converted file goes with the last revision that links to it.
"""

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from triton_converters import claim
from triton_converters.document import DocumentError
from triton_converters.publish import TEMPORARY_PREFIX
from triton_converters.request import CleanRequest
from triton_converters.result import CleanResult, Outcome, SearchResult, SourceResult

MARKED = {
    "source": claim.source_directory,
    "reference": claim.reference_directory,
    "convert": claim.revision_directory,
    "profile": claim.measurement_directory,
    "search": claim.measurement_directory,
    "measure": claim.measurement_directory,
}
"""Where the result of a record lies; of a source by its digest, of all others by the record's key."""


def run(request: CleanRequest, root: Path = claim.MOUNT, marks: Path = claim.MARKS_MOUNT) -> CleanResult:
    """Remove the unmarked; ages in seconds. Raises OSError where the claim cannot be changed."""
    now = time.time()
    keep = set(marked(marks, root))
    old = [
        directory
        for parent in ("sources", "references", "revisions", "measurements", "searches")
        for directory in _directories(root / parent)
        if directory not in keep and _age(directory, now) >= request.minimum_age_seconds
    ]
    removed = [directory.name for directory in old if _remove(directory, request.minimum_age_seconds)]
    unlinked = [
        directory
        for directory in _directories(root / "candidates")
        if not _is_linked(directory) and _age(directory, now) >= request.minimum_age_seconds
    ]
    removed += [directory.name for directory in unlinked if _remove(directory, request.minimum_age_seconds)]
    left = [
        path for path in root.glob(f"*/{TEMPORARY_PREFIX}*") if _age(path, now) >= request.minimum_temporary_age_seconds
    ]
    for path in left:
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    return CleanResult(len(removed), len(left))


def marked(marks: Path, root: Path) -> Iterator[Path]:
    """Directories that the records in the mounted ConfigMaps name."""
    for record in sorted(marks.glob("*/*.*")):
        try:
            outcome = Outcome.from_json(record.read_text(encoding="utf-8"))
        except (OSError, DocumentError):
            continue
        if outcome.stage in MARKED and outcome.result is not None:
            name = outcome.result.digest if isinstance(outcome.result, SourceResult) else outcome.key
            yield MARKED[outcome.stage](name, root)
            if isinstance(outcome.result, SearchResult):
                yield claim.search_directory(outcome.result.search, root)


def _remove(directory: Path, minimum_age_seconds: int) -> bool:
    """Whether it is gone. It is moved aside first, and back where somebody used it in the meantime."""
    aside = Path(tempfile.mkdtemp(prefix=f"{TEMPORARY_PREFIX}removed-", dir=directory.parent))
    moved = aside / directory.name
    os.rename(directory, moved)
    if _age(moved, time.time()) < minimum_age_seconds and not directory.exists():
        os.rename(moved, directory)
    shutil.rmtree(aside)
    return not directory.exists()


def _directories(parent: Path) -> list[Path]:
    found = sorted(parent.iterdir()) if parent.is_dir() else []
    return [path for path in found if path.is_dir() and not path.name.startswith(TEMPORARY_PREFIX)]


def _is_linked(directory: Path) -> bool:
    """Whether a revision holds a hard link to a file of the candidate's."""
    return any(path.is_file() and path.stat().st_nlink > 1 for path in directory.rglob("*"))


def _age(path: Path, now: float) -> float:
    try:
        return now - path.stat().st_mtime
    except FileNotFoundError:
        return 0.0
