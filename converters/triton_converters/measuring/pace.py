"""How long the points that are left take, corrected by what those before them took."""

from dataclasses import dataclass

MINUTE, HOUR = 60, 3600
SHORT = 2
"""Units below which a time is given in the next smaller unit: 90 s, not 2 min."""


@dataclass
class Pace:
    """What ended points took, against what was computed from one request alone.

    A node that others keep busy is slower than one request shows. One object lasts for all sweeps of a server.
    """

    computed_seconds: float = 0.0
    actual_seconds: float = 0.0
    sample_seconds: float = 0.0
    """What a request of one sample took by the first point that had one in flight; 0.0: there was none."""

    def ended(self, computed: float, actual: float) -> None:
        """Add a point, with the seconds that were computed for it and those that it took."""
        self.computed_seconds += computed
        self.actual_seconds += actual

    def seconds(self, computed: float) -> float:
        """Return how long takes what was computed to take so long."""
        return computed * self.actual_seconds / self.computed_seconds if self.computed_seconds else computed


def in_words(seconds: float) -> str:
    """Return a time as `45 s`, `12 min` or `3.5 h`."""
    if seconds < SHORT * MINUTE:
        return f"{seconds:.0f} s"
    return f"{seconds / MINUTE:.0f} min" if seconds < SHORT * HOUR else f"{seconds / HOUR:.1f} h"
