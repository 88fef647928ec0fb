"""What lies on a mounted volume. Whoever writes to it may do so while it is read, and put a link in a file's place."""

import errno
import hashlib
import os
import shutil
import stat
from collections.abc import Collection, Iterator
from io import BufferedReader
from pathlib import Path
from posixpath import dirname

from triton_converters.claim_store.digest import SourceFile
from triton_converters.contract import uris
from triton_converters.contract.conversion_requests import SourceRequest
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.contract.text import quoted
from triton_converters.fetch.folder import LEFT_OUT, LONGEST, MOST_FILES, changed
from triton_converters.fetch.remote import wanted

COPY_BYTES = 2**20
_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
"""How files are opened: a pipe lets nobody wait."""
_GONE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO})


def locate(path: str, uri: str, mount: Path) -> Path:
    """Return the path below the mount, with links resolved; raises StageError(SourceInvalid, SourceNotFound)."""
    mount = mount.resolve()
    root = _resolved(mount / path)
    if not root.is_relative_to(mount):
        raise _invalid(f"{uri}: {path!r} leads outside the mounted volume")
    if kept := _kept(root, mount):
        raise _invalid(f"{uri}: {path!r} leads to {kept}; name a folder of your own")
    if os.path.islink(root):
        raise _invalid(f"{uri}: {root.name} is a link that leads back to itself")
    try:
        root.stat()
    except PermissionError as error:
        raise _unreadable(error) from error
    except OSError as error:
        # Also of a name that is too long.
        message = f"{uri} does not exist: the folder has no {root.name!r}; it has: {_beside(root)}"
        raise StageError(Reason.SOURCE_NOT_FOUND, message) from error
    return root


def locate_folder(path: str, uri: str, mount: Path) -> Path:
    """Return what `locate` does; raises StageError(SourceInvalid) also for what leads to the whole volume."""
    root = locate(path, uri, mount)
    if root == mount.resolve():
        raise _invalid(f"{uri}: {path!r} leads to the whole volume; name a folder of your own")
    return root


def _kept(real: Path, top: Path) -> str:
    """Return what no source has, if the path lies in it: the operator's own files on the claim, or the system's."""
    return next((part for part in real.relative_to(top).parts if part in LEFT_OUT), "")


def _beside(path: Path) -> str:
    """Return some names in the innermost folder above the path that there is."""
    folder = next(parent for parent in path.parents if os.path.isdir(parent))
    try:
        return ", ".join(map(quoted, sorted(entry.name for entry in folder.iterdir())[:10])) or "nothing"
    except PermissionError as error:
        raise _unreadable(error) from error


def files(root: Path, request: SourceRequest) -> Iterator[SourceFile]:
    """Yield the regular files below ``root`` that may be taken, or ``root`` itself; follows links that stay inside.

    What cannot be taken is neither judged nor looked into, unless something is missing: a message then lists all.
    A few links can make millions of names from one file, so what lies below links is counted. Raises
    StageError(SourceInvalid, SourceChanged).
    """
    try:
        yield from _files(root, request)
    except PermissionError as error:
        raise _unreadable(error) from error
    except OSError as error:
        if error.errno in _GONE:
            raise changed() from error
        raise


def _files(root: Path, request: SourceRequest) -> Iterator[SourceFile]:
    if not root.is_dir():
        yield _regular(root, Path(request.path).name, root)
        return
    tops = _tops(root, request)
    # (directory to list, its name below the root, the real directories above it, whether a link led to it)
    pending: list[tuple[Path, str, tuple[Path, ...], bool]] = [(root, "", (root,), False)]
    linked = 0
    while pending:
        directory, prefix, above, is_linked = pending.pop()
        for entry in sorted(directory.iterdir()):
            name = prefix + entry.name
            if entry.name.startswith("..") or entry.name in LEFT_OUT or not _is_on_way(name, tops):
                continue
            real = _resolved(entry)
            through = is_linked or entry.is_symlink()
            linked += through
            if linked > MOST_FILES:
                raise _invalid(
                    f"links lead to more than {MOST_FILES} files and folders, {name} among them; copy the files"
                )
            if not real.is_dir() and not wanted(name, request.include):
                continue
            _check_place(root, real, name, entry)
            if real.is_dir():
                if real in above:
                    raise _invalid(f"{name} is a link to a directory that contains it")
                pending.append((real, f"{name}/", (*above, real), through))
            else:
                yield _regular(real, name, entry)


def _check_place(root: Path, real: Path, name: str, entry: Path) -> None:
    """Raise StageError if an entry leads to what is no part of the source. ``real``: its path, with links resolved."""
    if not real.is_relative_to(root):
        if not entry.is_symlink():
            raise changed()
        raise _invalid(f"{name} is a link to {os.readlink(entry)}, outside the source; copy the file there")
    if kept := _kept(real, root):
        raise _invalid(f"{name} is a link to {kept}, which is no part of a source; remove the link")
    if len(os.fsencode(name)) > LONGEST:
        raise _invalid(f"{name[:80]}... is a path of more than {LONGEST} bytes; use shorter names or fewer folders")


def _tops(root: Path, request: SourceRequest) -> set[str]:
    """Return the paths at and below which all lies that is taken; none: it may lie anywhere, or one is missing."""
    folders = {dirname(path) if (root / path).is_file() else path for path in request.paths}
    tops = folders | set(request.files)
    there = (path.is_file() or (path.is_dir() and any(path.iterdir())) for path in (root / each for each in tops))
    return tops if folders and "" not in folders and all(there) else set()


def _is_on_way(name: str, tops: Collection[str]) -> bool:
    """Whether a path lies at, above or below one of these, or there are none."""
    return not tops or any(f"{name}/".startswith(f"{top}/") or top.startswith(f"{name}/") for top in tops)


def sha256_of(file: SourceFile) -> str:
    """Return the SHA-256 of the content as 64 hexadecimal digits; raises StageError(SourceInvalid)."""
    with _opened(file) as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def copy(file: SourceFile, target: Path) -> None:
    """Write the content to a new file, which is read-only; raises StageError(SourceInvalid), OSError."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with _opened(file) as content, target.open("xb") as to:
        shutil.copyfileobj(content, to, COPY_BYTES)
    target.chmod(0o444)


def _opened(file: SourceFile) -> BufferedReader:
    """Open the file at just that path: where a link is now, there was none before."""
    try:
        return open(file.path, "rb", opener=without_links)
    except PermissionError as error:
        raise _invalid(f"uid {os.getuid()} cannot read {file.name}: {error}") from error
    except OSError as error:
        if error.errno in _GONE:
            raise changed() from error
        raise


def without_links(path: str, _: int) -> int:
    """Open a regular file at just that path, for ``open``; raises OSError where a link is, or anything else."""
    *folders, name = Path(path).parts
    folder = os.open(folders[0], _FOLDER)
    try:
        for each in folders[1:]:
            below = os.open(each, _FOLDER, dir_fd=folder)
            os.close(folder)
            folder = below
        found = os.open(name, _FILE, dir_fd=folder)
    finally:
        os.close(folder)
    if not stat.S_ISREG(os.fstat(found).st_mode):
        os.close(found)
        raise OSError(errno.ENXIO, "not a regular file", path)
    return found


def _resolved(path: Path) -> Path:
    """Return the path with links resolved, but those that lead back to themselves: Path.resolve raises at these."""
    return Path(os.path.realpath(path))


def _regular(path: Path, name: str, entry: Path) -> SourceFile:
    """Return the file to which an entry of a folder leads; raises StageError(SourceInvalid, SourceChanged), OSError."""
    if uris.UNSPEAKABLE.search(name):
        raise _invalid(f"{name!r} has a backslash or a control character in its name; rename it")
    if not path.exists():
        raise _invalid(f"{name} is a broken link") if entry.is_symlink() else changed()
    if not stat.S_ISREG(path.stat().st_mode):
        raise _invalid(f"{name} is not a regular file")
    return SourceFile(name, path)


def _unreadable(error: PermissionError) -> StageError:
    """Return the failure of a folder that may not be listed, or not entered: what it holds may then be listed alone."""
    return _invalid(f"uid {os.getuid()} cannot read the source: {error}; let it list and enter every folder")


def _invalid(message: str) -> StageError:
    return StageError(Reason.SOURCE_INVALID, message)
