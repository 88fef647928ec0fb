"""Frozen dataclasses to and from compact JSON; the base of requests and results. Standard library only.

User code may have written what is read here. So types are checked before a value is used, errors name places and types
but quote no value, and DocumentError is the only exception.
"""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import StrEnum
from functools import cache
from types import UnionType
from typing import Any, Self, Union, get_args, get_origin, get_type_hints

LARGEST_INTEGER = 2**63 - 1
"""The API's integers have 64 bits."""
DEPTH_LIMIT = 32
"""Most levels of nested lists and objects; an ensemble's request has about a dozen, more than any other."""


class DocumentError(ValueError):
    """The JSON is not a document of the expected kind."""


@dataclass(frozen=True)
class Document:
    """Base of every request and result; refuses unknown fields, and missing fields that have no default."""

    def to_json(self) -> str:
        """Return the document with sorted keys, so that equal documents are equal strings.

        Fields at their default are left out: a newer operator that asks for nothing new creates the same Job, and an
        older converter image that an object is pinned to understands it.
        """
        return json.dumps(self, sort_keys=True, separators=(",", ":"), default=given)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Parse a document; raises DocumentError if it is not one of this kind."""
        return cls.from_value(decode(text))

    @classmethod
    def from_value(cls, value: Any) -> Self:
        """Build the document from what ``decode`` returned; raises DocumentError if it does not fit."""
        built = _build(cls, value, cls.__name__)
        assert isinstance(built, cls)
        return built


def given(value: Any) -> dict[str, Any]:
    """Return a dataclass's fields by name, without those at their default; raises TypeError for any other value."""
    return {name: each for name, default in _defaults(value.__class__) if (each := getattr(value, name)) != default}


def decode(text: str, cut: Callable[[Any], Any] = lambda value: value) -> Any:
    """Return the decoded JSON; raises DocumentError if the text is not JSON or holds what no document may hold.

    ``cut``: leaves out what nobody reads, before the rest is checked.
    """
    try:
        value = cut(json.loads(text))
    except RecursionError as error:
        raise _too_deep() from error
    except ValueError as error:
        raise DocumentError(f"the text is not JSON: {error}") from error
    _check(value, DEPTH_LIMIT)
    return value


def wrong_type(place: str, wanted: str, value: Any) -> DocumentError:
    """Return the error for a value of the wrong type."""
    return DocumentError(f"{place} must be {wanted}, not {type(value).__name__}")


def _check(value: Any, levels: int) -> None:
    """Refuse unpaired surrogates, infinite or too large numbers, and more than ``levels`` levels of nesting."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise DocumentError("a string holds half a surrogate pair") from None
    elif isinstance(value, int):
        if abs(value) > LARGEST_INTEGER:
            raise DocumentError("an integer needs more than 64 bits")
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise DocumentError("a number is not finite")
    elif isinstance(value, dict | list):
        if not levels:
            raise _too_deep()
        for each in (*value, *value.values()) if isinstance(value, dict) else value:
            _check(each, levels - 1)


def is_deeper(value: Any, levels: int = DEPTH_LIMIT) -> bool:
    """Return whether lists and objects are nested in more than ``levels`` levels, the value's own among them."""
    if not isinstance(value, dict | list):
        return False
    return not levels or any(
        is_deeper(each, levels - 1) for each in (value.values() if isinstance(value, dict) else value)
    )


def _too_deep() -> DocumentError:
    return DocumentError(f"lists and objects are nested more than {DEPTH_LIMIT} levels deep")


@cache
def _defaults(kind: type[Any]) -> tuple[tuple[str, Any], ...]:
    """Return the fields of a dataclass and their defaults; MISSING is the default of one that has none."""
    return tuple((field.name, field.default) for field in fields(kind))


@cache
def _shape(kind: type[Any]) -> tuple[frozenset[str], Mapping[str, Any]]:
    """Return the fields of a dataclass that have no default, and the types of all; to evaluate types is slow."""
    return frozenset(field.name for field in fields(kind) if field.default is MISSING), get_type_hints(kind)


def _build(kind: Any, value: Any, place: str) -> Any:
    """Turn decoded JSON into ``kind``: dataclasses by field, tuples by element, scalars by type."""
    # Most values are numbers and strings: a pass reads tens of thousands.
    return value if type(value) is kind else _builder(kind)(kind, value, place)


@cache
def _builder(kind: Any) -> Callable[[Any, Any, str], Any]:
    """Return what builds values of a type. Kept, because to look into types is slow."""
    return next(builder for fits, builder in _BUILDERS if fits(kind))


def _optional(kind: Any, value: Any, place: str) -> Any:
    return None if value is None else _build(next(k for k in get_args(kind) if k is not type(None)), value, place)


def _dataclass(kind: Any, value: Any, place: str) -> Any:
    needed, hints = _shape(kind)
    names = _expect(dict, "an object", value, place).keys()
    if not needed <= names <= hints.keys():
        raise DocumentError(f"{place} lacks a field or has an unknown one; its fields are {', '.join(sorted(hints))}")
    return kind(**{name: _build(hints[name], each, f"{place}.{name}") for name, each in value.items()})


def _tuple(kind: Any, value: Any, place: str) -> Any:
    values = _expect((list, tuple), "a list", value, place)
    return tuple(_build(get_args(kind)[0], each, f"{place}[{index}]") for index, each in enumerate(values))


def _mapping(kind: Any, value: Any, place: str) -> Any:
    return _expect(dict, "an object", value, place)


def _member(kind: Any, value: Any, place: str) -> Any:
    try:
        return kind(value)
    except ValueError:
        raise DocumentError(f"{place} is no {kind.__name__} that this version knows") from None


def _float(kind: Any, value: Any, place: str) -> Any:
    return float(value) if type(value) is int else _scalar(kind, value, place)


def _scalar(kind: Any, value: Any, place: str) -> Any:
    # Its type is not the wanted one, or it would have been returned as it is.
    raise wrong_type(place, kind.__name__, value)


def _expect(kind: type | tuple[type, ...], wanted: str, value: Any, place: str) -> Any:
    if not isinstance(value, kind):
        raise wrong_type(place, wanted, value)
    return value


_BUILDERS: tuple[tuple[Callable[[Any], bool], Callable[[Any, Any, str], Any]], ...] = (
    (lambda kind: get_origin(kind) in (Union, UnionType), _optional),
    (is_dataclass, _dataclass),
    (lambda kind: get_origin(kind) is tuple, _tuple),
    (lambda kind: get_origin(kind) is not None, _mapping),
    (lambda kind: isinstance(kind, type) and issubclass(kind, StrEnum), _member),
    (lambda kind: kind is Any, lambda kind, value, place: value),
    (lambda kind: kind is float, _float),
    (lambda kind: True, _scalar),
)
"""What builds the values of a type; the first that fits."""
