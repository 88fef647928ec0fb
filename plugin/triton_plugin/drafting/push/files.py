"""The files of a folder that are pushed, their digest, and what is left out."""

import hashlib
import os
import stat
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from triton_converters.contract import uris
from triton_plugin.drafting.push.receiver import digest_of
from triton_plugin.errors import FolderError
from triton_plugin.reading.hub_names import HUB

IGNORED = frozenset({".git", "__pycache__", ".DS_Store", "lost+found", ".triton-operator"})
BLOBS, SNAPSHOTS = "blobs", "snapshots"
"""Folders of a model in a Hugging Face cache: the content of its files, and links to it under the files' names."""
SHARED = ".huggingface-shared-blobs"
"""Marks the folder of a cache with the content that models share, to which their own blobs link (huggingface_hub 2)."""
TOKENS = frozenset({"token", "stored_tokens"})
"""Files of a folder `huggingface` with who may read what in the hub: it is a HF_HOME of somebody's, too."""
CHUNK = 1 << 20
"""Bytes that are sent at once, so that progress is seen, and a file of any size needs little memory."""


@dataclass(frozen=True)
class PushedFile:
    """A regular file."""

    name: str
    """Path below the folder, with slashes."""
    path: Path
    """Path to read it from, with links resolved."""
    size: int
    """In bytes."""


@dataclass(frozen=True)
class Files:
    """What is pushed."""

    files: tuple[PushedFile, ...]
    left_out: tuple[str, ...]
    """Path below the folder and the reason, in words, of each file or directory that is not pushed."""

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)


def collect(path: Path) -> Files:
    """List the files of a folder, or the one file.

    Raises FolderError: nothing to push, a name that is refused, or a link to a file outside the folder.
    """
    if path.is_file():
        return Files((_file(path.resolve(), path.name),), ())
    if not path.is_dir():
        raise FolderError(f"{path} is neither a folder nor a file")
    files: list[PushedFile] = []
    left_out: list[str] = []
    root = path.resolve()
    # (directory to list, its name below the root, the real directories above it)
    pending: list[tuple[Path, str, tuple[Path, ...]]] = [(root, "", (root,))]
    while pending:
        directory, prefix, above = pending.pop()
        for entry in sorted(directory.iterdir()):
            # Path.resolve raises an error for links that lead to each other.
            name, real = prefix + entry.name, Path(os.path.realpath(entry))
            if entry.name in IGNORED or entry.name.startswith(".."):
                left_out.append(name)
            elif entry.name in TOKENS and HUB in (Path(name).parent.name, directory.name):
                left_out.append(f"{name} (a token of the Hugging Face hub)")
            elif _is_doubled(entry):
                left_out.append(f"{name} (what links in snapshots lead to is sent in their place)")
            elif reason := _left_out(entry, real, root, above):
                left_out.append(f"{name} ({reason})")
            elif real.is_dir():
                pending.append((real, f"{name}/", (*above, real)))
            else:
                files.append(_file(real, name))
    if not files:
        raise FolderError(f"{path} holds no file to push")
    return Files(tuple(sorted(files, key=lambda file: os.fsencode(file.name))), tuple(sorted(left_out)))


def digest(files: Iterable[PushedFile], read: Callable[[int], None]) -> str:
    """Return the digest that the source Job computes of the files; ``read`` is told of each part's bytes."""
    return digest_of({file.name: _sha256(file, read) for file in files})


def _sha256(file: PushedFile, read: Callable[[int], None]) -> str:
    found = hashlib.sha256()
    with file.path.open("rb") as content:
        while part := content.read(CHUNK):
            found.update(part)
            read(len(part))
    return found.hexdigest()


def _left_out(entry: Path, real: Path, root: Path, above: tuple[Path, ...]) -> str:
    """Return why an entry is not pushed; empty if it is. Raises FolderError for a link to a file outside the folder."""
    if not real.is_relative_to(root) and not _is_of_revision(real, root):
        link = f"a link to {entry.readlink()}, outside the folder"
        if real.is_file():
            # It may be the model; and who wrote the link may want a file that the sender did not mean to send.
            raise FolderError(f"{entry} is {link}: copy the file into the folder in its place, or delete the link")
        return link
    if not real.exists():
        return "a broken link"
    if real in above:
        return "a link to a folder that contains it"
    return "" if real.is_dir() or stat.S_ISREG(real.stat().st_mode) else "neither a file nor a folder"


def _is_of_revision(file: Path, root: Path) -> bool:
    """Whether a file is a blob of a Hugging Face cache, and the folder is a revision of a model in that cache."""
    if root.parent.name != SNAPSHOTS or not file.is_file():
        return False
    model = root.parents[1]
    store = model.parent / BLOBS
    return file.parent == model / BLOBS or (file.parent.parent == store and (store / SHARED).is_file())


def _is_doubled(entry: Path) -> bool:
    """Whether an entry is a folder to which the snapshots of a Hugging Face cache lead."""
    is_of_model = "--" in entry.parent.name and (entry.parent / SNAPSHOTS).is_dir()
    return entry.name == BLOBS and (is_of_model or (entry / SHARED).is_file())


def _file(path: Path, name: str) -> PushedFile:
    if uris.UNSPEAKABLE.search(name):
        raise FolderError(f"{name!r} has a backslash or a control character in its name; rename it")
    return PushedFile(name, path, path.stat().st_size)
