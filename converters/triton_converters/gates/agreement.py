"""How far served outputs are from the framework's: counts that add up over requests. Pure NumPy.

A floating point element agrees if |served - framework| <= absolute + relative * |framework|; those of other types are
judged by ``gates.exact``. By the default tolerances, the absolute part is multiplied by the output's scale, a whole
number is no other one, and the error of the whole output is held against its size: many small errors turn a vector as
one large error does. NaN and infinity are counted in what the server sent, before anything is padded or cut. If a
varying dimension has another size, the common prefix is compared. Zeros that only one side has are padding (a batch is
as long as its longest sample, and the server makes its own batches); every other element that only one side has is
outside.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import add

import numpy

from triton_converters.claim_store.dump import Array
from triton_converters.contract.measurement_requests import Tolerance
from triton_converters.gates import exact
from triton_converters.gates.exact import Part, Rule
from triton_converters.gates.scale import SLICE, SMALLEST, Scale
from triton_converters.model_config.data_types import STRINGS, alike, triton_type

ERROR_SHARE = 1e-2
"""Largest root mean square of an output's errors, as a share of that of the framework's elements: 40 dB.

Vectors then have a cosine of at least 0.99995. Of the variants of docs/gates.md, right ones in fp16 lose 40 dB at most;
wrong ones of 29 to 38 dB passed where this was a tenth for fp16.
"""

LEAST_SIGNAL_TO_NOISE = 30.0
"""Smallest signal-to-noise ratio of an output of an INT8 graph, in dB.

Of ten models, INT8 graphs that keep the decisions had 26 and more, broken ones 6 to 20. A floor of 26 would pass one
more of these graphs, and 10 more of 86 wrong variants (docs/gates.md).
"""
ERROR_SHARES = {"fp32": ERROR_SHARE, "fp16": ERROR_SHARE, "int8": 10 ** (-LEAST_SIGNAL_TO_NOISE / 20)}
"""ERROR_SHARE by what the candidate computes in."""
MOST_SIGNAL_TO_NOISE = 200.0
"""What stands for no noise at all, in dB: beyond the digits of fp32."""

CHANGE_SHARE = 0.25
"""Largest root mean square of an output's errors, as a share of that of its changes between samples: 12 dB.

What ERROR_SHARE passes may be larger than all that an output says: fp16 has steps of 16 near 20,000.
"""

SAME_NUMBER = 0.49
"""Largest error of an output that holds nothing but whole numbers: by a larger one, a number is taken for another."""


@dataclass(frozen=True)
class Element:
    """One element of an output with the values of both sides."""

    sample: str
    position: tuple[int, ...]
    """Index within the sample, without the batch dimension."""
    served: float | int
    """An integer keeps all its digits, which a float does not."""
    framework: float | int
    excess: float
    """How far the error exceeds the tolerance, in the output's unit; infinite if the server sent no finite number."""
    unit: float = 1.0
    """What the tolerance's absolute part was multiplied by."""


@dataclass(frozen=True)
class Agreement:
    """The counts of one output over any number of requests; ``+`` adds two of the same output."""

    output: str
    is_floating: bool
    elements: int = 0
    """Elements that were compared or had no counterpart, without padding."""
    counted: int = 0
    """Elements that are no background (``gates.exact``), without those of floating point."""
    worst_sample: Part = field(default_factory=Part)
    """The sample whose counted elements differ most; empty for floating point."""
    largest_step: int = 0
    """Largest difference of two integers; 0 also for flags and words."""
    outside: int = 0
    """Elements that do not agree, including those without a counterpart."""
    not_finite: int = 0
    """NaN or infinite served elements for which the framework has a finite element or none."""
    other_lengths: int = 0
    """Samples in which one side has more than padding beyond the other's end."""
    max_absolute_error: float = 0.0
    """Largest finite |served - framework|; 0.0 for integers."""
    worst: Element | None = None
    """The element that is farthest outside."""
    needed: float = 0.0
    """Smallest absolute tolerance by which all compared elements agree, with the same relative one; infinite: none."""
    squared_error: float = 0.0
    """Sum of squares of the errors, in the output's largest magnitude, without what a mask hides; 0.0 without a scale.

    So are the next three.
    """
    squared_size: float = 0.0
    """Sum of squares of the framework's elements, in the same unit."""
    usual_size: float = 0.0
    """Sum of squares of as many elements of the whole reference, in the same unit."""
    usual_change: float = 0.0
    """Sum of squares of the changes between samples of as many elements of the whole reference, in the same unit."""
    other_numbers: int = 0
    """Elements that are outside because they are other whole numbers, and for no other reason."""

    def __add__(self, other: "Agreement") -> "Agreement":
        """Add the counts; raises ValueError if the outputs are not the same."""
        if (self.output, self.is_floating) != (other.output, other.is_floating):
            raise ValueError(f"{self.output} and {other.output} are different outputs")
        worst = [element for element in (self.worst, other.worst) if element is not None]
        return Agreement(
            self.output,
            self.is_floating,
            self.elements + other.elements,
            self.counted + other.counted,
            max(self.worst_sample, other.worst_sample, key=lambda part: part.share),
            max(self.largest_step, other.largest_step),
            self.outside + other.outside,
            self.not_finite + other.not_finite,
            self.other_lengths + other.other_lengths,
            max(self.max_absolute_error, other.max_absolute_error),
            max(worst, key=lambda element: element.excess, default=None),
            max(self.needed, other.needed),
            self.squared_error + other.squared_error,
            self.squared_size + other.squared_size,
            self.usual_size + other.usual_size,
            self.usual_change + other.usual_change,
            self.other_numbers + other.other_numbers,
        )

    @property
    def error_share(self) -> float:
        """The errors of the whole output as a share of its size, both as root mean square; 0.0 if it has no scale.

        Some samples alone may be small by chance, so the size is at least that of the whole reference.
        """
        size = max(self.squared_size, self.usual_size)
        return math.sqrt(self.squared_error / size) if size else 0.0

    @property
    def signal_to_noise(self) -> float:
        """The size of the whole output as a ratio to its errors, in dB, from 0.0 to MOST_SIGNAL_TO_NOISE."""
        share = self.error_share
        return min(MOST_SIGNAL_TO_NOISE, max(0.0, -20 * math.log10(share))) if share else MOST_SIGNAL_TO_NOISE

    @property
    def change_share(self) -> float:
        """The errors of the whole output as a share of its changes between samples; 0.0 if nothing changes."""
        return math.sqrt(self.squared_error / self.usual_change) if self.usual_change else 0.0

    def holds(self, rule: Rule, error_share: float = math.inf, change_share: float = math.inf) -> bool:
        """Whether enough elements agree, of floating point all, with errors of at most these shares of the output.

        ``rule``: for elements of other types. What is empty on both sides agrees.
        """
        if self.not_finite:
            return False
        if self.is_floating:
            return self.outside == 0 and self.error_share <= error_share and self.change_share <= change_share
        return rule.allows(Part(self.outside, self.counted), self.worst_sample)


def compare(
    output: str,
    framework: Array,
    served: Array,
    samples: Sequence[str],
    tolerance: Tolerance,
    scale: Scale | None = None,
) -> Agreement:
    """Compare one request's output with the framework's.

    Both arrays are [len(samples), ...] with the same type and rank; ``samples`` names the first dimension's entries.
    ``scale``: that of a floating point output, for the default tolerances; None: the tolerance means what it says.
    Raises ValueError if type, rank or the number of samples differ.
    """
    shapes = framework.shape, served.shape
    if triton_type(framework.dtype) != triton_type(served.dtype) or framework.ndim != served.ndim:
        raise ValueError(
            f"output {output} is served as {served.dtype}{list(shapes[1])}, not {framework.dtype}{list(shapes[0])}"
        )
    if not framework.shape[:1] == served.shape[:1] == (len(samples),):
        raise ValueError(f"output {output} is served with shape {list(shapes[1])} for {len(samples)} samples")
    framework, served = alike(framework, served)
    known = scale or Scale()
    units = known.units(common(framework, served)[0].shape)
    rows = max(1, SLICE * len(samples) // max(1, framework.size, served.size))
    parts = (slice(start, start + rows) for start in range(0, max(1, len(samples)), rows))
    return reduce(
        add, (_compare(output, framework[at], served[at], samples[at], tolerance, known, units) for at in parts)
    )


def _compare(
    output: str,
    framework: Array,
    served: Array,
    samples: Sequence[str],
    tolerance: Tolerance,
    scale: Scale,
    units: Array,
) -> Agreement:
    """Compare some samples of a request; it takes some 20 times their memory. ``units``: those of the whole request."""
    expected, actual = common(framework, served)
    # What only one side has of each sample, without padding.
    alone = [
        beyond(framework[index], expected[index]) + beyond(served[index], actual[index])
        for index in range(len(samples))
    ]
    single = sum(alone)
    is_floating = served.dtype.kind == "f"
    if is_floating:
        counts = _compare_floats(expected, actual, tolerance, scale, units)
        lonely = int(numpy.count_nonzero(~numpy.isfinite(served))) - int(numpy.count_nonzero(~numpy.isfinite(actual)))
    else:
        counts = _compare_exactly(expected, actual, tolerance)
        lonely = 0
    return Agreement(
        output,
        is_floating,
        elements=expected.size + single,
        counted=0 if is_floating else int(numpy.count_nonzero(counts.counts)) + single,
        worst_sample=Part() if is_floating else exact.worst_sample(counts.excess > 0, counts.counts, alone),
        largest_step=counts.largest_step,
        outside=int(numpy.count_nonzero(counts.excess > 0)) + single,
        not_finite=counts.not_finite + lonely,
        other_lengths=sum(each > 0 for each in alone),
        max_absolute_error=counts.max_absolute_error,
        worst=_worst(expected, actual, counts, samples),
        needed=counts.needed,
        squared_error=counts.squared_error,
        squared_size=counts.squared_size,
        usual_size=counts.sized * scale.mean_square,
        usual_change=counts.sized * scale.mean_square_change,
        other_numbers=counts.other_numbers,
    )


def common(one: Array, other: Array) -> tuple[Array, Array]:
    """Return the part of each array that both have, from the start of every dimension; both have one rank."""
    prefix = tuple(slice(0, min(sizes)) for sizes in zip(one.shape, other.shape, strict=True))
    return one[prefix], other[prefix]


def beyond(array: Array, prefix: Array) -> int:
    """Return how many elements of ``array`` are beyond its part ``prefix`` and not zero, so not padding."""
    return int(numpy.count_nonzero(array)) - int(numpy.count_nonzero(prefix))


@dataclass(frozen=True)
class _Counts:
    excess: Array
    """How far each element's error exceeds the tolerance; positive: outside."""
    largest_step: int = 0
    counts: Array = field(default_factory=lambda: numpy.zeros(0, dtype=bool))
    """Whether each element is no background; empty for floating point."""
    not_finite: int = 0
    max_absolute_error: float = 0.0
    needed: float = 0.0
    squared_error: float = 0.0
    squared_size: float = 0.0
    sized: int = 0
    """Elements of the two sums of squares."""
    other_numbers: int = 0
    """``Agreement.other_numbers``."""
    units: Array = field(default_factory=lambda: numpy.ones(1))
    """What the absolute part was multiplied by, for each element or in a shape that broadcasts to that."""


def _compare_floats(expected: Array, actual: Array, tolerance: Tolerance, scale: Scale, units: Array) -> _Counts:
    # In double precision: the difference of two large float32 may be infinite, and is rounded itself.
    wanted, got = expected.astype(numpy.float64), actual.astype(numpy.float64)
    finite_wanted, finite_got = numpy.isfinite(wanted), numpy.isfinite(got)
    both = finite_wanted & finite_got
    same = (wanted == got) | (numpy.isnan(wanted) & numpy.isnan(got))
    size = numpy.abs(numpy.where(both, wanted, 0.0))
    with numpy.errstate(over="ignore"):
        error = numpy.abs(numpy.where(both, got, 0.0) - numpy.where(both, wanted, 0.0))
    relative = tolerance.relative * size
    seen = ~scale.masked(expected)
    allowed = tolerance.absolute * units + relative
    other_number = both & (error > SAME_NUMBER) & (error <= allowed) & scale.is_whole
    allowed = numpy.where(other_number, SAME_NUMBER, allowed)
    excess = numpy.where(both, error - allowed, numpy.where(same, 0.0, numpy.inf))
    # An error exactly at the bound is inside: the subtraction must not round the equality away.
    excess = numpy.where(both & (error <= allowed), 0.0, excess)
    return _Counts(
        excess,
        not_finite=int(numpy.count_nonzero(finite_wanted & ~finite_got)),
        # The difference of two large doubles overflows, but a result holds only finite numbers.
        max_absolute_error=float(min(numpy.max(error, initial=0.0), numpy.finfo(numpy.float64).max)),
        needed=float(numpy.max(numpy.where(both, error - relative, numpy.where(same, 0.0, numpy.inf)), initial=0.0)),
        squared_error=_squares(error[seen], scale),
        squared_size=_squares(size[seen], scale),
        sized=int(numpy.count_nonzero(seen)),
        other_numbers=int(numpy.count_nonzero(other_number)),
        units=units,
    )


def _squares(values: Array, scale: Scale) -> float:
    """Return the sum of squares of what is divided by the output's largest magnitude; 0.0 if that is 0."""
    with numpy.errstate(over="ignore"):
        squares = numpy.square(values / scale.largest) if scale.largest >= SMALLEST else numpy.zeros(1)
    return float(min(squares.sum(), numpy.finfo(numpy.float64).max))


def _compare_exactly(expected: Array, actual: Array, tolerance: Tolerance) -> _Counts:
    distances = exact.distances(expected, actual)
    is_integer = expected.dtype.kind in "iu"
    # Words and flags have no steps.
    steps = tolerance.integers.steps if is_integer else 0
    excess = numpy.maximum(distances.astype(numpy.float64) - steps, 0.0)
    step = int(numpy.max(distances, initial=0)) if is_integer else 0
    return _Counts(excess, largest_step=step, counts=exact.counted(expected, actual))


def _worst(expected: Array, actual: Array, counts: _Counts, samples: Sequence[str]) -> Element | None:
    excess = counts.excess
    if excess.size == 0 or actual.dtype.kind in STRINGS:
        return None
    index = tuple(int(i) for i in numpy.unravel_index(int(numpy.argmax(excess)), excess.shape))
    if not excess[index] > 0:
        return None
    unit = float(numpy.broadcast_to(counts.units, excess.shape)[index])
    return Element(
        samples[index[0]], index[1:], actual[index].item(), expected[index].item(), float(excess[index]), unit
    )


def _digits(value: float) -> str:
    return f"{value:.9g}" if isinstance(value, float) else str(int(value))


def describe(agreement: Agreement, tolerance: Tolerance, rule: Rule) -> str:
    """Return in one sentence how many elements disagree, the worst with both values, and the largest error."""
    worst = agreement.worst
    where = ""
    if worst is not None:
        where = (
            f"; the worst is element {list(worst.position)} of sample {worst.sample}:"
            f" served {_digits(worst.served)}, framework {_digits(worst.framework)}"
        )
    if agreement.other_lengths:
        where += f"; {agreement.other_lengths} samples have another length than the framework's"
    count = f"output {agreement.output}: {agreement.outside} of {agreement.elements} elements"
    if not agreement.is_floating:
        by = f"differ by more than {steps}" if (steps := tolerance.integers.steps) else "are not equal"
        counted = Part(agreement.outside, agreement.counted)
        return f"{count} {by}: {rule.words(agreement.elements, counted, agreement.worst_sample)}{where}"
    if agreement.not_finite:
        broken = f"{agreement.not_finite} of {agreement.elements} elements"
        return f"output {agreement.output}: {broken} are NaN or infinite{where}"
    largest = f"largest absolute error {agreement.max_absolute_error:.6g}"
    if not agreement.outside:
        shares = f"{agreement.error_share:.2%} of its size"
        if agreement.change_share > CHANGE_SHARE:
            shares += f", and {agreement.change_share:.2g} times what it varies by between samples"
        return f"output {agreement.output}: the errors are {shares}; {largest}"
    if agreement.other_numbers == agreement.outside:
        return f"{count} are other whole numbers, and the framework's are whole in all samples{where}; {largest}"
    unit = 1.0 if worst is None else worst.unit
    scaled = "" if unit == 1.0 else f" ({tolerance.absolute:g} * {unit:.3g}, the output's scale)"
    absolute = f"{tolerance.absolute * unit:.4g}{scaled}"
    bound = f"|served - framework| <= {absolute} + {tolerance.relative:g} * |framework|"
    return f"{count} are outside {bound}{where}; {largest}"
