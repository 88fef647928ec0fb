"""What the API server finds wrong in a value by a structural schema. A field that the schema does not name counts."""

import re
from collections.abc import Iterator
from typing import Any

TYPES: dict[str, tuple[type[Any], ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
}
BOUNDS = (
    ("minimum", lambda value, bound: value >= bound),
    ("maximum", lambda value, bound: value <= bound),
    ("minLength", lambda value, bound: len(value) >= bound),
    ("maxLength", lambda value, bound: len(value) <= bound),
    ("minItems", lambda value, bound: len(value) >= bound),
    ("maxItems", lambda value, bound: len(value) <= bound),
    ("maxProperties", lambda value, bound: len(value) <= bound),
    ("enum", lambda value, known: value in known),
    ("pattern", lambda value, pattern: re.search(pattern, value) is not None),
)
"""The keywords that hold a value to something, and whether it keeps to that."""


def faults(value: Any, schema: dict[str, Any], place: str = "") -> Iterator[str]:
    """Yield what is wrong, with its place."""
    kind, known_type = schema["type"], TYPES[schema["type"]]
    if not isinstance(value, known_type) or (isinstance(value, bool) and kind != "boolean"):
        yield f"{place} is {value!r}, not of type {kind}"
        return
    for keyword, holds in BOUNDS:
        if keyword in schema and not holds(value, schema[keyword]):
            yield f"{place} is {str(value)[:100]!r}, and {keyword} is {schema[keyword]}"
    if kind == "array":
        for number, each in enumerate(value):
            yield from faults(each, schema["items"], f"{place}[{number}]")
    if kind == "object":
        yield from (f"{place} lacks {name}" for name in schema.get("required", ()) if name not in value)
        known, others = schema.get("properties", {}), schema.get("additionalProperties")
        for name, each in value.items():
            below = known.get(name, others)
            if below is not None:
                yield from faults(each, below, f"{place}.{name}")
            elif not schema.get("x-kubernetes-preserve-unknown-fields"):
                yield f"{place} has the unknown field {name}"
