"""Write to the claim so that nothing is ever seen half-written: temporary sibling, fsync, one rename.

A publisher that is killed leaves a ``.tmp-*`` sibling that nobody reads. The next publisher of the same target removes
it: three Jobs killed for memory at 10 GB would otherwise fill the claim.

Two Jobs of one key may run at once (a node was lost), so a temporary directory is removed only if no process holds its
lock. The lock is flock's, because the kernel releases it however a process ends; an age would either miss the try that
follows at once, or take the directory of a Job that converts for an hour before it writes. NFS turns it into a
byte-range lock, which holds between nodes and needs a file that is open for writing. If a file system does not support
locks, nothing is removed here, and the clean Job does it after a day.
"""

import contextlib
import errno
import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from triton_converters.contract.failure import StageError, lacks_room

TEMPORARY_PREFIX = ".tmp-"
_NO_LINKS = frozenset({errno.EXDEV, errno.EPERM, errno.EACCES, errno.ENOTSUP, errno.EMLINK, errno.ENOSYS})


LOCK, CONTENT, SWEPT = "lock", "content", "swept"
"""In a temporary directory: the file that is locked while it is in use, what will be published, what is given up."""


@contextmanager
def temporary_directory(target: Path) -> Iterator[Path]:
    """Yield a new directory on the file system of ``target`` to write into; it is always removed afterwards.

    What killed publishers of the same target left is removed first.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    prefix = f"{TEMPORARY_PREFIX}{target.name[:16]}-"
    for lock in sorted(target.parent.glob(f"{prefix}*/{LOCK}")):
        with contextlib.suppress(OSError):
            _remove_unused(lock)
    place = Path(tempfile.mkdtemp(prefix=prefix, dir=target.parent))
    try:
        (place / CONTENT).mkdir()
        (place / CONTENT).chmod(0o755)
        with _locked(place / LOCK):
            yield place / CONTENT
    finally:
        shutil.rmtree(place, ignore_errors=True)


@contextmanager
def resumable_directory(folder: Path, key: str) -> Iterator[Path]:
    """Yield a directory in ``folder`` that stays if another process can go on with what is in it.

    It is removed at the end, after a failure that is final, and when the claim is full: two downloads that keep half of
    it each would never end, and all others would find it full. Only one process at a time has the directory of a key; a
    second one waits, if the file system supports locks. What nobody goes on with, the clean Job removes after a day.
    """
    place = folder / f"{TEMPORARY_PREFIX}{key}-download"
    descriptor = _lock_of(place)
    try:
        yield place
    except (StageError, OSError) as error:
        if lacks_room(error) or (isinstance(error, StageError) and error.final):
            shutil.rmtree(place, ignore_errors=True)
        raise
    else:
        shutil.rmtree(place, ignore_errors=True)
    finally:
        os.close(descriptor)


def _lock_of(place: Path) -> int:
    """Make the directory and return a descriptor that holds its lock."""
    while True:
        place.mkdir(parents=True, exist_ok=True)
        try:
            descriptor = os.open(place / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
            with contextlib.suppress(OSError):
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            if os.path.samestat(os.fstat(descriptor), (place / LOCK).stat()):
                return descriptor
            os.close(descriptor)
        except FileNotFoundError:
            # The process that had the directory has just removed it.
            continue


@contextmanager
def _locked(lock: Path) -> Iterator[None]:
    """The file exists under its name only once it is locked; without support for locks it never does."""
    descriptor, name = tempfile.mkstemp(dir=lock.parent)
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            os.replace(name, lock)
        yield
    finally:
        os.close(descriptor)


def _remove_unused(lock: Path) -> None:
    """Remove the lock's directory; raises OSError where it is in use, gone, or not ours to remove."""
    descriptor = os.open(lock, os.O_RDWR)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # A publisher on a node that lost its lock must not publish what is half removed: its rename finds nothing.
        with contextlib.suppress(FileNotFoundError):
            os.rename(lock.with_name(CONTENT), lock.with_name(SWEPT))
        # The lock goes last, so that the next publisher goes on where this one is killed.
        shutil.rmtree(lock.with_name(SWEPT), ignore_errors=True)
        shutil.rmtree(lock.parent, ignore_errors=True)
    finally:
        os.close(descriptor)
    # NFS and FUSE keep a file that is open under another name, and so its directory.
    if not lock.exists():
        lock.parent.rmdir()


def link_or_copy(source: Path, target: Path) -> None:
    """Make a hard link, or a copy if the file system has no hard links."""
    try:
        os.link(source, target)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        shutil.copyfile(source, target)


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
