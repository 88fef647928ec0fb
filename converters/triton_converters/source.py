r"""Stage ``source``: publish the user's files on the claim under their digest.

The digest of a single file is its SHA-256. That of a directory is the SHA-256 of what this prints inside it::

    find -L . \( -name '..*' -o -name lost+found \) -prune -o -type f -printf '%P\0' |
      LC_ALL=C sort -z | xargs -0 sha256sum --

Names that begin with ``..`` are the kubelet's own in a mounted ConfigMap. See docs/source.md.
"""

import hashlib
import os
import re
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from triton_converters import claim
from triton_converters.failure import StageError
from triton_converters.publish import publish_directory, temporary_directory
from triton_converters.reasons import Reason
from triton_converters.request import SourceRequest
from triton_converters.result import SourceResult

_UNSPEAKABLE = re.compile(r"[\x00-\x1f\x7f\\]")


@dataclass(frozen=True)
class SourceFile:
    """A regular file of the source."""

    name: str
    """Path below the source, with slashes: what is published and digested."""
    path: Path
    """Where its content is read, links resolved."""


def run(request: SourceRequest) -> SourceResult:
    """Publish ``sources/<digest>/`` unless it is there.

    Raises StageError: SourceNotFound, SourceInvalid (a link that leaves the source, a special or unreadable file),
    DigestMismatch; OSError where the claim is full.
    """
    root = _locate(request)
    files = sorted(_files(root, Path(request.path).name), key=lambda file: os.fsencode(file.name))
    if not files:
        raise StageError(Reason.SOURCE_NOT_FOUND, f"{request.uri} holds no file")
    single = root.is_file()
    digest = digest_of({file.name: sha256_of(file) for file in files}, single)
    if request.sha256 and digest != request.sha256:
        message = f"{request.uri} has SHA-256 {digest}, spec.source.sha256 is {request.sha256} (docs/source.md)"
        raise StageError(Reason.DIGEST_MISMATCH, message)
    target = claim.source_directory(digest)
    if not target.is_dir():
        _publish(files, digest, single, target)
    return SourceResult(digest, len(files), sum((target / file.name).stat().st_size for file in files))


def digest_of(hashes: dict[str, str], single: bool) -> str:
    """The source's digest from its files' SHA-256 by name; ``single``: it is one file, not a directory."""
    if single:
        return next(iter(hashes.values()))
    lines = [f"{hashes[name]}  ".encode() + os.fsencode(name) + b"\n" for name in sorted(hashes, key=os.fsencode)]
    return hashlib.sha256(b"".join(lines)).hexdigest()


def is_published(directory: Path) -> bool:
    """Whether the directory holds exactly the files whose digest is its name; reads them all."""
    paths = [path for path in directory.rglob("*") if path.is_symlink() or not path.is_dir()]
    if not paths or not all(stat.S_ISREG(path.lstat().st_mode) for path in paths):
        return False
    files = [SourceFile(path.relative_to(directory).as_posix(), path) for path in paths]
    hashes = {file.name: sha256_of(file) for file in files}
    digests = {digest_of(hashes, single=False)} | (set(hashes.values()) if len(hashes) == 1 else set())
    return directory.name in digests


def _locate(request: SourceRequest) -> Path:
    """What the request names, links resolved, proved to lie on the mount."""
    mount = claim.SOURCE_MOUNT.resolve()
    root = (mount / request.path).resolve()
    if not root.is_relative_to(mount):
        raise _invalid(f"{request.uri}: {request.path!r} leads outside of what is mounted")
    if not root.exists():
        folder = next(parent for parent in root.parents if parent.is_dir())
        entries = ", ".join(sorted(entry.name for entry in folder.iterdir())[:10]) or "nothing"
        raise StageError(Reason.SOURCE_NOT_FOUND, f"{request.uri}: no {root.name!r} there; its folder holds: {entries}")
    return root


def _files(root: Path, name: str) -> Iterator[SourceFile]:
    """Regular files below ``root``, or ``root`` itself as ``name``; links are followed as long as they stay inside."""
    if not root.is_dir():
        yield _regular(root, name)
        return
    # (directory to list, its name below the root, the real directories above it)
    pending: list[tuple[Path, str, tuple[Path, ...]]] = [(root, "", (root,))]
    while pending:
        directory, prefix, above = pending.pop()
        try:
            entries = sorted(directory.iterdir())
        except PermissionError as error:
            raise _invalid(f"{prefix or 'the source'} cannot be listed by uid {os.getuid()}: {error}") from error
        for entry in entries:
            if entry.name.startswith("..") or entry.name == "lost+found":
                continue
            name, real = prefix + entry.name, entry.resolve()
            if not real.is_relative_to(root):
                raise _invalid(f"{name} is a link to {os.readlink(entry)}, outside of the source: copy the file there")
            if real.is_dir():
                if real in above:
                    raise _invalid(f"{name} is a link to a directory above it")
                pending.append((real, f"{name}/", (*above, real)))
            else:
                yield _regular(real, name)


def _regular(path: Path, name: str) -> SourceFile:
    if _UNSPEAKABLE.search(name):
        raise _invalid(f"{name!r} has a backslash or a control character in its name")
    if not path.exists():
        raise _invalid(f"{name} is a link to nothing")
    if not stat.S_ISREG(path.stat().st_mode):
        raise _invalid(f"{name} is not a regular file")
    return SourceFile(name, path)


def sha256_of(file: SourceFile) -> str:
    """SHA-256 of the content, 64 hexadecimal digits."""
    try:
        with file.path.open("rb") as content:
            return hashlib.file_digest(content, "sha256").hexdigest()
    except PermissionError as error:
        raise _invalid(f"{file.name} cannot be read by uid {os.getuid()}: {error}") from error


def _publish(files: list[SourceFile], digest: str, single: bool, target: Path) -> None:
    """Copy the files; what arrived must be what was digested."""
    with temporary_directory(target) as directory:
        for file in files:
            copy = directory / file.name
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file.path, copy)
            copy.chmod(0o444)
        copied = {file.name: sha256_of(SourceFile(file.name, directory / file.name)) for file in files}
        if digest_of(copied, single) != digest:
            message = "the source changed while it was copied; it is looked at again"
            raise StageError(Reason.SOURCE_INVALID, message, final=False)
        publish_directory(directory, target)


def _invalid(message: str) -> StageError:
    return StageError(Reason.SOURCE_INVALID, message)
