"""Values that are rare: a flag that is never raised must not pass because most samples lack it. Pure NumPy.

The share of elements that may differ is for near ties, and these lose few of any kind. So of the elements that have
one value, at least half must be right; and of those that have not the most frequent value, too. In an output with few
elements, each place is judged alone. In one with many, ``gates.exact`` tells background from the rest in each sample,
and a value is judged over all places: the smallest class of a picture must not be lost. A place that is wrong in most
samples, such as the last tag of every sentence, is lost in an output of any size.
"""

import hashlib
import math
from dataclasses import dataclass, field
from typing import Any

import numpy

from triton_converters.claim_store.dump import Array
from triton_converters.gates.exact import FEWEST, Part
from triton_converters.model_config.data_types import objects

TIES = 2
"""Elements of one value that must be in a place before they are judged alone: one may be a near tie."""
ENOUGH = 16
"""Elements of one value in all places together before they are judged: between two classes, many are near ties."""
OFTEN = 6
"""Samples in which one place of many must be wrong before it is lost. Of elements that differ by chance, which may be
1 %, one in 10^12 is wrong so often in six samples, and pictures have 10^7 elements."""
LONGEST_WORD = 256
"""Bytes of a value that is kept as it is."""
MOST_VALUES = 1000
"""Values of an output that are counted. One that has more holds no classes."""


@dataclass
class Rare:
    """The values of an output that is no floating point, in each place of a sample and in all, over all samples."""

    shape: tuple[int, ...] | None = None
    """The shape of the first sample; in those of other shapes, places are not judged."""
    places: list[dict[Any, Part]] = field(default_factory=list)
    """How many elements have a value, and how many of these differ, in each place."""
    aligned: tuple["_Aligned", "_Aligned"] = field(default_factory=lambda: (_Aligned(1), _Aligned(-1)))
    """How often each place differs, counted from a sample's first element, and from its last one."""
    everywhere: dict[Any, Part] | None = field(default_factory=dict)
    """How many elements of all places have a value, and how many of these differ; None: beyond MOST_VALUES values."""

    def add(self, framework: Array, differs: Array) -> None:
        """Add samples that were not added before, [samples, ...]; ``differs``: which elements do, of the same shape."""
        if self.shape is None:
            self.shape = framework.shape[1:]
            self.places = [{} for _ in range(framework[0].size if framework[0].size < FEWEST else 0)]
        if self.everywhere is not None:
            _count(self.everywhere, framework.ravel(), differs.ravel())
            self.everywhere = self.everywhere if len(self.everywhere) <= MOST_VALUES else None
        for each in self.aligned:
            each.add(differs)
        if framework.shape[1:] == self.shape:
            rows, wrong = (each.reshape(len(each), -1) for each in (framework, differs))
            for place, known in enumerate(self.places):
                _count(known, rows[:, place], wrong[:, place])

    @property
    def number_of_values(self) -> float:
        """How many different values the framework's elements have; infinite beyond MOST_VALUES."""
        return math.inf if self.everywhere is None else len(self.everywhere)

    def complaint(self) -> str:
        """Return in words which rare value is mostly lost; empty: none."""
        for place, known in enumerate(self.places):
            usual = max(known, key=lambda value: known[value].counted)
            for value, part in known.items():
                if part.counted >= TIES and _is_lost(part):
                    return self._words(place, part, f"is {value}")
            rare = [part for value, part in known.items() if value != usual]
            others = Part(sum(each.differing for each in rare), sum(each.counted for each in rare))
            if _is_lost(others):
                return self._words(place, others, f"is not {usual}")
        for value, part in (self.everywhere or {}).items():
            if part.counted >= ENOUGH and _is_lost(part):
                right = part.counted - part.differing
                return f"is right in only {right} of the {part.counted} elements in which the framework's is {value}"
        return next(filter(None, (each.complaint() for each in self.aligned)), "")

    def _words(self, place: int, part: Part, has: str) -> str:
        where = [int(each) for each in numpy.unravel_index(place, self.shape or ())]
        right = part.counted - part.differing
        element = f"element {where} " if where else ""
        return f"{element}is right in only {right} of the {part.counted} samples in which the framework's {has}"


@dataclass
class _Aligned:
    """How often each place of a sample differs, over samples of all shapes."""

    step: int
    """1: places are counted from the first element of each axis; -1: from the last one."""
    differing: Array = field(default_factory=lambda: numpy.zeros((), numpy.int64))
    counted: Array = field(default_factory=lambda: numpy.zeros((), numpy.int64))

    def add(self, differs: Array) -> None:
        """Add samples, [samples, ...]; all have the same rank."""
        whole = numpy.flip(differs, tuple(range(1, differs.ndim))) if self.step < 0 else differs
        shape = tuple(map(max, whole.shape[1:], self.counted.shape or whole.shape[1:]))
        self.differing, self.counted = _grown(self.differing, shape), _grown(self.counted, shape)
        part = tuple(map(slice, whole.shape[1:]))
        self.differing[part] += whole.sum(axis=0)
        self.counted[part] += len(whole)

    def complaint(self) -> str:
        """Return in words which place is mostly wrong; empty: none."""
        lost = numpy.argwhere((self.differing >= OFTEN) & (2 * self.differing > self.counted))
        if not len(lost):
            return ""
        place = tuple(lost[0].tolist())
        right = int(self.counted[place] - self.differing[place])
        # Counted from the end, the last element is -1.
        where = [each if self.step > 0 else -1 - each for each in place]
        return f"element {where} is right in only {right} of the {int(self.counted[place])} samples that have it"


def _grown(numbers: Array, shape: tuple[int, ...]) -> Array:
    """Return the numbers with zeros after them on each axis, up to the shape."""
    if not numbers.ndim:
        return numpy.zeros(shape, numbers.dtype)
    return numpy.pad(numbers, [(0, size - had) for size, had in zip(shape, numbers.shape, strict=True)])


def _count(known: dict[Any, Part], values: Array, wrong: Array) -> None:
    """Add elements to the numbers of their values."""
    found, numbers = numpy.unique(_words(values) if values.dtype.hasobject else values, return_inverse=True)
    counts = numpy.bincount(numbers), numpy.bincount(numbers, weights=wrong)
    for value, count, lost in zip(found[: MOST_VALUES + 1].tolist(), *counts, strict=False):
        before = known.get(value, Part())
        known[value] = Part(before.differing + int(lost), before.counted + int(count))


def _words(values: Array) -> Array:
    """Return bytes as text, and what is long or no text by its digest: many are kept, and each may be a picture."""
    words = []
    for each in values.tolist():
        text = each.decode(errors="replace")
        is_word = len(each) <= LONGEST_WORD and text.encode() == each
        words.append(text if is_word else f"{len(each)} bytes with the SHA-256 {hashlib.sha256(each).hexdigest()}")
    return objects(words, values.shape)


def _is_lost(part: Part) -> bool:
    return 2 * part.differing > part.counted
