"""What an object's text marks: what has to be filled in, what may fail, and what was left out. Pure."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

TODO = "TODO"
ADVICE = ("the largest batch", "check this choice")
"""What a first object marks although it runs as it is."""
WRITTEN = "# Written by `kubectl triton"
"""How a first object begins."""
_REMARK = re.compile(r"# (TODO|Check|Left out|Python steps are left out)\b")
_COMMENT = re.compile(r"(^|\s)# ?")
_VALUE = re.compile(r"[:,\[{-]\s*[\"']?TODO\b")


@dataclass(frozen=True)
class Mark:
    """A line with TODO."""

    line: int
    text: str
    is_needed: bool
    """Whether the object cannot run before it is filled in."""


def marks(text: str) -> Iterator[Mark]:
    """Yield the lines with TODO.

    It is needed as a value, and as a comment of a first object that still begins as `init` wrote it. Another comment is
    its author's own.
    """
    is_first = text.startswith(WRITTEN)
    for number, line in enumerate(text.splitlines(), 1):
        if TODO in line:
            is_value = _VALUE.search(_COMMENT.split(line, maxsplit=1)[0]) is not None
            is_open = is_first and "# TODO:" in line and not any(each in line for each in ADVICE)
            yield Mark(number, line.strip().removeprefix("# "), is_value or is_open)


def remarks(text: str) -> Iterator[str]:
    """Yield all that a first object says of what is missing: first what is needed, each in its order."""
    needed = [each.text for each in marks(text) if each.is_needed]
    yield from needed
    for line in text.splitlines():
        if _REMARK.search(line) and (said := line.strip().removeprefix("# ")) not in needed:
            yield said
