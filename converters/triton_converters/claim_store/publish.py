"""Write to the claim so that nobody ever sees half of anything: temporary sibling, fsync, one rename.

A publisher that is killed leaves a ``.tmp-*`` sibling that nobody reads.
"""

import contextlib
import errno
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

TEMPORARY_PREFIX = ".tmp-"


@contextmanager
def temporary_directory(target: Path) -> Iterator[Path]:
    """A fresh directory beside ``target`` to write into; it is gone afterwards, whatever happens."""
    target.parent.mkdir(parents=True, exist_ok=True)
    directory = Path(tempfile.mkdtemp(prefix=f"{TEMPORARY_PREFIX}{target.name[:16]}-", dir=target.parent))
    directory.chmod(0o755)
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def publish_directory(directory: Path, target: Path, is_valid: Callable[[Path], bool] = Path.is_dir) -> bool:
    """Rename ``directory`` to ``target`` once everything in it is on the disk; both lie on one file system.

    False: another publisher was first; its directory stands and ``directory`` is left to the caller. What stands at
    ``target`` without being valid (a directory damaged by hand) is moved out of the way. Raises OSError (ENOSPC
    included), with ``target`` untouched.
    """
    sync_tree(directory)
    for _ in range(2):
        try:
            os.rename(directory, target)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                raise
            if is_valid(target):
                return False
            _move_aside(target)
        else:
            sync(target.parent)
            return True
    return False


def write_file(path: Path, content: bytes) -> None:
    """Write one file whole or not at all; an older file of that name is replaced."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=TEMPORARY_PREFIX, dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o644)
        os.rename(name, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
        raise
    sync(path.parent)


def sync_tree(directory: Path) -> None:
    """Fsync every file and directory below and including ``directory``."""
    for folder, _, files in os.walk(directory):
        for file in files:
            sync(Path(folder, file))
        sync(Path(folder))


def sync(path: Path) -> None:
    """Fsync one file or directory."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _move_aside(target: Path) -> None:
    """Take a damaged directory away; a publisher that came in between is not an error."""
    aside = Path(tempfile.mkdtemp(prefix=f"{TEMPORARY_PREFIX}damaged-", dir=target.parent))
    with contextlib.suppress(OSError):
        os.rename(target, aside / target.name)
    shutil.rmtree(aside, ignore_errors=True)
