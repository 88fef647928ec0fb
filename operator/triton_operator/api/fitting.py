"""How a status is fitted to its schema: a value that is too long for its field is cut, never refused.

It is also the border where every text of a status becomes printable, whoever wrote it: users' programs, the cluster, or
another operator.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

from pydantic import model_validator
from pydantic.fields import FieldInfo

from triton_converters.contract.text import printable, shortened
from triton_operator.api.schema import ApiType

LONGEST_TEXT = 4096
"""The limit in characters of a text whose field declares none. The kubelet keeps no more of a termination message."""
LARGEST_NUMBER = 2**63 - 1
"""The largest integer that the API server takes; its integers have 64 bits."""


class StatusType(ApiType):
    """The base of every type of the status. It cuts what exceeds a field's limit and replaces what is not printable.

    User code knows nothing of these limits, and a status that cannot be written tells nobody why.
    """

    @model_validator(mode="before")
    @classmethod
    def _fit(cls, values: Any) -> Any:
        if not isinstance(values, Mapping):
            return values
        limits = _limits(cls)
        return {name: _fitted(value, limits.get(name)) for name, value in values.items()}


def longest(kind: type[ApiType], field: str) -> int:
    """Return the largest number of items in a list field of a type. Raises KeyError if the field declares no limit."""
    return _limits(kind)[field]


@cache
def _limits(kind: type[ApiType]) -> Mapping[str, int]:
    """Return the declared max_length by the field's Python name and by its name on the wire."""
    return {
        name: limit
        for field, info in kind.model_fields.items()
        if (limit := _declared(info)) is not None
        for name in (field, info.alias or field)
    }


def _declared(field: FieldInfo) -> int | None:
    limits = (getattr(each, "max_length", None) for each in field.metadata)
    return next((limit for limit in limits if limit is not None), None)


def _fitted(value: Any, limit: int | None) -> Any:
    if isinstance(value, str):
        return _text(value, limit or LONGEST_TEXT)
    if isinstance(value, list | tuple):
        return [_fitted(each, None) for each in value[:limit]]
    if isinstance(value, int) and abs(value) > LARGEST_NUMBER:
        return LARGEST_NUMBER if value > 0 else -LARGEST_NUMBER
    return value


def _text(given: str, limit: int) -> str:
    text = printable(given)
    # Bytes are never fewer than characters: cut to bytes only what has too many characters.
    return shortened(text, limit) if len(text) > limit else text
