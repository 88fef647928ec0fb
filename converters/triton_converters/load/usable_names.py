"""Whether the names of a model's tensors can stand in a config.pbtxt, and apart from each other. Pure."""

from collections import Counter
from collections.abc import Sequence

LONGEST = 240
"""Characters of a name; frameworks' own have some 50."""
SHOWN = 60
"""Characters of a name that a message shows."""


def fault(inputs: Sequence[str], outputs: Sequence[str], may_share: bool = False) -> str:
    """Return what is wrong with the names, and what to do; empty: nothing.

    ``may_share``: whether an output may have the name of an input, as a Python step's may.
    """
    for side, names in (("input", inputs), ("output", outputs)):
        if not names:
            return f"it has no {side}: only a model with inputs and outputs can be served"
        twice = [name for name, count in Counter(names).items() if count > 1]
        if twice:
            return f"it has the {side} {_shown(twice[0])} twice: give each its own name"
        for name in names:
            if not 0 < len(name) <= LONGEST or not name.isprintable():
                return f"the name of {side} {_shown(name)} must have 1 to {LONGEST} printable characters: rename it"
    if (both := set(inputs) & set(outputs)) and not may_share:
        return (
            f"{_shown(min(both))} is an input and an output: give the output its own name, which a node or a layer"
            " that returns its input (Identity) can have"
        )
    return ""


def _shown(name: str) -> str:
    return ascii(name) if len(name) <= SHOWN else f"{name[:SHOWN]!a}..."
