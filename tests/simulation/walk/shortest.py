"""Delta debugging: leave out whatever can be left out so that a walk still fails in the same way."""

import re
from collections.abc import Callable, Sequence
from typing import Any

Step = tuple[str, Any]
Why = Callable[[Sequence[Step]], str]


def shortest(steps: Sequence[Step], why: Why) -> tuple[tuple[Step, ...], str]:
    """Return the shortest list found that fails like the whole one does, and how it fails.

    ``why``: how a list of steps fails; empty: it does not.
    """
    kept, said = list(steps), why(steps)
    wanted, size = _kind(said), max(1, len(steps) // 2)
    while size:
        left_out = False
        for start in reversed(range(0, len(kept), size)):
            fewer = kept[:start] + kept[start + size :]
            found = why(fewer)
            if _kind(found) == wanted:
                kept, said, left_out = fewer, found, True
        if not left_out or size > 1:
            size //= 2
    return tuple(kept), said


def _kind(words: str) -> str:
    """The words without names and numbers, so that one fault is not taken for another."""
    return re.sub(r"digits-\w+|[0-9a-f]{8,}|\d+", "", words)[:60]
