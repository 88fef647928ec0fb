r"""The digest of a published source, and of a converted model that is a directory.

The digest of a single file is its SHA-256. That of a directory is the SHA-256 of what this prints inside it::

    find -L . \( -name '..*' -o -name lost+found -o -name .triton-operator \) -prune -o -type f -printf '%P\0' |
      LC_ALL=C sort -z | xargs -0 sha256sum --

So a single file with that text would have the digest of the directory. No such file is published under its own digest.
"""

import hashlib
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason

LONGEST_LINE = 8 * 1024
"""Bytes of a directory's listing that one file takes at most: its path has at most 4096."""
_LINE = re.compile(rb"[0-9a-f]{64}  [^\n]+\n")


@dataclass(frozen=True)
class SourceFile:
    """A regular file of the source."""

    name: str
    """Path below the source, with slashes; it is published and digested."""
    path: Path
    """Path to read the content from, with links resolved."""


def sha256_of(file: SourceFile) -> str:
    """Return the SHA-256 of the content as 64 hexadecimal digits; raises StageError(SourceInvalid)."""
    try:
        with file.path.open("rb") as content:
            return hashlib.file_digest(content, "sha256").hexdigest()
    except PermissionError as error:
        message = f"uid {os.getuid()} cannot read {file.name}: {error}"
        raise StageError(Reason.SOURCE_INVALID, message) from error


def digest_of(hashes: Mapping[str, str], single: bool) -> str:
    """Return the source's digest from its files' SHA-256 by name; ``single``: it is one file, not a directory."""
    if single:
        return next(iter(hashes.values()))
    lines = [f"{hashes[name]}  ".encode() + os.fsencode(name) + b"\n" for name in sorted(hashes, key=os.fsencode)]
    return hashlib.sha256(b"".join(lines)).hexdigest()


def hashes_of(directory: Path) -> dict[str, str]:
    """Return the SHA-256 of all files below a directory by their paths; reads all of them.

    Raises StageError(SourceInvalid) if there is anything else than files and directories; OSError.
    """
    return {file.name: sha256_of(file) for file in _files(directory)}


def is_published(directory: Path) -> bool:
    """Whether the directory holds the files whose digest is its name; raises what ``hashes_of`` raises."""
    return is_named_for(directory, hashes_of(directory))


def is_named_for(directory: Path, hashes: Mapping[str, str]) -> bool:
    """Whether files may be published in a directory of that name; raises OSError.

    ``hashes``: the SHA-256 of the files that it holds, by name.
    """
    if hashes and directory.name == digest_of(hashes, single=False):
        return True
    return list(hashes.values()) == [directory.name] and not is_listing(directory / next(iter(hashes)))


def is_listing(path: Path) -> bool:
    """Whether the file's SHA-256 is also the digest of a directory, because its content is such a directory's listing.

    Raises OSError.
    """
    with path.open("rb") as file:
        line = file.readline(LONGEST_LINE)
        while _LINE.fullmatch(line):
            line = file.readline(LONGEST_LINE)
            if not line:
                return True
    return False


def is_intact(directory: Path) -> bool:
    """Whether the directory exists and holds what its name says."""
    try:
        return is_published(directory)
    except (StageError, OSError):
        return False


def holds(directory: Path, hashes: Mapping[str, str]) -> bool:
    """Whether the directory exists and holds exactly these files; ``hashes``: their SHA-256 by name."""
    try:
        files = _files(directory)
        return {file.name for file in files} == set(hashes) and all(
            sha256_of(file) == hashes[file.name] for file in files
        )
    except (StageError, OSError):
        return False


def _files(directory: Path) -> list[SourceFile]:
    paths = [path for path in directory.rglob("*") if path.is_symlink() or not path.is_dir()]
    files = [SourceFile(path.relative_to(directory).as_posix(), path) for path in paths]
    for file in files:
        if not stat.S_ISREG(file.path.lstat().st_mode):
            raise StageError(Reason.SOURCE_INVALID, f"{file.name} is not a regular file")
    return files
