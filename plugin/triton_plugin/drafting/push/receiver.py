"""The program in the pod that receives the files. Standard library only: any image with Python 3.11 can run it.

    python3 receiver.py room FOLDER             prints how many bytes the file system of the folder has free
    python3 receiver.py receive FOLDER DIGEST   puts the tar on standard input in the folder's place

It answers with one JSON object, or with exit status 1 and a message on standard error.
"""

import hashlib
import json
import os
import shutil
import sys
import tarfile
import tempfile
import time
from pathlib import Path

TEMPORARY = ".push-"
"""How the names of temporary directories begin, which lie next to the folder."""
LIFETIME_SECONDS = 4 * 3600
"""The pod's deadline: what is older was left by a pod that was killed."""


def digest_of(hashes: dict[str, str]) -> str:
    """Return the digest of a directory, as docs/source.md defines it, from the SHA-256 of its files by their paths."""
    lines = [f"{hashes[name]}  ".encode() + os.fsencode(name) + b"\n" for name in sorted(hashes, key=os.fsencode)]
    return hashlib.sha256(b"".join(lines)).hexdigest()


def room(folder: Path) -> int:
    """Return the free bytes of the file system on which the folder lies or will lie."""
    existing = next(each for each in (folder, *folder.parents) if each.is_dir())
    system = os.statvfs(existing)
    return system.f_bavail * system.f_frsize


def receive(folder: Path, digest: str) -> bool:
    """Put the files of the tar on standard input in the folder's place, and return whether something was there.

    Until all files are written and have the digest, the folder stays as it was. Raises ValueError if they have another
    one, OSError or tarfile.TarError.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    _remove_leftovers(folder.parent)
    work = Path(tempfile.mkdtemp(prefix=TEMPORARY, dir=folder.parent))
    try:
        new = work / "new"
        new.mkdir()
        with tarfile.open(fileobj=sys.stdin.buffer, mode="r|") as tar:
            tar.extractall(new, filter="data")
        found = digest_of(
            {path.relative_to(new).as_posix(): _stored(path) for path in new.rglob("*") if path.is_file()}
        )
        if found != digest:
            raise ValueError("the files did not arrive as they were sent; push again")
        return _replace(folder, new, work / "old")
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _stored(path: Path) -> str:
    """Return the SHA-256 of a file that is on the disk."""
    with path.open("rb") as content:
        os.fsync(content.fileno())
        return hashlib.file_digest(content, "sha256").hexdigest()


def _replace(folder: Path, new: Path, old: Path) -> bool:
    """Rename ``new`` to the folder, and what was there to ``old``; returns whether something was there."""
    existed = os.path.lexists(folder)
    if existed:
        folder.rename(old)
    try:
        new.rename(folder)
    except OSError:
        if existed:
            old.rename(folder)
        raise
    return existed


def _remove_leftovers(parent: Path) -> None:
    for path in parent.glob(f"{TEMPORARY}*"):
        if path.stat().st_mtime < time.time() - LIFETIME_SECONDS:
            shutil.rmtree(path, ignore_errors=True)


def main(arguments: list[str]) -> int:
    """Run a command; returns the exit status."""
    command, folder, *others = arguments
    try:
        if command == "room":
            answer: dict[str, object] = {"free": room(Path(folder))}
        else:
            answer = {"replaced": receive(Path(folder), others[0])}
    except (OSError, ValueError, tarfile.TarError) as error:
        print(error, file=sys.stderr)
        return 1
    print(json.dumps(answer))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
