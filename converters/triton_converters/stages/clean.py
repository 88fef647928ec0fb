"""Clean: remove from the claim what no TritonDeployment's record names any longer.

The results ConfigMaps of all TritonDeployments that use the claim are mounted; each of their entries is a mark, and so
is the revision that serves, though the record of how it was made may be lost. A directory is removed if it has no mark
and was neither written nor replayed for a while: a Job whose result is not recorded yet has just touched what it made
or found. A converted file is removed with the last revision that links to it.

A directory is removed only if its name and its content show that one of our Jobs made it. If there is anything else
below the root, or a mark cannot be read, then what is needed is not known, and nothing at all is removed.
"""

import errno
import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import unquote

from triton_converters.claim_store.digest import is_published
from triton_converters.claim_store.publish import TEMPORARY_PREFIX
from triton_converters.claim_store.replay import has_result
from triton_converters.claim_store.repository import find_conversion
from triton_converters.claim_store.root import other_claims
from triton_converters.contract import layout
from triton_converters.contract.document import DocumentError
from triton_converters.contract.envelope import Outcome
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.contract.records import ACTIVE, HISTORY, is_record, read_record
from triton_converters.contract.results import CleanResult, SearchResult, SourceResult
from triton_converters.contract.stages import STAGES
from triton_converters.contract.text import quoted
from triton_converters.contract.upkeep_requests import CleanRequest
from triton_converters.search.journal import is_journal

REPLAYED = {name: stage.directory for name, stage in STAGES.items() if stage.directory is not None}
"""Directory of a result by its key, for each stage whose Jobs find it there."""
MARKED = {"source": layout.source_directory} | REPLAYED
"""Directory of a record's result by stage: by digest for a source, by the record's key for all others."""


def _holds_result(directory: Path) -> bool:
    """Whether a directory holds the result, under its own name, of a stage whose results lie in its folder."""
    stages = (name for name, place in REPLAYED.items() if place(directory.name).parent.name == directory.parent.name)
    return any(has_result(directory, stage, directory.name) for stage in stages)


IS_OURS: dict[str, Callable[[Path], bool]] = {
    **{place("").name: _holds_result for place in REPLAYED.values()},
    "sources": is_published,
    "candidates": lambda directory: find_conversion(directory, directory.name) is not None,
    "searches": is_journal,
}
"""Tells for each folder of the claim whether a directory in it holds what a Job publishes under that name."""

NAMED = 3
"""How many claims a message names at most."""
CACHES = "caches"
"""Folder that servers fill as they like; of it, only what objects do not share is removed."""
NFS = ".nfs"
"""How the names begin under which NFS keeps files that were removed while they are open."""
_KEY = re.compile(r"[0-9a-f]{16}|[0-9a-f]{64}")
_PLAIN = re.compile(r"[\w.%+-]{1,255}", re.ASCII)
"""A file's name that is no sentence: whoever writes to the storage chooses names, and messages quote some."""
_TEMPORARY = re.compile(re.escape(TEMPORARY_PREFIX) + r"([0-9a-f]{16}|removed|damaged)-[a-z0-9_]{8}")


def run(request: CleanRequest, root: Path = layout.ROOT, marks: Path = layout.MARKS_MOUNT) -> CleanResult:
    """Remove what has no mark; ages are in seconds.

    Raises StageError, with nothing removed: ResultMissing if a mark cannot be read, RepositoryUnknown if there is
    anything unknown below the root; OSError if the claim cannot be changed.
    """
    if others := other_claims(root):
        raise _shared_storage(others)
    keep = set(marked(marks, root))

    def is_used(directory: Path) -> bool:
        if directory.parent.name == "candidates":
            return _is_linked(directory)
        return directory in keep or directory.parent in keep

    def is_needed(directory: Path) -> bool:
        return _age(directory, time.time()) < request.minimum_age_seconds or is_used(directory)

    _check(root, is_needed)
    # Candidates come last: they are free once the revisions that link to them are gone.
    folders = [root / name for name in sorted(IS_OURS, key=lambda name: name == "candidates")]
    removed = sum(_clean(folder, is_needed, request.minimum_age_seconds) for folder in folders)
    now = time.time()
    left = [
        directory
        for folder in folders
        for directory in _directories(folder, _TEMPORARY)
        if _age(directory, now) >= request.minimum_temporary_age_seconds
    ]
    for directory in left:
        shutil.rmtree(directory)
    claim = os.environ.get(layout.CLAIM, "")
    owners = {layout.object_name(claim, each.name) for each in marks.iterdir()}
    _clean_objects(layout.objects_directory(root), owners, request.minimum_age_seconds)
    for note in layout.objects_directory(root).glob("*/.received/*"):
        if not layout.source_directory(note.name, root).exists():
            note.unlink(missing_ok=True)
    return CleanResult(removed, len(left))


def marked(marks: Path, root: Path) -> Iterator[Path]:
    """Yield the directories that the mounted ConfigMaps name, or a whole folder if the directory in it is unknown.

    Raises StageError(ResultMissing) if none is mounted (a DocumentError inside), or one cannot be read.
    """
    try:
        owners = sorted(marks.iterdir())
        if not owners:
            raise DocumentError("no results are mounted")
        for owner in owners:
            yield from _marked_by({path.name: path for path in owner.iterdir() if not path.name.startswith("..")}, root)
    except (OSError, ValueError) as error:
        message = f"nothing was removed, because the records do not say everything that is still needed: {error}"
        advice = "repair or delete that entry of the results ConfigMap, then type: kubectl triton retry NAME"
        raise StageError(Reason.RESULT_MISSING, f"{message}; {advice}", final=False) from error


def _marked_by(entries: dict[str, Path], root: Path) -> Iterator[Path]:
    """Yield what the records, the history and the active revision's Deployment of one TritonDeployment name."""
    for name, path in entries.items():
        if is_record(name):
            yield from _named(_read(path), root)
    if ACTIVE in entries:
        yield layout.revision_directory(_active(entries[ACTIVE]), root)
    if HISTORY in entries:
        for name in _served(entries[HISTORY]) - entries.keys():
            stage, _, key = name.partition(".")
            if stage not in MARKED:
                raise DocumentError(f"{entries[HISTORY]} names {name}, which this version does not know")
            yield MARKED[stage](key, root)
            # Only the missing record could say which source or which search.
            if stage in ("source", "search"):
                yield root / ("sources" if stage == "source" else "searches")


def _named(outcome: Outcome, root: Path) -> Iterator[Path]:
    """Yield the directories that a record names. Any other name in it could keep what is not its own."""
    if outcome.stage in MARKED:
        name = outcome.result.digest if isinstance(outcome.result, SourceResult) else outcome.key
        if _KEY.fullmatch(name):
            yield MARKED[outcome.stage](name, root)
    if isinstance(outcome.result, SearchResult) and _KEY.fullmatch(outcome.result.search):
        yield layout.search_directory(outcome.result.search, root)


def _read(record: Path) -> Outcome:
    try:
        return read_record(record.name, record.read_text(encoding="utf-8"))
    except ValueError as error:
        raise DocumentError(f"{record} cannot be read: {error}") from error


def _active(entry: Path) -> str:
    """Return the key of the revision that serves. Its Deployment needs it, whatever became of its record."""
    try:
        revision = json.loads(entry.read_text(encoding="utf-8"))["revision"]
        if not _KEY.fullmatch(revision):
            raise ValueError(f"{revision!r} is no key of a revision")
    except (ValueError, KeyError, TypeError) as error:
        raise DocumentError(f"{entry} cannot be read: {error!r}") from error
    return str(revision)


def _served(history: Path) -> set[str]:
    """Return the names of the records that a history names."""
    try:
        document = json.loads(history.read_text(encoding="utf-8"))
        others = ((document.get(name) or {}).get("records", ()) for name in ("trial", "anchor"))
        states = [*document["served"], *others]
        return {str(name) for state in states for name in state}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DocumentError(f"{history} cannot be read: {error!r}") from error


def _check(root: Path, is_needed: Callable[[Path], bool]) -> None:
    """Raise StageError(RepositoryUnknown) for the first entry that is unknown or cannot be read."""
    for path in _entries(root):
        if path.name in IS_OURS and _is_directory(path):
            for directory in _entries(path):
                # Another Job may just have renamed or removed it.
                if not _is_known(directory, is_needed) and os.path.lexists(directory):
                    raise _unknown(
                        f"{_shown(directory)} is none that a Job of this operator made, or it was changed since"
                    )
        elif not (path.name == layout.MARKER or (path.name == CACHES and _is_directory(path))):
            raise _unknown(f"this operator does not know {_shown(path)}")


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if not path.name.startswith(NFS))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise _unknown(f"{folder} cannot be read: {error}") from error


def _unknown(what: str) -> StageError:
    advice = "move or delete what is named, then type: kubectl triton retry NAME"
    return StageError(Reason.REPOSITORY_UNKNOWN, f"nothing was removed from the claim: {what}; {advice}")


def _shared_storage(others: list[Path]) -> StageError:
    """Return the failure of storage that other claims have too: no record here says what their objects need."""
    names = (each.name for each in others[:NAMED])
    named = ", ".join(
        unquote(name) if _PLAIN.fullmatch(unquote(name).replace("/", "", 1)) else quoted(name) for name in names
    )
    message = (
        f"nothing was removed from the claim, because its storage is also that of claim {named}, whose objects are not"
        " known here; give each claim its own storage. If that claim is gone, or this one was restored from it, delete"
        f" {_shown(others[0])}; then type: kubectl triton retry NAME"
    )
    return StageError(Reason.REPOSITORY_UNKNOWN, message)


def _shown(path: Path) -> str:
    """Return a path for a message, with its last name in quotation marks if that could be taken for words of it."""
    return str(path) if _PLAIN.fullmatch(path.name) else f"{quoted(path.name)} in {path.parent}"


def _is_known(path: Path, is_needed: Callable[[Path], bool]) -> bool:
    """Whether a Job made the entry of a folder, or is making it; what is needed is not judged by its content."""
    if not _is_directory(path):
        return False
    if _TEMPORARY.fullmatch(path.name):
        return True
    try:
        return bool(_KEY.fullmatch(path.name)) and (is_needed(path) or _is_empty(path) or _is_ours(path))
    except OSError:
        return False


def _clean(folder: Path, is_needed: Callable[[Path], bool], minimum_age_seconds: int) -> int:
    """Remove the directories that are old, unused and ours; return how many."""
    found = [path for path in _directories(folder, _KEY) if not is_needed(path)]
    return sum(
        _remove_empty(path) if _is_empty(path) else _is_ours(path) and _remove(path, minimum_age_seconds)
        for path in found
    )


def _clean_objects(objects: Path, owners: set[str], minimum_age_seconds: int) -> None:
    """Remove what objects that no longer use the claim shared with no other. Losing it costs time alone."""
    for directory in objects.iterdir() if objects.is_dir() else ():
        if directory.name not in owners and _age(directory, time.time()) >= minimum_age_seconds:
            shutil.rmtree(directory, ignore_errors=True)


def _is_empty(directory: Path) -> bool:
    """Whether a directory is what a kubelet makes for a server whose revision is gone; only root may change that."""
    return not any(directory.iterdir())


def _remove_empty(directory: Path) -> bool:
    try:
        directory.rmdir()
    except FileNotFoundError:
        return False
    except OSError as error:
        # A Job has just published in its place.
        if error.errno != errno.ENOTEMPTY:
            raise
        return False
    return True


def _is_ours(directory: Path) -> bool:
    """Whether a directory holds what a Job publishes under its name, and all of it can be read."""
    try:
        list(os.walk(directory, onerror=_raise))
        return IS_OURS[directory.parent.name](directory)
    except (OSError, StageError):
        return False


def _raise(error: OSError) -> None:
    raise error


def _remove(directory: Path, minimum_age_seconds: int) -> bool:
    """Return whether it was removed. It is moved aside first, and moved back if a Job used it in the meantime."""
    aside = Path(tempfile.mkdtemp(prefix=f"{TEMPORARY_PREFIX}removed-", dir=directory.parent))
    moved = aside / directory.name
    os.rename(directory, moved)
    if _age(moved, time.time()) < minimum_age_seconds and not directory.exists():
        os.rename(moved, directory)
    shutil.rmtree(aside)
    return not directory.exists()


def _directories(folder: Path, pattern: re.Pattern[str]) -> list[Path]:
    found = sorted(folder.iterdir()) if folder.is_dir() else []
    return [path for path in found if pattern.fullmatch(path.name) and _is_directory(path)]


def _is_directory(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _is_linked(directory: Path) -> bool:
    """Whether a revision has hard links to the candidate's files.

    The model's own file tells, because revisions alone link to it. A Python step's other files are links to its source
    and its packages, and another candidate may have these too.
    """
    conversion = find_conversion(directory, directory.name)
    files = directory.rglob("*") if conversion is None else [directory / conversion.files[0]]
    return any(path.is_file() and path.stat().st_nlink > 1 for path in files)


def _age(path: Path, now: float) -> float:
    try:
        return now - path.stat().st_mtime
    except FileNotFoundError:
        return 0.0
