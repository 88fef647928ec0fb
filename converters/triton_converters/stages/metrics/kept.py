"""How much of what the user's metrics file gives is kept. All of it fits into one document, whatever it gives."""

from collections.abc import Collection, Sequence

from triton_converters.contract.text import printable, shortened

METRICS = 64
"""Most metrics that are kept."""
NAME_CHARACTERS = 63
"""Longest name that a threshold may have; a metric with a longer one is not kept."""
MESSAGE_BYTES = 200
"""Longest message of a candidate: all candidates share the termination message."""


def names(given: Collection[str], required: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the metrics to keep, sorted: those with a threshold, and then the first ones."""
    known = {name for name in given if 0 < len(name) <= NAME_CHARACTERS and name.isprintable()}
    first = [name for name in required if name in known]
    return tuple(sorted([*first, *sorted(known.difference(first))][:METRICS]))


def message(text: str) -> str:
    """Return what is kept of a failure's words."""
    return shortened(printable(text), MESSAGE_BYTES)
