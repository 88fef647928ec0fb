"""Kubernetes quantities: "1000m" is "1", "1024Mi" is "1Gi"."""

import re
from collections.abc import Iterable
from decimal import Decimal
from math import ceil
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, WithJsonSchema

_QUANTITY = re.compile(r"(?P<number>[+-]?(?:\d+\.?\d*|\.\d+))(?P<suffix>[numkMGTPE]|[KMGTPE]i|[eE][+-]?\d{1,3}|)")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}


def amount(quantity: object) -> Decimal | None:
    """The exact value of a quantity as it stands in an object (a string or a number); None where it is none.

    Suffixes as in k8s.io/apimachinery/pkg/api/resource: n u m k M G T P E, Ki Mi Gi Ti Pi Ei, and exponents.
    """
    match = _QUANTITY.fullmatch(str(quantity)) if not isinstance(quantity, bool) else None
    if match is None:
        return None
    number, suffix = Decimal(match["number"]), match["suffix"]
    if suffix in _BINARY:
        return number * Decimal(1024) ** _BINARY[suffix]
    return number.scaleb(_DECIMAL[suffix] if suffix in _DECIMAL else int(suffix[1:]))


def canonical(quantity: object) -> str:
    """Return the shortest text of a quantity, so that equal quantities are equal texts: 1Gi for 1024Mi, 2 for "2".

    Like Kubernetes, it rounds up to a billionth. Raises ValueError if it is no quantity of zero or more.
    """
    value = amount(quantity)
    if value is None or value < 0:
        raise ValueError("a quantity is a number, with or without a suffix, such as 2, 500m or 8Gi: correct it")
    nanos = ceil(value.scaleb(9))
    units = {suffix: 10 ** (exponent + 9) for suffix, exponent in _DECIMAL.items()}
    units |= {suffix: 1024**exponent * 10**9 for suffix, exponent in _BINARY.items()}
    return min((f"{nanos // unit}{suffix}" for suffix, unit in units.items() if nanos % unit == 0), key=len)


def whole(quantity: str) -> int:
    """Return a checked quantity of memory in bytes, rounded up."""
    return ceil(amount(quantity) or 0)


def total(quantities: Iterable[str]) -> str:
    """The sum of quantities of bytes, in the largest of Gi, Mi and bytes that tells it exactly."""
    exact = sum((amount(each) or Decimal(0) for each in quantities), Decimal(0))
    for suffix in ("Gi", "Mi"):
        count = exact / 1024 ** _BINARY[suffix]
        if count == int(count):
            return f"{int(count)}{suffix}"
    return str(int(exact))


SCHEMA: dict[str, Any] = {
    "x-kubernetes-int-or-string": True,
    "minimum": 0,
    "maxLength": 24,
    "pattern": "^[0-9]+(\\.[0-9]+)?(m|k|M|G|T|P|Ki|Mi|Gi|Ti|Pi)?$",
}
"""The JSON schema of a quantity."""
Quantity = Annotated[str, BeforeValidator(canonical), WithJsonSchema(SCHEMA)]
"""A quantity of zero or more, an integer or a text; here always its shortest text."""


def between(least: str, most: str) -> AfterValidator:
    """Return the validator of a size in bytes within two bounds. The API server cannot compare quantities."""

    def check(size: str) -> str:
        if not whole(least) <= whole(size) <= whole(most):
            raise ValueError(f"must be from {least} to {most}: correct it")
        return size

    return AfterValidator(check)
