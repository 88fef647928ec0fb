"""What a model's user reads off its outputs: a wrong candidate is one that makes him read something else. Pure NumPy.

A near tie is no decision: where the framework's own choice hangs on less than NEAR of the output's largest magnitude,
any error that is allowed may turn it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy

from triton_converters.claim_store.dump import Array

NEAR = 0.01
"""A hundredth is 40 dB below the output's largest value."""
Read = Callable[[Array], tuple[Array, Array]]
"""From an output of some samples to the decisions, and whether each is clear: two arrays of one shape."""


@dataclass(frozen=True)
class Decision:
    """What is read off one output."""

    output: str
    read: Read

    def changed(self, framework: Array, served: Array) -> float:
        """Return the share of decisions that another output would change, of those that are not the usual one.

        Most elements of a mask are background: their number must not hide what is lost, so a decision counts where
        either side's is not the framework's most frequent one. Where there are none, it is 0.0. Another shape: 1.0.
        """
        if framework.shape != served.shape:
            return 1.0
        wanted, clear = self.read(framework)
        got, _ = self.read(served)
        kinds, counts = numpy.unique(wanted[clear], return_counts=True)
        if not len(kinds):
            return 0.0
        usual = kinds[counts.argmax()]
        counted = clear & ((wanted != usual) | (got != usual))
        changed, judged = (int(numpy.count_nonzero(each)) for each in (counted & (wanted != got), counted))
        return changed / max(1, judged)


def top1(axis: int = -1) -> Read:
    """The index of the largest score along an axis."""

    def read(output: Array) -> tuple[Array, Array]:
        ordered = numpy.sort(numpy.where(numpy.isfinite(output), output, -numpy.finfo(numpy.float32).max), axis=axis)
        finite = numpy.abs(output[numpy.isfinite(output)])
        margin = numpy.take(ordered, -1, axis) - numpy.take(ordered, -2, axis)
        return output.argmax(axis=axis), margin > NEAR * float(finite.max(initial=0.0))

    return read


def above(threshold: float, first: int = 0) -> Read:
    """Whether a score is above a threshold; ``first``: where scores begin in the second axis."""

    def read(output: Array) -> tuple[Array, Array]:
        scores = output[:, first:] if first else output
        return scores > threshold, numpy.abs(scores - threshold) > NEAR * max(abs(threshold), 1.0)

    return read


def higher(output: Array) -> tuple[Array, Array]:
    """Whether a number is above the middle of all samples'; clear: by half of what they scatter by, or more."""
    distance = output - numpy.median(output)
    return distance > 0, numpy.abs(distance) >= output.std() / 2


def exact(output: Array) -> tuple[Array, Array]:
    """A class number, a flag or a word is its own decision."""
    return output, numpy.ones(output.shape, dtype=bool)


def loudness(framework: Array, served: Array) -> float:
    """Return how far the signal is above the error, in dB, over all finite elements; infinite: there is no error.

    Elements that are finite on one side alone are errors of the signal's own size. 10 log10 of the ratio of the sums
    of squares.
    """
    if framework.shape != served.shape:
        return -numpy.inf
    wanted, got = framework.astype(numpy.float64), served.astype(numpy.float64)
    finite = numpy.isfinite(wanted)
    alone = finite != numpy.isfinite(got)
    both = finite & numpy.isfinite(got)
    signal = float(numpy.square(wanted[finite]).sum())
    noise = float(numpy.square(wanted[both] - got[both]).sum())
    if (alone | (~finite & ~alone & ~_same(wanted, got))).any():
        return -numpy.inf
    if noise == 0.0:
        return numpy.inf
    return 10 * float(numpy.log10(signal / noise)) if signal else -numpy.inf


def _same(one: Array, other: Array) -> Array:
    same: Array = (one == other) | (numpy.isnan(one) & numpy.isnan(other))
    return same


def _seen(array: Array, hidden: float) -> Array:
    """Return an output with minus infinity for what a mask hides."""
    seen: Array = numpy.where(array <= hidden, -numpy.inf, array) if array.dtype.kind == "f" else array
    return seen


@dataclass(frozen=True)
class Truth:
    """What a variant is worth on samples that no gate sees."""

    decibels: float
    """The worst floating point output's; minus infinity also if a request failed."""
    changed: float
    """The largest share of changed decisions."""

    LEAST = 40.0
    MOST = 0.01

    @property
    def is_wrong(self) -> bool:
        """Whether clients get something else than from the framework."""
        return self.decibels < self.LEAST or self.changed > self.MOST


def truth(
    framework: Mapping[str, Array],
    served: Mapping[str, Array],
    decisions: tuple[Decision, ...],
    dense: tuple[str, ...],
    hidden: float = -numpy.inf,
) -> Truth:
    """Judge the outputs of all samples. ``dense``: integer outputs that hold amounts, such as a picture's.

    ``hidden``: what is at most so much is hidden by a mask, as minus infinity is.
    """
    framework, served = ({name: _seen(array, hidden) for name, array in side.items()} for side in (framework, served))
    measured = [name for name, array in framework.items() if array.dtype.kind == "f" or name in dense]
    decibels = min((loudness(framework[name], served[name]) for name in measured), default=numpy.inf)
    changed = max((each.changed(framework[each.output], served[each.output]) for each in decisions), default=0.0)
    return Truth(float(decibels), changed)
