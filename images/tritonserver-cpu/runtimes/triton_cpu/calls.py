"""The count of a runtime's own calls, as a metric of the server."""

import threading
from collections.abc import Callable

PERIOD_SECONDS = 1.0


class CallCounter:
    """Counts calls here, and adds them to the server's metric once a second.

    An increment of a metric takes a round trip to the server (50 microseconds were measured), which would be
    part of every measured latency.
    """

    def __init__(self, add: Callable[[int], None]) -> None:
        """Start counting; `add` increments the metric."""
        self.total = 0
        self._add = add
        self._reported = 0
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._report, name="call-counter", daemon=True)
        self._thread.start()

    def count(self) -> None:
        """Count one call."""
        self.total += 1

    def close(self) -> None:
        """Report what is left and stop."""
        self._closed.set()
        self._thread.join()

    def _report(self) -> None:
        closed = False
        while not closed:
            closed = self._closed.wait(PERIOD_SECONDS)
            total = self.total
            if total > self._reported:
                self._add(total - self._reported)
                self._reported = total
