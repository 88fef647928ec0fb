r"""The digest of a published source, and of a converted model that is a directory.

The digest of a single file is its SHA-256. That of a directory is the SHA-256 of what this prints inside it::

    find -L . \( -name '..*' -o -name lost+found \) -prune -o -type f -printf '%P\0' |
      LC_ALL=C sort -z | xargs -0 sha256sum --
"""

import hashlib
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason


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
    paths = [path for path in directory.rglob("*") if path.is_symlink() or not path.is_dir()]
    files = [SourceFile(path.relative_to(directory).as_posix(), path) for path in paths]
    for file in files:
        if not stat.S_ISREG(file.path.lstat().st_mode):
            raise StageError(Reason.SOURCE_INVALID, f"{file.name} is not a regular file")
    return {file.name: sha256_of(file) for file in files}


def is_published(directory: Path) -> bool:
    """Whether the directory holds exactly the files whose digest is its name; raises what ``hashes_of`` raises."""
    hashes = hashes_of(directory)
    # A single file may have been published under several names.
    contents = set(hashes.values())
    return bool(hashes) and directory.name in {digest_of(hashes, single=False)} | (
        contents if len(contents) == 1 else set()
    )


def is_intact(directory: Path) -> bool:
    """Whether the directory exists and holds what its name says."""
    try:
        return is_published(directory)
    except (StageError, OSError):
        return False
