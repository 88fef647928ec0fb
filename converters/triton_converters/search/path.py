"""A search as a path through its space: it says which point comes next, and is told that point's row. Pure.

A path never asks for a point twice and depends on nothing but the rows it is told. So a search that was interrupted
goes on by walking its path anew: what was measured answers for itself until the first point that nobody measured.
"""

from collections.abc import Callable, Generator
from contextlib import suppress
from typing import NamedTuple

from triton_converters.contract.results import Row, Tuning
from triton_converters.search.space import Load


class Point(NamedTuple):
    """A configuration and the load it is measured with."""

    tuning: Tuning
    load: Load


Path = Generator[Point, Row | None, None]
"""Gives points, takes their rows; None: the configuration cannot be served."""


def follow(path: Path, answer: Callable[[Point], Row | None]) -> None:
    """Walk a path to its end; whatever ``answer`` raises ends the walk."""
    with suppress(StopIteration):
        point = next(path)
        while True:
            point = path.send(answer(point))
