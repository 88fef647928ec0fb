"""Finds the spans of work that determined the total time, and the gaps between them."""

from collections.abc import Sequence
from dataclasses import dataclass

SKEW_SECONDS = 0.05
"""How far apart two watches may deliver simultaneous events."""


@dataclass(frozen=True)
class Span:
    """A span of work; times are in seconds on one clock."""

    name: str
    start: float
    end: float

    @property
    def seconds(self) -> float:
        """The duration in seconds."""
        return self.end - self.start


def critical_path(spans: Sequence[Span], end: float) -> list[Span]:
    """Return the chain of spans that ends last before ``end``; each span ended last before the next one began.

    If stages run in parallel, the chain contains only the slowest of them.
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
    """Return the seconds before each span and after the last in which nothing of the path ran; none is negative."""
    starts = [*(span.start for span in path), end]
    ends = [start, *(span.end for span in path)]
    return [max(0.0, begun - ended) for ended, begun in zip(ends, starts, strict=True)]
