"""Durations as Kubernetes writes them: 800us, 20ms, 1.5s."""

import re
from decimal import Decimal
from typing import Annotated

from pydantic import AfterValidator, Field

from triton_operator.api.schema import rules

PATTERN = "^[0-9]{1,9}([.][0-9]{1,9})?(us|ms|s)$"
_MICROSECONDS = {"us": 1, "ms": 1000, "s": 1_000_000}
_MESSAGE = "a duration is a number and a unit (us, ms or s), such as 800us, 20ms or 1.5s: correct it"


def microseconds(duration: str) -> float:
    """Return a duration in microseconds. Raises ValueError if the text is no duration."""
    if not re.fullmatch(PATTERN, duration):
        raise ValueError(_MESSAGE)
    number = duration.rstrip("ums")
    return float(Decimal(number) * _MICROSECONDS[duration.removeprefix(number)])


def _checked(duration: str) -> str:
    microseconds(duration)
    return duration


Duration = Annotated[
    str,
    AfterValidator(_checked),
    # A rule has a message; a pattern has none.
    Field(max_length=24, json_schema_extra=rules((f"self.matches('{PATTERN}')", _MESSAGE))),
]
