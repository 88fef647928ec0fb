"""Takes the files that pip unpacked. A wheel's author chose their names and their content."""

import os
import shutil
import stat
from pathlib import Path

from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.contract.text import printable, shortened
from triton_converters.incoming import files

MOST_FILES = 200_000
"""The files and folders of all packages together."""
DEEPEST = 32
"""The folders of a package that lie in each other."""
QUOTED_BYTES = 200
"""Most of a path that a message quotes, so that the rest of it has room."""


def take(root: Path, name: str, target: Path) -> int:
    """Copy the regular files below ``root/name`` into the directory ``target``; return their size in bytes.

    Left out is what Python would run at its start, and what it would run in place of a source that can be read.

    Raises StageError: Crashed, for anything but files and directories, names that do not print, and more or deeper
    files than any package has; StorageFull, before anything is copied, if they do not fit.
    """
    names = _files(root, name)
    total = sum(os.lstat(root / each).st_size for each in names)
    files.check_room(total, target, root / name)
    for each in names:
        path = target / Path(each).relative_to(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        with files.open_file(root, each) as file, path.open("xb") as copied:
            shutil.copyfileobj(file, copied, files.COPY_BYTES)
            # Some packages bring programs that they start.
            path.chmod(0o755 if os.fstat(file.fileno()).st_mode & stat.S_IXUSR else 0o644)
    return total


def _files(root: Path, top: str) -> list[str]:
    """Return the path of every file that is taken, below ``root``."""
    found, folders, seen = [], [top], 0
    while folders:
        folder = folders.pop()
        if folder.count("/") > DEEPEST:
            raise _refused(folder, f"it lies more than {DEEPEST} folders deep")
        for name in files.names_in(root, folder, MOST_FILES - seen):
            path = f"{folder}/{name}"
            seen += 1
            mode = os.lstat(root / path).st_mode
            if not name.isprintable():
                raise _refused(path, "its name does not print")
            if stat.S_ISDIR(mode):
                folders += [path] if name != "__pycache__" else []
            elif not stat.S_ISREG(mode):
                raise _refused(path, "it is neither a file nor a directory")
            elif folder != top or not name.endswith(".pth"):
                found.append(path)
    return found


def _refused(path: str, why: str) -> StageError:
    quoted = shortened(printable(path), QUOTED_BYTES)
    return StageError(
        Reason.CRASHED, f"a package installed {quoted!r}, which is not published: {why}; choose another package"
    )
