"""A search as a path through its space: it yields the next point, and is sent that point's row. Pure.

A path never yields a point twice and depends only on the rows that it is sent. So an interrupted search continues by
walking its path again: measured points are answered from the journal, until the first point that is not measured.
"""

from collections.abc import Callable, Generator
from contextlib import suppress
from typing import NamedTuple

from triton_converters.contract.results import Row, Tuning
from triton_converters.search.space import LoadLevel


class Setup(NamedTuple):
    """A configuration and the load it is measured with."""

    tuning: Tuning
    load: LoadLevel


SearchPath = Generator[Setup, Row | None, None]
"""Yields points and is sent their rows; None: the configuration cannot be served."""


def follow(path: SearchPath, answer: Callable[[Setup], Row | None]) -> None:
    """Walk a path to its end; any exception of ``answer`` ends the walk."""
    with suppress(StopIteration):
        point = next(path)
        while True:
            point = path.send(answer(point))
