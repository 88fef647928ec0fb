"""Write to the claim so that nothing is ever seen half-written: temporary sibling, fsync, one rename.

A publisher that is killed leaves a ``.tmp-*`` sibling that is never read.
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
    """Yield a new directory next to ``target`` to write into; it is always removed afterwards."""
    target.parent.mkdir(parents=True, exist_ok=True)
    directory = Path(tempfile.mkdtemp(prefix=f"{TEMPORARY_PREFIX}{target.name[:16]}-", dir=target.parent))
    directory.chmod(0o755)
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def publish_directory(directory: Path, target: Path, is_valid: Callable[[Path], bool] = Path.is_dir) -> bool:
    """Rename ``directory`` to ``target`` once everything in it is on the disk; both lie on one file system.

    Returns False if another publisher was first; its directory stays and ``directory`` is left to the caller. An
    invalid ``target`` (such as a directory damaged by hand) is moved out of the way. Raises OSError (including ENOSPC),
    with ``target`` untouched.
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
    """Write one file completely or not at all; replaces an older file of that name."""
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
    """Remove a damaged directory; it is no error if a publisher comes in between."""
    aside = Path(tempfile.mkdtemp(prefix=f"{TEMPORARY_PREFIX}damaged-", dir=target.parent))
    with contextlib.suppress(OSError):
        os.rename(target, aside / target.name)
    shutil.rmtree(aside, ignore_errors=True)
