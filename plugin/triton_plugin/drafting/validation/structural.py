"""Checks values against a structural schema as the API server does, with its messages. Pure.

Patterns have RE2's syntax, as in the API server: `$` matches only the end of the text, not before a last newline.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from types import UnionType
from typing import Any, NamedTuple

import re2

Schema = Mapping[str, Any]


class Fault(NamedTuple):
    """One fault of an object."""

    path: str
    """``spec.models[0].name``; empty: the whole object."""
    message: str
    is_unknown: bool = False
    """Whether the schema has no such field."""
    is_mistyped: bool = False
    """Whether the value has another type than the field."""

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class UnknownKeywordError(ValueError):
    """The schema has a keyword that is not checked here; a wrong "valid" would be worse."""


_SURROGATE = re.compile("[\ud800-\udfff]")
UNCHECKED = {
    *("type", "description", "default", "format"),
    *("x-kubernetes-validations", "x-kubernetes-int-or-string"),
}
"""Keywords without a separate check: they are used elsewhere, or constrain nothing."""


def pruned(value: Any) -> Any:
    """Return a value without null fields: no field of the API is nullable, so the API server drops them.

    The name of each field is text, as in the JSON that kubectl sends: 1 becomes "1", and true "true".
    """
    if isinstance(value, dict):
        named = {name if isinstance(name, str) else json.dumps(name): each for name, each in value.items()}
        return {name: pruned(each) for name, each in named.items() if each is not None}
    return [pruned(each) for each in value] if isinstance(value, list) else value


def not_unicode(value: Any, path: str) -> Iterator[Fault]:
    """Yield the texts of a pruned value, and names of fields, that no JSON can hold: they have a lone surrogate."""
    if isinstance(value, dict):
        for name, each in value.items():
            place = f"{path}.{name}" if path else name
            yield from not_unicode(name, f"{path}, in the name of a field")
            yield from not_unicode(each, place)
    elif isinstance(value, list):
        for number, each in enumerate(value):
            yield from not_unicode(each, f"{path}[{number}]")
    elif isinstance(value, str) and _SURROGATE.search(value):
        yield Fault(path, "is not Unicode text")


def faults(value: Any, schema: Schema, path: str) -> Iterator[Fault]:
    """Yield what the schema refuses, in the schema's order. ``value``: pruned. Raises UnknownKeywordError."""
    kind = "integer,string" if schema.get("x-kubernetes-int-or-string") else schema["type"]
    if not _TYPES[kind](value):
        yield Fault(path, f"must be of type {kind}", is_mistyped=True)
        return
    for keyword, wanted in schema.items():
        if keyword in _CHECKS:
            yield from _CHECKS[keyword](value, wanted, path)
        elif keyword in _OF_MAPS:
            continue
        elif keyword not in UNCHECKED:
            raise UnknownKeywordError(f"{path}: the schema's keyword {keyword} is not checked by this version")
    if kind == "object":
        yield from _fields(value, schema, path)


def _integer(value: Any) -> bool:
    return (isinstance(value, int) and not isinstance(value, bool)) or (isinstance(value, float) and value.is_integer())


_TYPES: Mapping[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "integer": _integer,
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "integer,string": lambda value: isinstance(value, str) or _integer(value),
}
_OF_MAPS = {"properties", "additionalProperties", "x-kubernetes-preserve-unknown-fields"}


def _fields(value: dict[str, Any], schema: Schema, path: str) -> Iterator[Fault]:
    properties, others = schema.get("properties"), schema.get("additionalProperties")
    free = bool(schema.get("x-kubernetes-preserve-unknown-fields"))
    for name, each in value.items():
        place = f"{path}.{name}" if path else name
        if properties is not None and name in properties:
            yield from faults(each, properties[name], place)
        elif isinstance(others, Mapping):
            yield from faults(each, others, place)
        elif not free and properties is not None:
            yield Fault(place, "unknown field", is_unknown=True)


def _enum(value: Any, wanted: list[Any], path: str) -> Iterator[Fault]:
    if value not in wanted:
        yield Fault(path, "supported values: " + ", ".join(f'"{each}"' for each in wanted))


def _pattern(value: Any, wanted: str, path: str) -> Iterator[Fault]:
    if isinstance(value, str) and re2.search(wanted, value) is None:
        yield Fault(path, f"should match '{wanted}'")


def _required(value: dict[str, Any], wanted: list[str], path: str) -> Iterator[Fault]:
    for name in wanted:
        if name not in value:
            yield Fault(f"{path}.{name}" if path else name, "Required value")


def _items(value: list[Any], wanted: Schema, path: str) -> Iterator[Fault]:
    for number, each in enumerate(value):
        yield from faults(each, wanted, f"{path}[{number}]")


def _unique(value: list[Any], wanted: list[str], path: str) -> Iterator[Fault]:
    seen = []
    for number, each in enumerate(value):
        if not isinstance(each, dict):
            continue
        key = [each.get(name) for name in wanted]
        if key in seen:
            yield Fault(f"{path}[{number}]", "Duplicate value")
        seen.append(key)


def _set(value: list[Any], wanted: str, path: str) -> Iterator[Fault]:
    for number, each in enumerate(value):
        if wanted == "set" and each in value[:number]:
            yield Fault(f"{path}[{number}]", "Duplicate value")


def _bound(
    kind: type | UnionType, broken: Callable[[Any, int], bool], words: str
) -> Callable[[Any, int, str], Iterator[Fault]]:
    """Return the check of a bound on values of a type; a value of another type has none."""

    def check(value: Any, wanted: int, path: str) -> Iterator[Fault]:
        if isinstance(value, kind) and broken(value, wanted):
            yield Fault(path, words.format(wanted, "" if wanted == 1 else "s"))

    return check


_CHECKS: Mapping[str, Callable[[Any, Any, str], Iterator[Fault]]] = {
    "enum": _enum,
    "pattern": _pattern,
    "required": _required,
    "items": _items,
    "x-kubernetes-list-map-keys": _unique,
    "x-kubernetes-list-type": _set,
    "minimum": _bound(int | float, lambda value, wanted: value < wanted, "should be greater than or equal to {}"),
    "maximum": _bound(int | float, lambda value, wanted: value > wanted, "should be less than or equal to {}"),
    "minLength": _bound(str, lambda value, wanted: len(value) < wanted, "should be at least {} chars long"),
    "maxLength": _bound(str, lambda value, wanted: len(value) > wanted, "Too long: may not be more than {}"),
    "minItems": _bound(list, lambda value, wanted: len(value) < wanted, "should have at least {} items"),
    "maxItems": _bound(list, lambda value, wanted: len(value) > wanted, "must have at most {} item{}"),
    "maxProperties": _bound(dict, lambda value, wanted: len(value) > wanted, "must have at most {} item{}"),
}
