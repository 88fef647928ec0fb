"""A folder in a tar archive that a server sent. Nothing about it is trusted: neither names, nor kinds, nor sizes."""

import contextlib
import gzip
import shutil
import tarfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO

from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.fetch.folder import MOST_FILES, File, NameRefusedError
from triton_converters.fetch.partial import check_room
from triton_converters.fetch.remote import wanted

GZIP = b"\x1f\x8b"
REMOVED, OPAQUE = ".wh.", ".wh..opq"
"""How the name begins by which a layer removes a file of another one, and what follows in the name that removes all of
a folder (OCI image specification, layer.md)."""
UNREADABLE = (tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError, IndexError, ValueError, OverflowError)
"""What reading an archive that is none may raise."""
COPY_BYTES = 2**20
"""Most that is read at once. tarfile would read an extended header of any announced size into memory."""
MOST_HEADER_BYTES = 2**16
"""Most that is read of all headers of one member: their extended ones, and the map of a sparse file."""
MOST_MEMBERS = 2 * MOST_FILES
"""Names in an archive: as many folders and links as there may be files."""


def unpack(archive: Path, root: Path, folder: str, include: tuple[str, ...]) -> set[str]:
    """Write the wanted files of an archive, which all lie in ``folder``, below ``root``; return their paths there.

    Only files and directories are taken: a link or a device fails the whole archive. Raises StageError(SourceInvalid,
    StorageFull).
    """
    try:
        with _opened(archive) as (tar, bounded):
            files = _write(tar, bounded, root, lambda member: _below(member.name, folder), include)
            if not files:
                raise _RefusedError("no file")
            return {name for name in files if wanted(name, include)}
    except UNREADABLE as error:
        message = f"the archive of {folder} is not a tar of that folder with files alone{_why(error)}"
        raise StageError(Reason.SOURCE_INVALID, f"{message}; push the folder again") from None


def unpack_layer(archive: Path, root: Path, folders: Mapping[str, str], include: tuple[str, ...]) -> set[str]:
    """Write what a layer of an image has in some folders at its root; return the files' paths below ``root``.

    ``folders``: what each of these folders is called there; empty: its files lie in ``root``. Directories are kept also
    if they are empty. All else is left out, and may be anything; but in these folders a link, a device, or a mark of a
    file that is removed fails the whole layer, and so does a file that is there already. Raises
    StageError(SourceInvalid, StorageFull).
    """

    def locate(member: tarfile.TarInfo) -> str:
        first, *others = member.name.removeprefix("./").rstrip("/").split("/")
        if member.name.startswith("/") or ".." in (first, *others):
            raise _RefusedError("a path that leads elsewhere")
        is_removed = any(each.startswith(REMOVED) for each in (first, *others))
        if is_removed and (first in folders or first.removeprefix(REMOVED) in (*folders, OPAQUE)):
            raise _RefusedError("the mark of a file that is removed")
        if first in folders and not others and not member.isdir():
            raise _RefusedError(f"{first} that is no folder")
        return "/".join(filter(None, (folders[first], *others))) if first in folders else ""

    try:
        with _opened(archive) as (tar, bounded):
            return _write(tar, bounded, root, locate, include, keeps_folders=True)
    except UNREADABLE as error:
        message = f"a layer of the image is not a tar with plain files{_why(error)}; build the image without that"
        raise StageError(Reason.SOURCE_INVALID, message) from None


@contextlib.contextmanager
def _opened(archive: Path) -> Iterator[tuple[tarfile.TarFile, "_Bounded"]]:
    with archive.open("rb") as file:
        compressed = file.read(len(GZIP)) == GZIP
        file.seek(0)
        content: IO[bytes] = gzip.GzipFile(fileobj=file) if compressed else file  # type: ignore[assignment]  # a GzipFile reads as one
        bounded = _Bounded(content)
        with tarfile.open(fileobj=bounded, mode="r:") as tar:  # type: ignore[call-overload]  # a reader of ours
            yield tar, bounded


def _why(error: BaseException) -> str:
    return f": it holds {error}" if isinstance(error, _RefusedError | NameRefusedError) else ""


def _write(
    tar: tarfile.TarFile,
    bounded: "_Bounded",
    root: Path,
    locate: Callable[[tarfile.TarInfo], str],
    include: tuple[str, ...],
    *,
    keeps_folders: bool = False,
) -> set[str]:
    """Write the wanted files below ``root``, and return the paths of all.

    ``locate``: returns a member's path below ``root``; empty: it is left out. With ``keeps_folders`` no file may be
    there before.
    """
    files: set[str] = set()
    for count, member in enumerate(iter(tar.next, None)):
        # It would keep every member, with all that its headers say.
        tar.members, tar.pax_headers = [], {}  # type: ignore[attr-defined]  # no stub has them
        if count >= MOST_MEMBERS:
            raise _RefusedError(f"more than {MOST_MEMBERS} names")
        bounded.left = MOST_HEADER_BYTES
        if member.isdir() and not keeps_folders:
            continue
        path = locate(member)
        if not path:
            continue
        name = File(path, member.size).name
        if member.isdir():
            _make(root / name)
            continue
        if not member.isreg() or member.issparse():
            raise _RefusedError("a link, a device or a sparse file")
        if name in files or (keeps_folders and (root / name).exists()):
            raise _RefusedError("two files with one name")
        files.add(name)
        if not wanted(name, include):
            continue
        check_room(root.parent, member.size)
        content = tar.extractfile(member)
        assert content is not None
        target = root / name
        _make(target.parent)
        if target.is_dir():
            raise _RefusedError("a file with the name of a folder")
        target.unlink(missing_ok=True)
        with target.open("xb") as file:
            bounded.left = None
            shutil.copyfileobj(content, file, COPY_BYTES)
            bounded.left = MOST_HEADER_BYTES
        if target.stat().st_size != member.size:
            raise _RefusedError("a file that ends too early")
    return files


def _make(folder: Path) -> None:
    """Make a folder, unless a file has its name."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise _RefusedError("a file with the name of a folder") from None


def _below(name: str, folder: str) -> str:
    """Return a member's path below the source; raises ValueError if it does not lie in the folder.

    Some programs repeat the folder's whole path in the archive, others its last name.
    """
    name = name.removeprefix("./")
    for prefix in (folder, folder.rpartition("/")[2]):
        if name.startswith(f"{prefix}/"):
            return folder + name.removeprefix(prefix)
    raise _RefusedError("a file that lies elsewhere")


class _RefusedError(ValueError):
    """What no folder holds."""


class _Bounded:
    """A file of which no more than COPY_BYTES is read at once."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.left: int | None = MOST_HEADER_BYTES
        """What may still be read; None: anything."""
        self.seek, self.tell = file.seek, file.tell

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= COPY_BYTES:
            raise tarfile.ReadError("more than a header has")
        if self.left is not None:
            self.left -= size
            if self.left < 0:
                raise tarfile.ReadError("more than all headers of a file have")
        return self._file.read(size)
