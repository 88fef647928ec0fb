"""Frozen dataclasses to and from compact JSON; the base of requests and results. Standard library only."""

import json
from dataclasses import MISSING, dataclass, fields, is_dataclass
from types import UnionType
from typing import Any, Self, Union, get_args, get_origin, get_type_hints


class DocumentError(ValueError):
    """The JSON is not a document of the expected kind."""


@dataclass(frozen=True)
class Document:
    """Base of every request and result: unknown fields are refused, and missing ones that have no default."""

    def to_json(self) -> str:
        """The document, keys sorted, so that equal documents are equal strings.

        Fields at their default are left out: the Job of a newer operator that asks for nothing new is the same Job, and
        the older converter image that an object is pinned to understands it.
        """
        return json.dumps(self, sort_keys=True, separators=(",", ":"), default=given)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Parse a document; raises DocumentError where it is not one of this kind."""
        try:
            return cls.from_value(json.loads(text))
        except json.JSONDecodeError as error:
            raise DocumentError(f"{cls.__name__}: {error}") from error

    @classmethod
    def from_value(cls, value: Any) -> Self:
        """Build the document from decoded JSON; raises DocumentError where it does not fit."""
        try:
            built = _build(cls, value)
        except (TypeError, ValueError, KeyError) as error:
            raise DocumentError(f"{cls.__name__}: {error}") from error
        assert isinstance(built, cls)
        return built


def given(value: Any) -> dict[str, Any]:
    """A dataclass's fields by name, without those at their default; raises TypeError of any other value."""
    found = ((field, getattr(value, field.name)) for field in fields(value))
    return {field.name: each for field, each in found if each != field.default}


def _build(kind: Any, value: Any) -> Any:
    """Turn decoded JSON into ``kind``: dataclasses by field, tuples by element, scalars by type."""
    origin = get_origin(kind)
    if origin in (Union, UnionType):
        return None if value is None else _build(next(k for k in get_args(kind) if k is not type(None)), value)
    if is_dataclass(kind):
        assert isinstance(kind, type)
        names = {field.name for field in fields(kind)}
        needed = {field.name for field in fields(kind) if field.default is MISSING}
        if not isinstance(value, dict) or not needed <= set(value) <= names:
            raise TypeError(f"{kind.__name__} takes the fields {sorted(names)}")
        hints = get_type_hints(kind)
        return kind(**{name: _build(hints[name], given) for name, given in value.items()})
    if origin is tuple:
        if not isinstance(value, list | tuple):
            raise TypeError(f"{value!r} is not a list")
        return tuple(_build(get_args(kind)[0], item) for item in value)
    if origin is not None:
        if not isinstance(value, dict):
            raise TypeError(f"{value!r} is not an object")
        return value
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if kind is not Any and type(value) is not kind:
        raise TypeError(f"{value!r} is not of type {kind.__name__}")
    return value
