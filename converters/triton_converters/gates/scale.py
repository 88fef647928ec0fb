"""How large an output is: the unit of the default tolerances' absolute part. Pure NumPy.

The part is for outputs around 1. Where an output stays far below, it would let zeros pass, so it shrinks with the
largest value. Where everything is far above 1, it is below the rounding of fp32, so it grows. An output may hold
coordinates in hundreds next to scores below 1: it grows only for an element that is in no column (an index of an axis)
of small ones.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy

from triton_converters.claim_store.dump import Array, Batch

SMALLEST = float(numpy.finfo(numpy.float32).smallest_normal)
"""Below this, values are taken for zeros: many runtimes flush them."""
RANGE = 2.0
"""The part's unit in largest values: the range of what is as often negative. A small probability, which rounds as its
logarithm does, differs by more than 1 % in fp16."""


@dataclass
class Scale:
    """The size of one floating point output of the framework, over all samples.

    It holds some numbers for each index of each axis, whatever the number of samples.
    """

    largest: float = 0.0
    """Largest finite magnitude."""
    _total: "_Squares" = field(default_factory=lambda: _Squares(numpy.zeros(1), numpy.zeros(1)))
    _columns: list["_Squares"] = field(default_factory=list)
    """One for each axis after the first, which counts samples."""

    def add(self, array: Array) -> None:
        """Add the output of some samples: [samples, ...]; lengths may differ from those before."""
        wide = array.astype(numpy.float64)
        wide = numpy.abs(numpy.where(numpy.isfinite(wide), wide, 0.0))
        self.largest = max(self.largest, float(numpy.max(wide, initial=0.0)))
        with numpy.errstate(over="ignore"):
            squares = numpy.square(wide)
        axes = range(1, array.ndim)
        self._columns = self._columns or [_Squares(numpy.zeros(0), numpy.zeros(0)) for _ in axes]
        self._total.add(squares.sum().reshape(1), squares.size)
        for axis, column in zip(axes, self._columns, strict=True):
            sums = squares.sum(axis=tuple(each for each in range(array.ndim) if each != axis))
            column.add(sums, squares.size // max(1, len(sums)))

    def units(self, shape: tuple[int, ...]) -> Array:
        """Return what the absolute part is multiplied by, for an output [samples, ...]: one value, or [1, ...].

        At most RANGE times the largest value; at least 1, if that allows it. In between, the smallest root mean square
        of the columns that an element is in. 1 if all values are zeros.
        """
        if self.largest < SMALLEST:
            return numpy.ones(1)
        if self.largest <= 1.0:
            return numpy.array([min(1.0, RANGE * self.largest)])
        units = self._total.means()
        for axis, column in enumerate(self._columns, start=1):
            means = column.means()[: shape[axis]]
            sides = (1,) * axis + (len(means),) + (1,) * (len(shape) - axis - 1)
            units = numpy.minimum(units, means.reshape(sides))
        return numpy.clip(units, 1.0, self.largest)


@dataclass
class _Squares:
    """Sums of squares and numbers of elements, by index."""

    sums: Array
    counts: Array

    def add(self, sums: Array, count: int) -> None:
        """Add the sums of as many elements each; there may be more indices than before."""
        longer = max(0, len(sums) - len(self.sums))
        self.sums, self.counts = (numpy.pad(each, (0, longer)) for each in (self.sums, self.counts))
        self.sums[: len(sums)] += sums
        self.counts[: len(sums)] += count

    def means(self) -> Array:
        """Return the roots of the mean squares."""
        return numpy.sqrt(self.sums / numpy.maximum(1.0, self.counts))


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
