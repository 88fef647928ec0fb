"""What a download's directory holds: the files of one version that a server has told, and nothing of an earlier try."""

import os
import re
import shutil
from collections.abc import Container, Sequence
from dataclasses import dataclass
from pathlib import Path

from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.fetch.partial import check_room
from triton_converters.fetch.remote import ARCHIVES, FILES, Remote, wanted

MOST_FILES = 20_000
REFUSED = ("", ".", "lost+found")
"""Parts of a path that no published source has."""
NO_NAME = "a name that no source has"
VERSION, SINGLE = "version", "a single file"
"""File of the download's directory that names the version whose files are there, and what it says of a single file."""
_NAME = re.compile(r"[^\x00-\x1f\x7f\\]{1,1024}")


@dataclass(frozen=True)
class File:
    """A file that the server lists; raises ValueError for a name or a size that no source has."""

    name: str
    """Path below the root of the source."""
    bytes: int
    sha256: str = ""
    """Empty: the server does not tell."""

    def __post_init__(self) -> None:
        parts = self.name.split("/")
        # JSON and tar can hold characters that no encoding has.
        speakable = _NAME.fullmatch(self.name) and self.name.encode(errors="ignore").decode() == self.name
        if not speakable or any(part in REFUSED or part.startswith("..") for part in parts):
            raise ValueError(NO_NAME)
        if not isinstance(self.bytes, int) or not 0 <= self.bytes < 2**62:
            raise ValueError("a size that no file has")


def chosen(remote: Remote, files: Sequence[File], what: str) -> list[File]:
    """Return the files that the spec includes. ``what``: the folder in words. Raises StageError(SourceNotFound)."""
    found = [each for each in files if wanted(each.name, remote.include)]
    if not found:
        raise nothing_chosen(what)
    return found


def nothing_chosen(what: str) -> StageError:
    """Return the failure of a folder of which the spec includes nothing. ``what``: the folder in words."""
    return StageError(Reason.SOURCE_NOT_FOUND, f"{what} has no file that spec.source.include names")


def missing(place: Path, version: str, files: Sequence[File], what: str) -> list[File]:
    """Return the files that are still to come of this version, after removing everything else.

    Raises StageError(StorageFull).
    """
    _begin(place, version)
    _keep(place / FILES, {each.name for each in files})
    to_come = [each for each in files if not _is_there(place / FILES / each.name, each)]
    check_room(place, sum(each.bytes for each in to_come))
    print(f"{what}: {len(to_come)} of {len(files)} files are to come", flush=True)
    return to_come


def single(place: Path, path: str) -> Path:
    """Return where the single file of a URI's path is written, after removing everything else."""
    _begin(place, SINGLE)
    _keep(place / FILES, ())
    return place / FILES / path.rpartition("/")[2]


def _is_there(path: Path, file: File) -> bool:
    return path.is_file() and path.stat().st_size == file.bytes


def _begin(place: Path, version: str) -> None:
    """Empty the directory unless it is of this version. What came of a file in part says itself which one it is of."""
    marker = place / VERSION
    if marker.is_file() and marker.read_text(encoding="utf-8") == version:
        return
    for folder in (place / FILES, place / ARCHIVES):
        if folder.exists():
            shutil.rmtree(folder)
    marker.write_text(version, encoding="utf-8")


def _keep(root: Path, names: Container[str]) -> None:
    """Remove all files but the named ones, and all directories that are empty then."""
    for folder, _, files in os.walk(root, topdown=False):
        for path in (Path(folder, file) for file in files):
            if path.relative_to(root).as_posix() not in names:
                path.unlink()
        if not os.listdir(folder):
            os.rmdir(folder)
