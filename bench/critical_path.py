"""Which spans of work decided how long it took, and what lay between them."""

from collections.abc import Sequence
from dataclasses import dataclass

SKEW_SECONDS = 0.05
"""Two watches may deliver what happened together this far apart."""


@dataclass(frozen=True)
class Span:
    """Something that was under way; times in seconds on one clock."""

    name: str
    start: float
    end: float

    @property
    def seconds(self) -> float:
        """How long it took."""
        return self.end - self.start


def critical_path(spans: Sequence[Span], end: float) -> list[Span]:
    """The chain that ends last before ``end``, each link being what ended last before the next one began.

    Where stages run in parallel, only the slowest of each is in the chain.
    """
    path: list[Span] = []
    left = list(spans)
    moment = end
    while earlier := [span for span in left if span.end <= moment + SKEW_SECONDS]:
        last = max(earlier, key=lambda span: span.end)
        left = [span for span in left if span.start < last.start]
        path.insert(0, last)
        moment = last.start
    return path


def gaps(path: Sequence[Span], start: float, end: float) -> list[float]:
    """Seconds in which nothing of the path was under way: before each span, and after the last; none is negative."""
    starts = [*(span.start for span in path), end]
    ends = [start, *(span.end for span in path)]
    return [max(0.0, begun - ended) for ended, begun in zip(ends, starts, strict=True)]
