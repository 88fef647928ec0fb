"""What is read of a file or folder to tell what it is: its first bytes, and the names in it."""

import os
import zipfile
import zlib
from dataclasses import dataclass
from functools import cached_property
from io import FileIO
from pathlib import Path

from triton_converters.found import protobuf

HEAD = 4096
"""Bytes that are read of a file's beginning: enough for the names that a pickle or a text begins with."""
TAIL = 8
ZIP = b"PK\x03\x04"
ZLIB = (b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda")
"""How a file of joblib begins that is compressed, by the level of compression."""
MOST_NAMES = 10_000
"""Names of a folder that are read."""
LONGEST_DIRECTORY = 8 * 2**20
"""Bytes of a zip's list of names that are read; in memory it takes some ten times as many. Weights of 50,000 tensors
have half of it."""


@dataclass(frozen=True)
class Content:
    """A file or folder. Its properties raise OSError."""

    path: Path

    @cached_property
    def is_folder(self) -> bool:
        """Whether the path is that of a folder, which has no bytes."""
        return self.path.is_dir()

    @cached_property
    def head(self) -> bytes:
        """The first bytes; of what zlib compressed, those that it holds."""
        if self.is_folder:
            return b""
        with self.path.open("rb") as file:
            head = file.read(HEAD)
        if not head.startswith(ZLIB):
            return head
        try:
            return zlib.decompressobj().decompress(head, HEAD)
        except zlib.error:
            return head

    @cached_property
    def tail(self) -> bytes:
        """The last bytes."""
        if self.is_folder:
            return b""
        with self.path.open("rb") as file:
            file.seek(max(0, self.size - TAIL))
            return file.read(TAIL)

    @cached_property
    def size(self) -> int:
        """Number of bytes."""
        return self.path.stat().st_size

    @cached_property
    def text(self) -> str:
        """The beginning of a text, without spaces before it; empty: it is no text."""
        if b"\0" in self.head:
            return ""
        return self.head.decode("utf-8-sig", errors="ignore").lstrip()

    @cached_property
    def fields(self) -> protobuf.Fields:
        """The fields of a protobuf, which is read once for all that ask; a folder and anything else have none."""
        return protobuf.NO_FIELDS if self.is_folder else protobuf.fields_of(self.path)

    @cached_property
    def names(self) -> frozenset[str]:
        """The names in a folder, or in a zip archive, with and without the top folder that torch.save adds."""
        if self.is_folder:
            with os.scandir(self.path) as entries:
                return frozenset(each.name for _, each in zip(range(MOST_NAMES), entries, strict=False))
        names = self._listed or ()
        return frozenset(names) | {name.partition("/")[2] for name in names}

    @property
    def is_cut(self) -> bool:
        """Whether a zip archive lacks its list of names, which is at its end."""
        return self.head.startswith(ZIP) and self._listed is None

    @cached_property
    def _listed(self) -> list[str] | None:
        """The names that a zip archive lists, none if they are too many; None: there is no list."""
        if not self.head.startswith(ZIP):
            return None
        try:
            with _ReadInPieces(self.path) as file, zipfile.ZipFile(file) as archive:
                return archive.namelist()
        except zipfile.BadZipFile:
            return None
        except (NotImplementedError, ValueError):
            return []


class _ReadInPieces(FileIO):
    """A file that gives no longer piece than LONGEST_DIRECTORY: zipfile reads a list of names in one."""

    def read(self, size: int | None = -1, /) -> bytes:
        """Return the next bytes; raises ValueError for too many."""
        if size is not None and size > LONGEST_DIRECTORY:
            raise ValueError(f"it has more than {LONGEST_DIRECTORY} bytes of names")
        return super().read(size)
