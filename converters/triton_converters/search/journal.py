"""The file of points: one JSON document on each line, written to disk before the next attempt.

Beside it, each attempt has a folder for perf_analyzer's files. A Job's client works on a copy in INCOMING_MOUNT, and
what is new there is added to the claim's file.
"""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from triton_converters.contract import layout
from triton_converters.contract.document import Document, DocumentError
from triton_converters.contract.results import Row, Tuning
from triton_converters.incoming import files, measured
from triton_converters.incoming.files import unfit
from triton_converters.search import plausible
from triton_converters.search.path import Setup
from triton_converters.search.space import LoadLevel, Space

FILE = "points.jsonl"
FOLDER = "search"
"""Folder of INCOMING_MOUNT with the copy."""
LIMIT_BYTES = 4 * 2**20
"""Longest copy that is read. A search of 240 points has some 200 KB."""
LINE_BYTES = 64 * 1024
"""Longest line that is added. One has the figures, a command line, and MESSAGE_BYTES at most of a refusal."""
MESSAGE_BYTES = 1000
"""Longest refusal of a configuration."""
_ATTEMPT = re.compile(r"\d{4,}")
KINDS = BEGAN, MEASURED, REPEATED, REFUSED, STOPPED = "began", "measured", "repeated", "refused", "stopped"
LONGEST_SECONDS = 86400.0
"""No attempt takes longer: the longest deadline of a Job."""


@dataclass(frozen=True)
class Entry(Document):
    """One attempt, or its outcome."""

    kind: str
    """``began``; then ``measured``, ``repeated`` (with longer windows), ``refused`` (the configuration, with any load)
    or ``stopped`` (the Job was asked to end, or failed for another reason). If nothing follows, it ended suddenly."""
    tuning: Tuning
    batch_size: int
    concurrency: int
    row: Row | None = None
    message: str = ""
    """Why the configuration was refused."""
    seconds: float = 0.0
    """How long the attempt took, in seconds, loading included."""
    command: str = ""
    """perf_analyzer's command line."""

    @property
    def point(self) -> Setup:
        """The point that the entry is about."""
        return Setup(self.tuning, LoadLevel(self.batch_size, self.concurrency))


class Journal:
    """The entries of a search's Jobs, which add to them."""

    def __init__(self, directory: Path) -> None:
        """Read the file in ``directory``, if there is one; cut off half a line that a killed Job left at its end."""
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self._path = directory / FILE
        content = self._path.read_bytes() if self._path.exists() else b""
        whole = _whole(content)
        if whole != content:
            os.truncate(self._path, len(whole))
        self.entries = [entry for line in whole.decode(errors="replace").splitlines() if (entry := _read(line))]

    def append(self, *entries: Entry) -> None:
        """Add lines; returns once they are on disk."""
        with self._path.open("ab") as file:
            file.write(b"".join(entry.to_json().encode() + b"\n" for entry in entries))
            file.flush()
            os.fsync(file.fileno())
        # A clean Job judges a directory by its age.
        os.utime(self.directory)
        self.entries += entries

    def attempt(self) -> Path:
        """Return the folder of the attempt that was begun last."""
        return self.directory / f"{len(self.entries):04}"

    def measured(self, point: Setup, kind: str = MEASURED) -> Entry | None:
        """Return the entry that holds a point's row, or None."""
        return next((each for each in self.entries if each.kind == kind and each.point == point), None)

    def refused(self, tuning: Tuning) -> Entry | None:
        """Return the entry that says why a configuration is refused, or None."""
        return next((each for each in self.entries if each.kind == REFUSED and each.tuning == tuning), None)

    def lost(self, tuning: Tuning) -> int:
        """Return how often the server or the Job ended suddenly with a configuration."""
        begun: dict[Setup, int] = {}
        for each in self.entries:
            if each.tuning == tuning:
                begun[each.point] = begun.get(each.point, 0) + 1 if each.kind == BEGAN else 0
        return sum(begun.values())


def copy(directory: Path, target: Path) -> None:
    """Copy the points of earlier parts of a search, if there are any, for a client to go on with."""
    target.mkdir()
    if (path := directory / FILE).exists():
        (target / FILE).write_bytes(_whole(path.read_bytes()))


def add(search: str, space: Space, incoming: Path) -> None:
    """Add to a search's directory what the client's copy in ``incoming`` has more.

    Nothing is added if another Job has added points since the copy was made. Raises StageError: Crashed for what is not
    published, StorageFull.
    """
    name = f"{FOLDER}/{FILE}"
    directory = layout.search_directory(search)
    if not files.exists(incoming, name):
        return
    content = _whole(files.read_file(incoming, name, LIMIT_BYTES))
    path = directory / FILE
    known = _whole(path.read_bytes()) if path.exists() else b""
    if not content.startswith(known):
        return
    lines = content[len(known) :].decode(errors="replace").splitlines()
    entries = [entry for line in lines if (entry := _read(line))]
    if len(entries) != len(lines):
        raise unfit(incoming / name, "a line of it is no point")
    _check(space, entries, incoming / name)
    # JSON may write a character in twelve.
    lengths = [len(entry.to_json()) for entry in entries]
    if max(lengths, default=0) > LINE_BYTES or len(known) + sum(lengths) + len(lengths) > LIMIT_BYTES:
        raise unfit(incoming / name, f"a line is longer than {LINE_BYTES} bytes, or all are than {LIMIT_BYTES}")
    Journal(directory).append(*entries)
    room = measured.MOST_FILES
    for attempt in filter(_ATTEMPT.fullmatch, files.names_in(incoming, FOLDER, measured.MOST_FILES)):
        if not (directory / attempt).exists():
            names = measured.measurements_in(incoming, f"{FOLDER}/{attempt}")
            room -= 1 + len(names)
            if room < 0:
                raise unfit(incoming / FOLDER, f"it holds more than {measured.MOST_FILES} files")
            (directory / attempt).mkdir()
            files.copy(incoming / FOLDER / attempt, names, directory / attempt)


def _check(space: Space, entries: Sequence[Entry], what: Path) -> None:
    """Raise StageError(Crashed) for an entry that no client of this search makes."""
    plausible.check_points(space, ((entry.tuning, entry.row) for entry in entries), what)
    for entry in entries:
        load = entry.point.load
        if entry.kind not in KINDS or load not in space.servable(entry.tuning):
            raise unfit(what, "an attempt in it was not asked for")
        if (entry.row is not None) != (entry.kind in (MEASURED, REPEATED)):
            raise unfit(what, f"an attempt in it is {entry.kind}, and its figures say otherwise")
        if entry.row is not None and LoadLevel(entry.row.batch_size, entry.row.concurrency) != load:
            raise unfit(what, "a figure in it is of another load than its attempt")
        if not 0 <= entry.seconds <= LONGEST_SECONDS:
            raise unfit(what, "an attempt in it cannot have taken that long")


def is_journal(directory: Path) -> bool:
    """Whether the directory holds nothing but a search's points, with the attempts' folders; every line is readable."""
    names = {path.name for path in directory.iterdir()}
    if any(name != FILE and not _ATTEMPT.fullmatch(name) for name in names) or FILE not in names:
        return False
    lines = (directory / FILE).read_bytes().decode(errors="replace").split("\n")[:-1]
    return all(_read(line) for line in lines)


def _whole(content: bytes) -> bytes:
    """Return the lines that have an end."""
    return content[: content.rfind(b"\n") + 1]


def _read(line: str) -> Entry | None:
    """Return a line's entry; None if it is not one, and is then measured again."""
    try:
        return Entry.from_json(line)
    except DocumentError:
        return None
