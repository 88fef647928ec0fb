"""Outputs that are no floating point numbers: class numbers, flags, words, and amounts in whole steps. Pure NumPy.

Most elements of a mask are background, and most words of a sentence no name: however many of these are right, they must
not hide that the others are lost. So an element counts only if one side's is not the usual one of its sample. A near
tie of two scores turns a class number by a last bit, so a few of those that count may differ, in all samples together
and in each of them.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy

from triton_converters.claim_store.dump import Array
from triton_converters.contract.measurement_requests import IntegerTolerance

FEWEST = 8
"""Elements that a sample must have to tell its background: a lone class number is its own most frequent value."""
ALONE = 1
"""Elements of any one sample that may differ: a single near tie."""


@dataclass(frozen=True)
class Part:
    """Some of some elements."""

    differing: int = 0
    counted: int = 0

    @property
    def share(self) -> float:
        """The share that differs; that of no elements is 0, or infinite if one differs."""
        if self.counted:
            return self.differing / self.counted
        return math.inf if self.differing else 0.0


@dataclass(frozen=True)
class Rule:
    """How many elements that count may differ."""

    share: float
    """Share of the elements of all samples."""
    sample_share: float
    """Share of the elements of one sample, if more than ALONE differ."""

    def allows(self, all_samples: Part, worst_sample: Part) -> bool:
        """Whether few enough differ."""
        few = all_samples.differing <= self.share * all_samples.counted
        return few and worst_sample.differing <= max(ALONE, self.sample_share * worst_sample.counted)

    def words(self, elements: int, all_samples: Part, worst_sample: Part) -> str:
        """Return how much of what counts differs, and how much may; ``elements``: all, with background."""
        most = int(self.share * all_samples.counted)
        if all_samples.differing <= most:
            most = max(ALONE, int(self.sample_share * worst_sample.counted))
            return f"in one sample {_of_counted(worst_sample)}, and at most {most} may be"
        if elements == all_samples.counted:
            return f"at most {most} may be"
        return f"{_of_counted(all_samples)}, and at most {most} may be"


def _of_counted(part: Part) -> str:
    return f"{part.differing} of {part.counted} that are no background"


RULES = {"fp32": Rule(1e-5, 1e-3), "fp16": Rule(1e-2, 5e-2), "int8": Rule(5e-2, 2e-1)}
"""The default, by the candidate's precision.

fp32: a segmentation of 2,097,152 voxels was seen to differ in 2 between two sound runtimes. fp16 rounds scores to 11
bits, which turns near ties more often. docs/gates.md has the rates of wrong and right variants. int8 has 8 bits; how
many classes may turn is for the metric's threshold to say, without which there is no such candidate.
"""


AMOUNTS = 64
"""Different values of an output that holds amounts if its errors are of one step, as those of a picture are.

Two sound runtimes were seen to round 7 in 1,000 points of a grey picture to the other side, and a near tie of two class
numbers is rarely one of neighbours.
"""


def rule_of(precision: str, tolerance: IntegerTolerance, rounds: bool = False) -> Rule:
    """Return the rule of a precision, with the share that the spec asks for; ``rounds``: of amounts, by one step."""
    known = RULES["fp16" if rounds and precision == "fp32" else precision]
    if tolerance.share is None:
        return known
    return Rule(tolerance.share, max(known.sample_share, tolerance.share))


def distances(expected: Array, actual: Array) -> Array:
    """Return how far the elements are apart, as uint64; 1 where words or flags differ. The arrays have one shape."""
    if expected.dtype.kind not in "iu" or actual.dtype.kind not in "iu":
        differ: Array = (expected != actual).astype(numpy.uint64)
        return differ
    smaller = numpy.minimum(expected, actual)
    larger = numpy.maximum(expected, actual)
    # Modulo 2^64, the difference of two integers of any type is right.
    found: Array = larger.astype(numpy.uint64) - smaller.astype(numpy.uint64)
    return found


def counted(expected: Array, actual: Array) -> Array:
    """Return which elements count; both arrays are [samples, ...].

    Background is the most frequent value of a sample's framework outputs, if it makes up more than half of them. A
    sample of fewer than FEWEST elements has none.
    """
    counts = numpy.ones(expected.shape, dtype=bool)
    for index, sample in enumerate(expected):
        if sample.size < FEWEST:
            continue
        values, numbers = numpy.unique(sample, return_counts=True)
        if 2 * numbers.max() > sample.size:
            # An array of one: of a single object that is bytes, NumPy would drop zeros at the end.
            usual = values[numbers.argmax() :][:1]
            counts[index] = (sample != usual) | (actual[index] != usual)
    return counts


def worst_sample(differs: Array, counts: Array, alone: Sequence[int]) -> Part:
    """Return the sample with the largest share of differing elements among those with more than ALONE.

    ``alone``: how many elements of each sample only one side has, which differ too.
    """
    worst = Part()
    for one, other, more in zip(differs, counts, alone, strict=True):
        part = Part(int(numpy.count_nonzero(one)) + more, int(numpy.count_nonzero(other)) + more)
        if part.differing > ALONE and part.share > worst.share:
            worst = part
    return worst
