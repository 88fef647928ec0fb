"""Whether a revision is what was published: a digest of its content, and a cheap one of its files' attributes.

The content is digested when a revision is published and when it is profiled. A server that starts compares the
attributes with those that the profile saw, and reads the content only if they differ. A hard link to one of the files
changes its ctime, so a difference alone proves nothing; but nobody changes content and keeps every attribute.
"""

import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from triton_converters.claim_store.replay import RESULT_FILE
from triton_converters.contract import layout
from triton_converters.contract.failure import StageError
from triton_converters.contract.formats import FORMATS
from triton_converters.contract.reasons import Reason
from triton_converters.contract.upkeep_requests import CheckRequest

DIRECTORY = "directory"
"""What stands for the content of a folder."""
CONTENT = "Content"
"""The verification that always reads the content."""


def content_digest(directory: Path) -> str:
    """Return the SHA-256 of names and content of everything but result.json; raises StageError(RepositoryDamaged)."""
    return digest_of_entries(
        {
            name: DIRECTORY if stat.S_ISDIR(found.st_mode) else _sha256(directory / name)
            for name, found in _entries(directory)
        }
    )


def digest_of_entries(entries: Mapping[str, str]) -> str:
    """Return ``content_digest`` from the SHA-256 of each file, and DIRECTORY for each folder, by their paths."""
    lines = [f"{entries[name]}  ".encode() + os.fsencode(name) + b"\n" for name in sorted(entries, key=os.fsencode)]
    return hashlib.sha256(b"".join(lines)).hexdigest()


def stat_digest(directory: Path) -> str:
    """Return a digest of names, sizes, inodes and times of change; raises StageError(RepositoryDamaged)."""
    lines = []
    for name, found in _entries(directory):
        told = "directory" if stat.S_ISDIR(found.st_mode) else _attributes(found)
        lines.append(f"{told}  ".encode() + os.fsencode(name) + b"\n")
    return hashlib.sha256(b"".join(lines)).hexdigest()[:32]


def check_content(key: str, expected: str) -> None:
    """Raise StageError unless the revision has the digest; empty: none is known. ResultMissing if it is gone."""
    directory = _directory(key)
    if expected and content_digest(directory) != expected:
        raise damaged(f"{directory} on the repository claim is not what was published")


def check(key: str, content: str, seen: str, verification: str) -> None:
    """Do the same, but trust the attributes that were ``seen`` unless the verification is ``Content``."""
    if verification == CONTENT or not seen or stat_digest(_directory(key)) != seen:
        check_content(key, content)


def admit(request: CheckRequest) -> None:
    """Check a revision before a server starts on it.

    Raises StageError: ResultMissing if the revision is gone, RepositoryDamaged if it is not what was published.
    """
    check(request.revision, request.content, request.stat_digest, request.verification)


def damaged(what: str) -> StageError:
    """Return the error for a revision that must not be served."""
    advice = "find out what writes there or whether the disk is sound; the operator publishes the revision anew"
    return StageError(Reason.REPOSITORY_DAMAGED, f"{what}; {advice}")


def _directory(key: str) -> Path:
    directory = layout.revision_directory(key)
    # For a missing directory, the kubelet mounts an empty one.
    if not (directory.is_dir() and any(directory.iterdir())):
        message = f"{directory} is no longer on the repository claim"
        raise StageError(Reason.RESULT_MISSING, message, final=False)
    return directory


def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except PermissionError as error:
        raise damaged(f"{path} cannot be read: {error}") from error


def _attributes(found: os.stat_result) -> str:
    return f"{found.st_size} {found.st_ino} {found.st_mtime_ns} {found.st_ctime_ns}"


def _entries(directory: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Yield path and attributes of every file and folder, sorted by path."""
    for path in sorted(directory.rglob("*"), key=os.fsencode):
        name = path.relative_to(directory).as_posix()
        found = path.lstat()
        if not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)):
            raise damaged(f"{path} is no regular file")
        if name != RESULT_FILE:
            yield name, found


def model_file(revision: str, model_name: str, format_name: str) -> Path:
    """Return the path of a revision's served file or directory."""
    return layout.model_repository(revision) / model_name / layout.VERSION / FORMATS[format_name].file
