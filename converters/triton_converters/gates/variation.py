"""Whether an output varies at all: one that does not is wrong where the framework's does, whatever the tolerance."""

import math
from dataclasses import dataclass, field

import numpy

from triton_converters.claim_store.dump import Array
from triton_converters.gates.agreement import beyond, common
from triton_converters.gates.scale import SMALLEST
from triton_converters.model_config.data_types import STRINGS, alike

RESOLUTION = {"fp32": 1e-6, "fp16": 2.0**-9, "int8": 2.0**-6}
"""What counts as a change, as a share of the output's largest value, by the candidate's precision: a few units in the
last place, which a runtime's rounding makes and unmakes."""

FP16_ZERO = 2.0**-25
"""Half of the smallest number of fp16: what is below it is rounded to 0."""


@dataclass
class Side:
    """What one side answered for one output, over all samples."""

    elements: int = 0
    found: int = 0
    """Elements that are not zero, and so no padding."""
    largest: float = 0.0
    """Largest finite magnitude of floating point elements."""
    between: float = 0.0
    """Largest change of an element from the first sample; infinite where it is no number, or where one has more than
    padding beyond the other's end."""
    within: float = 0.0
    """Largest change of an element from the very first one."""
    first: Array | None = None
    """The first sample, copied."""
    one: Array | None = None
    """The very first element."""

    def add(self, array: Array) -> None:
        """Add the answers for some samples: [samples, ...]."""
        if self.first is None and len(array):
            self.first = array[:1].copy()
        if self.one is None and array.size:
            self.one = array.ravel()[:1].copy()
        self.elements += array.size
        self.found += int(numpy.count_nonzero(array))
        if self.first is not None:
            whole, every = alike(self.first, array)
            first, these = common(numpy.broadcast_to(whole, (len(every), *whole.shape[1:])), every)
            longer = beyond(whole, first[:1]) + beyond(every, these)
            self.between = max(self.between, math.inf if longer else _change(these, first))
        if self.one is not None:
            self.within = max(self.within, _change(*alike(array.ravel(), self.one)))
        if array.dtype.kind == "f":
            magnitudes = numpy.abs(array[numpy.isfinite(array)])
            self.largest = max(self.largest, float(numpy.max(magnitudes, initial=0.0)))


@dataclass
class Variation:
    """How both sides of one output vary."""

    framework: Side = field(default_factory=Side)
    served: Side = field(default_factory=Side)

    def add(self, framework: Array, served: Array) -> None:
        """Add one request's output, [samples, ...] on both sides."""
        self.framework.add(framework)
        self.served.add(served)

    @property
    def is_empty(self) -> bool:
        """Whether a side has no element; the other one then has padding at most, or there is a complaint."""
        return not self.framework.elements or not self.served.elements

    def complaint(self, precision: str) -> str:
        """Return in words that one side is empty, or the served one constant, where the other is not; empty: neither.

        What has zeros only is padding, and so not other than empty.
        ``precision``: fp32, fp16 or int8, which decides what the framework's change must amount to.
        """
        framework, served = self.framework, self.served
        if served.found and not framework.elements:
            return f"is served with {served.elements} elements, but the framework's is empty for all samples"
        if framework.found and not served.elements:
            return f"is empty for all samples, but the framework's has {framework.elements} elements"
        visible = max(SMALLEST, RESOLUTION[precision] * framework.largest)
        if served.one is not None and served.elements > 1 and not served.within and framework.within > visible:
            hint = (
                f" (fp16 rounds what is below {FP16_ZERO:.0e} to 0)"
                if precision == "fp16" and served.one.dtype.kind == "f" and not served.largest
                else ""
            )
            return f"is {_word(served.one)} in every element, but the framework's is not{hint}"
        if not served.between and framework.between > visible:
            return "is the same for all samples, but the framework's is not"
        return ""


def _word(one: Array) -> str:
    if one.dtype.kind in STRINGS:
        return "the same"
    return f"{one.item() + 0.0:.6g}" if one.dtype.kind == "f" else str(one.item())


def _change(array: Array, base: Array) -> float:
    """Return the largest difference; infinite where elements that are no finite numbers differ."""
    if array.dtype.kind != "f":
        return math.inf if numpy.any(array != base) else 0.0
    with numpy.errstate(invalid="ignore", over="ignore"):
        change = numpy.abs(array.astype(numpy.float64) - base.astype(numpy.float64))
    change = numpy.where((array == base) | (numpy.isnan(array) & numpy.isnan(base)), 0.0, change)
    return float(numpy.max(numpy.nan_to_num(change, nan=math.inf, posinf=math.inf), initial=0.0))
