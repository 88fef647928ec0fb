"""The file that a download has not completed: what came of it so far, and whether the claim has room for the rest."""

import json
import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.fetch.progress import Progress, StalledError, size

PART, STATE = "part", "part.json"
"""In the download's directory: the bytes that came so far, and what file they are of."""


@dataclass(frozen=True)
class Partial:
    """A file that is being downloaded."""

    place: Path
    """The directory that keeps what came."""
    url: str
    """What the file is called in the state, so without a signature."""
    name: str
    """What the file is called in the log and in messages."""
    listed: int | None = None
    """The bytes that the server's list says; None: it has none."""

    def have(self) -> tuple[str, int]:
        """Return the entity tag and the number of the bytes that are there; 0: none that can be gone on with."""
        try:
            state = json.loads((self.place / STATE).read_text(encoding="utf-8"))
            url, tag = str(state["url"]), str(state["tag"])
            return (tag, _size(self.place / PART)) if url == self.url and tag else ("", 0)
        except (OSError, ValueError, KeyError, TypeError):
            return "", 0

    def write(self, chunks: Iterable[bytes], tag: str, start: int, total: int | None) -> None:
        """Write what comes from byte ``start`` on.

        ``tag``: the file's strong entity tag; empty: none, so the bytes cannot be gone on with. ``total``: the file's
        bytes as its answer announces them; None: it does not. What is more than the server said is not written, and
        nothing of such a file is kept. Raises StageError.
        """
        part = self.place / PART
        name = self.name
        if total is not None and self.listed is not None and total > self.listed:
            raise self._other(f"has {total} bytes, but was listed with {self.listed}")
        total = self.listed if total is None else total
        if total is not None:
            check_room(self.place, total - _size(part))
        if not start:
            # Another version's bytes must be gone before the new tag is there: a killed process may stop in between.
            self.forget()
            part.write_bytes(b"")
        (self.place / STATE).write_text(json.dumps({"url": self.url, "tag": tag}), encoding="utf-8")
        progress = Progress(self.place, name, start, total)
        with part.open("r+b") as file:
            file.seek(start)
            try:
                for chunk in chunks:
                    if total is not None and file.tell() + len(chunk) > total:
                        raise self._other(f"goes on after the {total} bytes that the server announced")
                    file.write(chunk)
                    progress.add(len(chunk))
            except StalledError as error:
                raise StageError(Reason.SOURCE_UNREACHABLE, f"{name} comes too slowly: {error}", final=False) from None
        if total is not None and _size(part) != total:
            message = f"{name} has {_size(part)} bytes, but the server announced {total}"
            raise StageError(Reason.SOURCE_TRUNCATED, message, final=False)

    def forget(self) -> None:
        """Begin anew the next time."""
        (self.place / STATE).unlink(missing_ok=True)

    def _other(self, what: str) -> StageError:
        """Remove what came, and return the failure of a server that sends something else than it said."""
        self.forget()
        (self.place / PART).unlink(missing_ok=True)
        return StageError(Reason.SOURCE_TRUNCATED, f"{self.name} {what}", final=False)

    def complete(self, target: Path) -> None:
        """Give the file its name."""
        target.parent.mkdir(parents=True, exist_ok=True)
        os.rename(self.place / PART, target)
        self.forget()


def check_room(place: Path, needed: int) -> None:
    """Raise StageError(StorageFull) if the claim has less room than so many bytes."""
    free = shutil.disk_usage(place).free
    if needed > free:
        message = (
            f"the claim has {size(free)} left, and the download needs {size(needed)} more; enlarge the claim, or"
            " delete what is no longer needed"
        )
        raise StageError(Reason.STORAGE_FULL, message, final=False)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
