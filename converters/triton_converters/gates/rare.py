"""Answers that few samples have: a flag that is never raised must not pass because most samples lack it. Pure NumPy.

The share of elements that may differ is for near ties, and these lose few of any kind. So of the elements that have
one value, at least half must be right; and of those that have not the most frequent value, too. Only for outputs with
few elements: in the others, ``gates.exact`` tells background from the rest in each sample.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy

from triton_converters.claim_store.dump import Array
from triton_converters.gates.exact import FEWEST, Part

TIES = 2
"""Elements of one value that must be there before they are judged alone: one may be a near tie."""


@dataclass
class Rare:
    """The values of an output that is no floating point, in each place of a sample, over all samples."""

    shape: tuple[int, ...] | None = None
    """The shape of the first sample; those of other shapes are left out."""
    places: list[dict[Any, Part]] = field(default_factory=list)
    """How many elements have a value, and how many of these differ, in each place."""

    def add(self, framework: Array, differs: Array) -> None:
        """Add samples that were not added before, [samples, ...]; ``differs``: which elements do, of the same shape."""
        if self.shape is None:
            self.shape = framework.shape[1:]
            self.places = [{} for _ in range(framework[0].size if framework[0].size < FEWEST else 0)]
        if framework.shape[1:] != self.shape:
            return
        rows, wrong = (each.reshape(len(each), -1) for each in (framework, differs))
        for place, known in enumerate(self.places):
            values, numbers = numpy.unique(rows[:, place], return_inverse=True)
            counted = numpy.bincount(numbers), numpy.bincount(numbers, weights=wrong[:, place])
            for value, count, lost in zip(values.tolist(), *counted, strict=True):
                before = known.get(value, Part())
                known[value] = Part(before.differing + int(lost), before.counted + int(count))

    def complaint(self) -> str:
        """Return in words which rare value is mostly lost; empty: none."""
        for place, known in enumerate(self.places):
            usual = max(known, key=lambda value: known[value].counted)
            for value, part in known.items():
                if part.counted >= TIES and 2 * part.differing > part.counted:
                    return self._words(place, part, f"is {value}")
            rare = [part for value, part in known.items() if value != usual]
            others = Part(sum(each.differing for each in rare), sum(each.counted for each in rare))
            if 2 * others.differing > others.counted:
                return self._words(place, others, f"is not {usual}")
        return ""

    def _words(self, place: int, part: Part, has: str) -> str:
        where = [int(each) for each in numpy.unravel_index(place, self.shape or ())]
        right = part.counted - part.differing
        element = f"element {where} " if where else ""
        return f"{element}is right in only {right} of the {part.counted} samples in which the framework's {has}"
