"""How large an output is: the unit of the default tolerances' absolute part. Pure NumPy.

The part is for outputs around 1. Where an output stays far below, it would let zeros pass, so it shrinks with the
largest value. Where everything is far above 1, it is below the rounding of fp32, so it grows. An output may hold
coordinates in hundreds next to scores below 1: it grows only for an element that is in no column (an index of an axis)
of small ones. Nor does it grow with a few outliers, which say nothing of the elements next to them, nor with a mask.

What clients read off an output may be small next to it: prices near 20,000 differ by a few. So the change between
samples is measured too. And the number of a class or of a row is another one if it is 1 off, however large it is.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import reduce

import numpy

from triton_converters.claim_store.dump import Array, Batch

SMALLEST = float(numpy.finfo(numpy.float32).smallest_normal)
"""Below this, values are taken for zeros: many runtimes flush them."""
RANGE = 2.0
"""The part's unit in largest values: the range of what is as often negative. A small probability, which rounds as its
logarithm does, differs by more than 1 % in fp16."""
TAIL = 2.0
"""The part's unit in medians that are rounded up to a power of two. A normal distribution's root mean square is less,
also that of a few samples."""
RESTING = 1e-5
"""A change between samples that is a smaller share of the output's size is taken for the rounding of fp32."""
FEWEST = 8
"""Elements that a sample must have to tell its mask."""
FARTHER = 8.0
"""How much farther from 0 a mask is than all that it does not hide."""
LARGEST_WHOLE = 2.0**20
"""Beyond it, fp32 has so few digits behind the point that a number may be whole by chance."""
SMALL_WHOLE = 256.0
"""Below it, even fp16 has several bits behind the point."""
TELLING = 4
"""Elements that must be whole although the digits of their type are no reason for it."""
MOST_MASKS = 4
"""Numbers of masks that are kept: each is looked for in all elements."""
SLICE = 1 << 18
"""Most elements that are measured or compared at once, unless one sample has more: it takes many times their memory."""


@dataclass
class _Change:
    """How an output changes from sample to sample."""

    sums: Array | None = None
    """Sums of the elements in each place of a sample."""
    counts: Array | None = None
    """Numbers of the elements in each place."""
    squares: float = 0.0
    """Sum of squares of all elements."""

    def add(self, values: Array, counted: Array) -> None:
        """Add elements, [samples, ...]; ``counted``: whether an element counts; the others are 0."""
        with numpy.errstate(over="ignore", invalid="ignore"):
            sums = values.sum(axis=0)
            counts = numpy.count_nonzero(counted, axis=0)
            self.squares += float(numpy.square(values).sum())
            self.sums = _sum(numpy.zeros_like(sums) if self.sums is None else self.sums, sums)
            self.counts = _sum(numpy.zeros_like(sums) if self.counts is None else self.counts, numpy.asarray(counts))

    def root_mean_square(self) -> float:
        """Return the root mean square of the distances to the means; 0.0 if no place has two elements, or too large."""
        if self.sums is None or self.counts is None:
            return 0.0
        free = float(numpy.maximum(self.counts - 1, 0).sum())
        with numpy.errstate(over="ignore", invalid="ignore"):
            left = self.squares - float((numpy.square(self.sums) / numpy.maximum(1, self.counts)).sum())
        return math.sqrt(left / free) if free and 0 < left < math.inf else 0.0


def _masks(array: Array) -> set[float]:
    """Return the numbers by which masks hide elements of an output [samples, ...].

    That is a number which some elements of a sample have, and which is much farther from 0 than all others there, such
    as -1e9. A sample of fewer than FEWEST elements has none.
    """
    found = set()
    for sample in array if array.size >= FEWEST * len(array) else ():
        sizes = numpy.abs(sample, where=numpy.isfinite(sample), out=numpy.zeros_like(sample))
        farthest = sample.ravel()[numpy.argmax(sizes)]
        hidden = sample == farthest
        if numpy.count_nonzero(hidden) > 1 and 0 < FARTHER * numpy.max(sizes, where=~hidden, initial=0.0) < abs(
            farthest
        ):
            found.add(float(farthest))
    return found


def widened(array: Array) -> Array:
    """Return float16 as float32, in which a difference is finite and what is far beyond float16 can be written."""
    return array.astype(numpy.float32) if array.dtype == numpy.float16 else array


@dataclass
class Scale:
    """The size of one floating point output of the framework, over all samples.

    It holds some numbers for each index of each axis, whatever the number of samples.
    """

    largest: float = 0.0
    """Largest finite magnitude of what no mask hides."""
    masks: set[float] = field(default_factory=set)
    """The numbers by which masks hide elements."""
    _fractions: int = 0
    """The number of elements that are not whole."""
    _telling: int = 0
    """The number of whole elements, other than 0, that would not be whole by chance."""
    _columns: list["_Columns"] = field(default_factory=list)
    """The scales of each axis after the first, which counts samples, and then one of all elements."""
    _change: _Change = field(default_factory=_Change)

    def masked(self, array: Array) -> Array:
        """Return which elements of an output a mask hides."""
        hidden: Array = numpy.isin(array, list(self.masks)) if self.masks else numpy.zeros(array.shape, dtype=bool)
        return hidden

    def add(self, array: Array) -> None:
        """Add the output of some samples: [samples, ...]; lengths may differ from those before."""
        rows = max(1, SLICE * len(array) // max(1, array.size))
        for start in range(0, len(array), rows):
            self._add(array[start : start + rows])

    def _add(self, array: Array) -> None:
        array = widened(array)
        self.masks = (self.masks | _masks(array)) if len(self.masks) < MOST_MASKS else self.masks
        seen = ~self.masked(array)
        finite = numpy.where(seen & numpy.isfinite(array), array, 0.0).astype(numpy.float64)
        self._change.add(finite, seen)
        self._count_whole(finite)
        wide, seen = (each.reshape(*array.shape, 1) for each in (numpy.abs(finite), seen))
        self.largest = max(self.largest, float(numpy.max(wide, initial=0.0)))
        self._columns = self._columns or [_Columns() for _ in array.shape]
        for axis, columns in enumerate(self._columns if wide.size else [], start=1):
            values, counted = (numpy.moveaxis(each, axis, 0).reshape(wide.shape[axis], -1) for each in (wide, seen))
            columns.add(values, counted)

    def _count_whole(self, finite: Array) -> None:
        self._fractions += int(numpy.count_nonzero(finite != numpy.rint(finite)))
        if not self._fractions:
            with numpy.errstate(over="ignore"):
                is_half = finite == finite.astype(numpy.float16)
            small = (finite != 0) & (numpy.abs(finite) < SMALL_WHOLE)
            self._telling += int(numpy.count_nonzero(small | ~is_half))

    @property
    def is_whole(self) -> bool:
        """Whether the output holds whole numbers: of classes or rows, or amounts.

        A model in fp16 gives nothing else beyond 1,024, so some must be small, or have more digits.
        """
        return not self._fractions and self._telling >= TELLING and self.largest < LARGEST_WHOLE

    @property
    def mean_square(self) -> float:
        """The mean square of all elements, in the largest magnitude; 0.0 if all are zeros."""
        if self.largest < SMALLEST:
            return 0.0
        # The squares of the largest doubles are infinite.
        return min(1.0, float(self._columns[-1].means()[0]) / self.largest) ** 2

    @property
    def mean_square_change(self) -> float:
        """The mean square of the changes between samples, in the largest magnitude; 0.0 if there is none but rounding.

        A change is how far an element is from the mean of those in its place.
        """
        if self.largest < SMALLEST:
            return 0.0
        change = self._change.root_mean_square() / self.largest
        return change**2 if change > RESTING * self.mean_square**0.5 else 0.0

    def units(self, shape: tuple[int, ...]) -> Array:
        """Return what the absolute part is multiplied by, for an output [samples, ...]: one value, or [1, ...].

        At most RANGE times the largest value; at least 1, if that allows it. In between, the smallest root mean square
        of the columns that an element is in, unless all their medians are far below. 1 if all values are zeros, or if
        there are none here: what is empty may be longer in its other dimensions than all that was measured.
        """
        if self.largest < SMALLEST or 0 in shape:
            return numpy.ones(1)
        if self.largest <= 1.0:
            return numpy.array([min(1.0, RANGE * self.largest)])
        units = numpy.full(1, numpy.inf)
        medians = numpy.zeros(1)
        for axis, columns in enumerate(self._columns, start=1):
            sides = (1,) * axis + (-1,) + (1,) * (len(shape) - axis)
            size = (*shape, 1)[axis]
            units = numpy.minimum(units, columns.means()[:size].reshape(sides))
            if axis < len(shape) or axis == 1:
                medians = numpy.maximum(medians, columns.medians()[:size].reshape(sides))
        limited: Array = numpy.clip(numpy.minimum(units, TAIL * medians), 1.0, self.largest)
        return limited[..., 0]


@dataclass
class _Columns:
    """The sizes of one axis' columns, by index."""

    squares: Array = field(default_factory=lambda: numpy.zeros(0))
    """Sums of squares: [indices]."""
    octaves: dict[int, Array] = field(default_factory=lambda: {0: numpy.zeros(0)})
    """Numbers of elements up to each power of two from 1 on, without zeros: [indices] by exponent, of those that occur:
    a mask of -3e38 is one more, not 128."""
    counts: Array = field(default_factory=lambda: numpy.zeros(0))
    """Numbers of elements: [indices]."""

    def add(self, values: Array, counted: Array) -> None:
        """Add magnitudes, [indices, elements]; there may be more indices than before.

        ``counted``: whether an element counts, of the same shape; the others are 0.
        """
        powers = numpy.maximum(numpy.frexp(values)[1], 0)
        found = values > 0
        for power in map(int, numpy.flatnonzero(numpy.bincount(powers.ravel()))):
            count = numpy.count_nonzero((powers == power) & found, axis=1)
            self.octaves[power] = _sum(self.octaves.get(power, numpy.zeros(0)), count)
        with numpy.errstate(over="ignore"):
            self.squares = _sum(self.squares, numpy.square(values).sum(axis=1))
        self.counts = _sum(self.counts, numpy.count_nonzero(counted, axis=1))

    def means(self) -> Array:
        """Return the roots of the mean squares."""
        return numpy.sqrt(self.squares / numpy.maximum(1.0, self.counts))

    def medians(self) -> Array:
        """Return the medians of what is not zero, rounded up to a power of two, at least 1."""
        none = numpy.zeros(len(self.counts))
        upper = reduce(_sum, self.octaves.values(), none) // 2
        medians = numpy.ones(len(none))
        below = none
        with numpy.errstate(over="ignore"):
            for power, count in sorted(self.octaves.items()):
                before = below
                below = _sum(below, count)
                medians[(before <= upper) & (below > upper)] = numpy.ldexp(1.0, power)
        return medians


def _sum(one: Array, other: Array) -> Array:
    """Return the sum of two arrays of one rank; where one ends, it is 0."""
    total = numpy.zeros(numpy.maximum(one.shape, other.shape))
    for each in (one, other):
        total[tuple(map(slice, each.shape))] += each
    return total


def measure(batches: Iterable[Batch], batched: bool) -> dict[str, Scale]:
    """Return the scales of the floating point outputs of the whole reference, by name.

    ``batched``: the first dimension of every array is the batch.
    """
    scales: dict[str, Scale] = {}
    for batch in batches:
        for name, array in batch.outputs.items():
            if array.dtype.kind == "f":
                scales.setdefault(name, Scale()).add(array if batched else array[None])
    return scales
