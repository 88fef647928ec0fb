"""What a model's graph declares of its inputs."""

import re
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy

from triton_converters.claim_store.dump import Arrays

FLAGS = 2
"""The limit of integers of which nothing is known: 0 and 1 are the likeliest to be valid."""
AMOUNTS = ("uint8", "int8", "uint16", "int16")
"""Types of pixels and of sounds."""
MASK = re.compile("[Mm]asks?(?![a-z])|MASK")
"""What the name of a mask has; ``masked_image`` is none."""


@dataclass(frozen=True)
class GraphInput:
    """One input."""

    name: str
    type: str
    """NumPy's name of the type; ``str``: text."""
    dims: tuple[int | str, ...]
    """All dimensions, the batch included. A size that the graph leaves open is a name; equal names have equal sizes."""
    limit: int = FLAGS
    """Integers are below it."""
    points: tuple[tuple[float, ...], ...] = ()
    """Where each column of a table lies, as far as the graph tells: numbers in order, between each two of which lie as
    many rows; none: nothing is known."""
    special: tuple[int, ...] = ()
    """Integers that the graph asks for, such as the one that ends a text."""
    categories: tuple[tuple[str | float, ...], ...] = ()
    """What each column of a table may hold, in words or numbers, as far as the graph tells; none: nothing is known."""
    most: int = 0
    """The limit up to which integers are tried, since numbers made of them choose among about as many rows; 0: none."""

    @property
    def is_table(self) -> bool:
        """Whether the input holds numbers whose columns are known, and no integers that choose something."""
        return bool(self.points or self.categories) and self.limit == FLAGS and self.type not in ("bool", "str")

    @property
    def is_mask(self) -> bool:
        """Whether the input seems, by its name, to hide a part of others: 0 hides, and 1 does not."""
        return bool(MASK.search(self.name))

    @property
    def is_flags(self) -> bool:
        """Whether the input holds integers or truth values of which nothing is known, or is a mask of any type."""
        is_unknown = self.limit == FLAGS and not self.is_table and self.type != "str"
        return is_unknown and (self.is_mask or not self.type.startswith("float"))

    @property
    def is_amounts(self) -> bool:
        """Whether the input holds small integers that choose and hide nothing: most are pixels or a sound."""
        return self.is_flags and self.type in AMOUNTS and not self.is_mask

    @property
    def may_choose(self) -> bool:
        """Whether only the model knows how large the integers may be that the input holds."""
        is_index = self.most > FLAGS and "int" in self.type
        return is_index and not (self.is_table or self.is_mask or self.is_lengths)

    @property
    def is_lengths(self) -> bool:
        """Whether the input seems to hold lengths of sequences: integers, one a sample, with "len" in the name."""
        counts = self.is_flags and self.type != "bool" and not self.is_mask
        return counts and "len" in self.name.lower() and all(size == 1 for size in self.dims[1:])


@runtime_checkable
class DeclaresInputs(Protocol):
    """A Framework whose model is a graph with the types and shapes of its inputs."""

    @property
    def declared(self) -> tuple[GraphInput, ...]:
        """The inputs in the model's own order; none for a graph that leaves a type or rank open."""


@runtime_checkable
class KnowsRows(Protocol):
    """A Framework that knows which rows of a table show what it has learned."""

    @property
    def leaves(self) -> tuple[int, int] | None:
        """How many leaves the rows have reached that were asked so far, and how many there are; None: no trees."""

    def rows(self, count: int, random: numpy.random.Generator) -> Arrays:
        """Return inputs of so many samples that reach as many leaves as they can."""
