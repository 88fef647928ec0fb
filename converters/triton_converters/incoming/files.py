"""Read files that user code, or the client of a server that runs it, wrote.

Nothing about them is trusted: neither their kind, nor their size, nor their names.

Whoever reads runs after the container with user code has ended, and its own mount is read-only, so that nothing changes
between a check and its use. A link is never followed, also not for a directory, and what is no regular file is opened
without waiting and then refused. Standard library only.
"""

import os
import shutil
import stat
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason

COPY_BYTES = 2**20
"""Bytes that are copied at once: few enough for any memory limit, and enough for the speed of a disk."""
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def unfit(path: Path | str, why: object) -> StageError:
    """Return the failure of a Job whose container `run` left what is not published."""
    message = f"the Job's container run left {path}, which is not published: {why}"
    return StageError(Reason.CRASHED, f"{message}; what runs there should write only into temporary directories")


def open_file(root: Path, name: str) -> BinaryIO:
    """Open ``root/name``, a regular file with one name; raises StageError(Crashed) for anything else.

    ``name``: a relative path that was chosen or checked by us.
    """
    *folders, last = PurePosixPath(name).parts
    try:
        folder = _open_folder(root, folders)
        try:
            descriptor = os.open(last, _FILE, dir_fd=folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise unfit(root / name, error.strerror) from error
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
        os.close(descriptor)
        why = "it is a hard link" if stat.S_ISREG(found.st_mode) else "it is not a regular file"
        raise unfit(root / name, why)
    return os.fdopen(descriptor, "rb")


def read_file(root: Path, name: str, limit_bytes: int) -> bytes:
    """Return the content of a file that is not longer than the limit; raises what ``open_file`` raises."""
    with open_file(root, name) as file:
        content = file.read(limit_bytes + 1)
    if len(content) > limit_bytes:
        raise unfit(root / name, f"it is longer than {limit_bytes} bytes")
    return content


def exists(root: Path, name: str) -> bool:
    """Whether there is anything of that name; it may still be refused.

    Raises StageError(Crashed) if the folders above it cannot be looked into.
    """
    *folders, last = PurePosixPath(name).parts
    try:
        folder = _open_folder(root, folders)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise unfit(root / name, error.strerror) from error
    try:
        os.lstat(last, dir_fd=folder)
    except FileNotFoundError:
        return False
    finally:
        os.close(folder)
    return True


def names_in(root: Path, name: str, limit: int) -> list[str]:
    """Return the names in the directory ``root/name``, sorted.

    Raises StageError(Crashed) if it is no directory, or if it holds more than ``limit``.
    """
    found: list[str] = []
    try:
        folder = _open_folder(root, PurePosixPath(name).parts)
    except OSError as error:
        raise unfit(root / name, error.strerror) from error
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                found.append(entry.name)
                if len(found) > limit:
                    raise unfit(root / name, f"it holds more than {limit} files")
    finally:
        os.close(folder)
    return sorted(found)


def copy(root: Path, names: Iterable[str], target: Path) -> None:
    """Copy the files into ``target``, under the same names.

    Raises StageError: StorageFull, before anything is copied, if they do not fit (a sparse file counts with its whole
    length); what ``open_file`` raises.
    """
    known = list(names)
    check_room(sum(_length(root, name) for name in known), target, root)
    for name in known:
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        # One by one: a process may have few files open.
        with open_file(root, name) as file, path.open("xb") as copied:
            shutil.copyfileobj(file, copied, COPY_BYTES)


def check_room(size: int, target: Path, what: Path) -> None:
    """Raise StageError(StorageFull) if the file system of ``target`` has less room than ``size`` bytes."""
    free = shutil.disk_usage(target).free
    if size > free:
        message = (
            f"the result in {what} has {size / 2**20:.1f} MiB, but the repository claim has only"
            f" {free / 2**20:.1f} MiB left; enlarge the claim, or delete what is no longer needed"
        )
        raise StageError(Reason.STORAGE_FULL, message, final=False)


def _length(root: Path, name: str) -> int:
    with open_file(root, name) as file:
        return os.fstat(file.fileno()).st_size


def _open_folder(root: Path, parts: Iterable[str]) -> int:
    """Return a descriptor of the directory; raises OSError if a part is a link or no directory."""
    descriptor = os.open(root, _DIRECTORY)
    for part in parts:
        try:
            inner = os.open(part, _DIRECTORY, dir_fd=descriptor)
        finally:
            os.close(descriptor)
        descriptor = inner
    return descriptor
