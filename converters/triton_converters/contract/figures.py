"""Numbers in messages: a figure and its bound are told so that both show the verdict. Standard library only."""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

_EXACT = 17
"""Significant digits that tell any two numbers apart."""


def as_written(number: float) -> str:
    """Return a number with all its digits, as a person writes it in a spec: 0.95, and 1 for 1.0."""
    return repr(float(number)).removesuffix(".0")


def in_decimal(number: float) -> Fraction:
    """Return a finite number exactly as it is read: 0.9 is nine tenths, which no binary number is."""
    return Fraction(as_written(number))


def difference(one: float, other: float) -> Fraction | float:
    """Return by how much two numbers differ as they are read; infinite if one is not finite."""
    finite = math.isfinite(one) and math.isfinite(other)
    return abs(in_decimal(one) - in_decimal(other)) if finite else math.inf


def telling(values: Sequence[float], verdict: Callable[..., object], digits: int = 6) -> tuple[str, ...]:
    """Return numbers with at least ``digits`` significant digits, and as many as their verdict needs to be the same."""
    for count in range(digits, _EXACT):
        texts = tuple(f"{value:.{count}g}" for value in values)
        if verdict(*map(float, texts)) == verdict(*values):
            return texts
    return tuple(map(as_written, values))
