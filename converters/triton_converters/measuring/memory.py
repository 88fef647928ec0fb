"""The memory that a server uses while it is measured."""

import re
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

from triton_converters.measuring.settings import SETTINGS

_MEBIBYTE = 2**20
"""Unit of the peak: smaller steps say nothing."""
_SAMPLE = re.compile(r"^nv_(gpu|cpu)_memory_used_bytes(?:\{.*\})? (\S+)$", re.MULTILINE)


def used_bytes(metrics: str, device: str) -> int:
    """Return the bytes in use by Triton's metrics: of all GPUs if ``device`` is ``gpu``, else of the whole node.

    Return 0 if they are unknown. For a GPU whose memory it cannot read, such as a part of one (MIG), Triton writes 0 or
    nothing; a server uses more, so such a 0 is no figure, and the node's memory is another.
    """
    figures = [float(figure) for kind, figure in _SAMPLE.findall(metrics) if kind == device]
    return int(sum(figures)) if all(figures) else 0


class MemoryWatch:
    """Reads the memory in use repeatedly in its own thread, from enter to exit."""

    def __init__(self, used_memory: Callable[[], int] | None) -> None:
        """``used_memory``: returns the bytes in use now, 0 if unknown; None: nothing is read."""
        self._used_memory = used_memory
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._poll, daemon=True)
        self._peak = 0

    @property
    def peak(self) -> int:
        """Most bytes seen, rounded down to whole MiB; 0 if unknown."""
        return self._peak // _MEBIBYTE * _MEBIBYTE

    def __enter__(self) -> Self:
        if self._used_memory is not None:
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        if self._used_memory is not None:
            self._thread.join()

    def _poll(self) -> None:
        assert self._used_memory is not None
        while True:
            self._peak = max(self._peak, self._used_memory())
            if self._stop.wait(SETTINGS.memory_poll_seconds):
                return
