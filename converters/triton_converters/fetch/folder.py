"""What a download's directory holds: the files of one version that a server has told, and nothing of an earlier try."""

import os
import re
import shutil
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.fetch import field
from triton_converters.fetch.partial import check_room
from triton_converters.fetch.remote import ARCHIVES, FILES, Remote, taken

MOST_FILES = 20_000
LEFT_OUT = ("lost+found", ".triton-operator")
"""Names on a volume that are no part of a source: the file system's, and what the operator keeps on a repository
claim, which other objects may share."""
REFUSED = ("", ".", *LEFT_OUT)
"""Parts of a path that no published source has."""
NO_NAME, TOO_LONG = "a name that no source has", "a name that is too long for a file"
VERSION, SINGLE = "version", "a single file"
"""File of the download's directory that names the version whose files are there, and what it says of a single file."""
LONGEST, LONGEST_PART = 1024, 255
"""Bytes of a path, and of a part of it: what the file systems of claims, and the tools that read sources, can hold."""
_NAME = re.compile(r"[^\x00-\x1f\x7f\\]+")


class NameRefusedError(ValueError):
    """A name that no source has."""


@dataclass(frozen=True)
class File:
    """A file that the server lists; raises ValueError for a size that no source has, NameRefusedError for a name."""

    name: str
    """Path below the root of the source."""
    bytes: int
    sha256: str = ""
    """Empty: the server does not tell."""

    def __post_init__(self) -> None:
        # JSON and tar can hold characters that no encoding has.
        path = self.name.encode(errors="ignore")
        if not _NAME.fullmatch(self.name) or path.decode() != self.name:
            raise NameRefusedError(NO_NAME)
        if len(path) > LONGEST or any(len(part) > LONGEST_PART for part in path.split(b"/")):
            raise NameRefusedError(TOO_LONG)
        if any(part in REFUSED or part.startswith("..") for part in self.name.split("/")):
            raise NameRefusedError(NO_NAME)
        if not isinstance(self.bytes, int) or not 0 <= self.bytes < 2**62:
            raise ValueError("a size that no file has")


F = TypeVar("F", bound=File)


def clash(names: Iterable[str]) -> str:
    """Return in words why no folder can hold files of these paths; empty: one can."""
    # What lies below a path follows it at once, sorted by parts.
    for one, other in pairwise(sorted(name.split("/") for name in names)):
        if one == other:
            return "two files with one name"
        if other[: len(one)] == one:
            return "a file with the name of a folder"
    return ""


def chosen(remote: Remote, files: Sequence[F]) -> list[F]:
    """Return the files that are taken; raises what `check_named` raises."""
    names = taken([each.name for each in files], remote.request)
    return [each for each in files if each.name in names]


def check_version(remote: Remote, version: str) -> None:
    """Raise StageError(SourceChanged) if another version than this one is asked for."""
    if remote.request.version not in ("", version):
        message = f"{remote.request.uri} changed after the operator had looked at it; the operator looks again"
        raise StageError(Reason.SOURCE_CHANGED, message)


def minute(time: datetime) -> str:
    """Return a time with its minute in UTC, such as ``2026-11-30T01:02Z``; one without a zone is taken for UTC."""
    zoned = time if time.tzinfo else time.replace(tzinfo=UTC)
    return zoned.astimezone(UTC).strftime("%Y-%m-%dT%H:%MZ")


def changed() -> StageError:
    """Return the failure of a source that is not what it was when it was listed."""
    return StageError(Reason.SOURCE_CHANGED, "the source changed while it was copied", final=False)


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


def single(place: Path, remote: Remote) -> Path:
    """Return where the single file of a URI's path is written, after removing everything else.

    Raises StageError: SourceInvalid, what `check_named` raises.
    """
    name = remote.uri.path.rpartition("/")[2]
    taken([name], remote.request)
    if len(name.encode()) > LONGEST_PART:
        raise StageError(Reason.SOURCE_INVALID, f"{field.of('uri')} names a file with {TOO_LONG}; rename it")
    _begin(place, SINGLE)
    _keep(place / FILES, ())
    return place / FILES / name


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
