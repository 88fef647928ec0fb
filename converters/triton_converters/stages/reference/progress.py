"""How far the framework came: lines for the log, so that one sees a reference of many minutes go on."""

import time

LINE_SECONDS = 10.0
"""Seconds between two lines."""


class Progress:
    """The samples that the framework has answered."""

    def __init__(self, most: int) -> None:
        """``most``: the samples after which the reference ends, if the dataloader has so many."""
        self._most, self._samples = most, 0
        self._began = self._line_at = time.monotonic()
        print(f"reference: the framework answers samples, {most} at most", flush=True)

    def add(self, samples: int) -> None:
        """Count samples that were answered."""
        self._samples += samples
        if time.monotonic() - self._line_at >= LINE_SECONDS:
            self._line_at = time.monotonic()
            print(f"reference: {self._words()} so far, and it ends at {self._most}", flush=True)

    def end(self) -> None:
        """Tell that no more samples come."""
        print(f"reference: {self._words()}, which are all", flush=True)

    def _words(self) -> str:
        return f"{self._samples} samples answered in {time.monotonic() - self._began:.1f} s"
