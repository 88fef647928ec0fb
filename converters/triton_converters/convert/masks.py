"""Constants that mask or scale, and are beyond fp16. Pure NumPy.

They must stay finite, because infinity times 0 is NaN.
"""

from typing import Any

import numpy

FP16_LIMIT = float(numpy.finfo(numpy.float16).max)


def is_wide(values: Any) -> bool:
    """Whether a finite number of an array is beyond fp16."""
    return bool((numpy.abs(values[numpy.isfinite(values)]) > FP16_LIMIT).any())


def is_mask(values: Any) -> bool:
    """Whether an array that ``is_wide`` is a mask, such as -1e9, and no weight: one number, everywhere or next to 0."""
    found = numpy.unique(values)
    return len(found) == 1 or (len(found) == 2 and 0 in found)


def clamped(values: Any) -> Any:
    """Return finite values within the range of fp16; infinities and NaN stay."""
    return numpy.where(numpy.isfinite(values), numpy.clip(values, -FP16_LIMIT, FP16_LIMIT), values)
