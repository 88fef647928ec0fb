"""Durations as Kubernetes writes them: 800us, 20ms, 1.5s, 5m, 24h."""

import re
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Annotated, Any

from pydantic import AfterValidator, Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

from triton_operator.api.schema import rules

# With more digits, a duration in hours could be longer than CEL's, which end at 292 years.
PATTERN = "^([0-9]{1,9}([.][0-9]{1,9})?(us|ms|s)|[0-9]{1,5}([.][0-9]{1,9})?(m|h))$"
_MICROSECONDS = {"us": 1, "ms": 1000, "s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000}
_MESSAGE = "a duration is a number and a unit (us, ms, s, m or h), such as 800us, 20ms or 1.5s: correct it"
KNOWN = 4096
"""How many texts are known by what they were made of: every pass over an object asks for the same few hundred."""
LONGEST_MEASURED = 100_000_000 * 1_000_000
"""Three years, in microseconds; more seconds than that would have too many digits for a duration."""
# A rule has a message; a pattern has none.
_RULE = (f"self.matches('{PATTERN}')", _MESSAGE)


def amount(duration: str, unit: str) -> Decimal:
    """Return how many of a unit a duration has."""
    own = unit_of(duration)
    return Decimal(duration.removesuffix(own)) * _MICROSECONDS[own] / _MICROSECONDS[unit]


def seconds(duration: str) -> float:
    """Return a duration in seconds."""
    return float(amount(duration, "s"))


def unit_of(duration: str) -> str:
    """Return the unit that a duration is written in."""
    return duration.lstrip("0123456789.")


def in_unit(microseconds: Decimal | float, unit: str) -> str:
    """Return a number of microseconds as a duration in a unit."""
    return f"{(Decimal(str(microseconds)) / _MICROSECONDS[unit]).normalize():f}{unit}"


def written(number: Decimal | float, unit: str) -> str:
    """Return a number of a unit as a duration, in the largest unit in which it is whole: 5m for 300 s."""
    exact = Decimal(str(number)) * _MICROSECONDS[unit]
    whole = [name for name, size in _MICROSECONDS.items() if exact and exact % size == 0]
    chosen = whole[-1] if whole else "us" if exact else "s"
    return f"{(exact / _MICROSECONDS[chosen]).normalize():f}{chosen}"


@lru_cache(KNOWN)
def measured(microseconds: int) -> str:
    """Return a measured time as a duration of three significant digits: 18.3ms for 18342, 512us, 1.23s.

    The unit is the largest of us, ms and s in which the time is at least 1, and a half is rounded to even. So at most
    0.5 % is lost, and two runs of one sweep differ by more. This is what is told; nothing decides by it. What no clock
    measures, less than nothing or more than `LONGEST_MEASURED`, is told as 0s or as that.
    """
    exact = Decimal(min(max(microseconds, 0), LONGEST_MEASURED))
    rounded = exact.quantize(Decimal(1).scaleb(max(exact.adjusted() - 2, 0))) if exact else exact
    unit = next((unit for unit in ("s", "ms") if rounded >= _MICROSECONDS[unit]), "us" if rounded else "s")
    return in_unit(rounded, unit)


@lru_cache(KNOWN)
def _checked(duration: str) -> str:
    if not re.fullmatch(PATTERN, duration):
        raise ValueError(_MESSAGE)
    return duration


Span = Annotated[str, Field(max_length=24)]
"""A duration that `Within` bounds, as the shortest text of it: 5m for 300s."""
MeasuredDuration = Annotated[Span, AfterValidator(_checked)]
"""A duration of the status. The operator alone writes it, so no rule of the API server checks it."""
Duration = Annotated[Span, AfterValidator(_checked), Field(json_schema_extra=rules(_RULE))]
"""A duration as it was written."""


@dataclass(frozen=True)
class Within:
    """The bounds of a `Span`."""

    least: str
    most: str

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Return the schema of pydantic that checks a text and makes it the shortest one of its duration."""
        return core_schema.no_info_after_validator_function(self._within, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Return the JSON schema with the rules that check the same."""
        bounds = f"duration(self) >= duration('{self.least}') && duration(self) <= duration('{self.most}')"
        return {**handler(schema), **rules(_RULE, (f"!{_RULE[0]} || ({bounds})", self._message))}

    @property
    def _message(self) -> str:
        return f"must be from {self.least} to {self.most}: correct it"

    def _within(self, duration: str) -> str:
        exact = amount(_checked(duration), "us")
        if not amount(self.least, "us") <= exact <= amount(self.most, "us"):
            raise ValueError(self._message)
        return written(exact, "us")
