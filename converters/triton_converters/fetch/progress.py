"""How far a download came: lines for the log, and an end to one that hardly moves."""

import os
import time
from pathlib import Path

from triton_converters.contract.text import printable

LINE_SECONDS = 10.0
STALL_SECONDS = 60.0
"""How long a download may take for STALL_BYTES, in seconds."""
STALL_BYTES = 64 * 1024
"""Bytes that must come in STALL_SECONDS. A server that sends fewer would keep a Job until its deadline."""


class StalledError(Exception):
    """Fewer than STALL_BYTES came in STALL_SECONDS."""


class Progress:
    """The progress of one file. It also keeps its directory young, which the clean Job would remove after a day."""

    def __init__(self, place: Path, name: str, have: int, total: int | None) -> None:
        """``have``: bytes that are there already. ``total``: the file's bytes; None: not known."""
        self._place = place
        self._name = printable(name)
        self._have = have
        self._total = total
        self._line_at = self._moved_at = time.monotonic()
        self._moved = have
        self._say()

    def add(self, count: int) -> None:
        """Count bytes that came; raises StalledError if they come too slowly."""
        self._have += count
        now = time.monotonic()
        if self._have - self._moved >= STALL_BYTES:
            self._moved, self._moved_at = self._have, now
        elif now - self._moved_at > STALL_SECONDS:
            raise StalledError(f"fewer than {STALL_BYTES} bytes came in {STALL_SECONDS:g} s")
        if now - self._line_at >= LINE_SECONDS:
            self._line_at = now
            self._say()

    def _say(self) -> None:
        os.utime(self._place)
        share = f" of {size(self._total)} ({100 * self._have // max(self._total, 1)} %)" if self._total else ""
        print(f"download {self._name}: {size(self._have)}{share}", flush=True)


def size(count: int) -> str:
    """Return a number of bytes in words, such as 1.5 GiB."""
    value = float(count)
    unit = "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if value < 1024:
            break
        value /= 1024
        unit = larger
    return f"{count} B" if unit == "B" else f"{value:.1f} {unit}"
