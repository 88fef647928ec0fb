"""How much memory a server uses while it is measured."""

import re
import threading
from collections.abc import Callable
from types import TracebackType

POLL_SECONDS = 0.5
"""Triton takes new figures every two seconds by default (--metrics-interval-ms)."""
_MEBIBYTE = 2**20
_SAMPLE = re.compile(r"^nv_(gpu|cpu)_memory_used_bytes(?:\{.*\})? (\S+)$", re.MULTILINE)


def used_bytes(metrics: str) -> int:
    """In use by Triton's metrics: of all GPUs; where there is none, of the whole node; 0 where neither is told."""
    found: dict[str, float] = {}
    for device, figure in _SAMPLE.findall(metrics):
        found[device] = found.get(device, 0.0) + float(figure)
    return int(found.get("gpu") or found.get("cpu") or 0)


class MemoryWatch:
    """Asks again and again in a thread of its own, from enter to exit."""

    def __init__(self, used_memory: Callable[[], int] | None) -> None:
        """``used_memory``: bytes in use now, 0 where unknown; None: nobody to ask."""
        self._used_memory = used_memory
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._poll, daemon=True)
        self._peak = 0

    @property
    def peak(self) -> int:
        """Most bytes seen, in whole MiB; 0 where unknown."""
        return self._peak // _MEBIBYTE * _MEBIBYTE

    def __enter__(self) -> "MemoryWatch":
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
            if self._stop.wait(POLL_SECONDS):
                return
