"""Says what a faulty field means, or where a misplaced one belongs, in the schema's own words. Pure."""

import difflib
import re
from collections.abc import Iterator

from triton_plugin.drafting.validation.structural import Fault, Schema

LONGEST_LIST = 3
"""Places of a misplaced field; one that has more is too common a name to guess by."""


def hint(fault: Fault, schema: Schema) -> str:
    """Return words that help with a fault; empty: there are none."""
    if fault.is_unknown:
        return _belongs(fault.path, schema)
    found = _at(schema, fault.path) if fault.is_mistyped else None
    return _means(found) if found is not None else ""


def _means(schema: Schema) -> str:
    """The first sentence of a field's description, and another one that gives an example."""
    first, *others = re.split(r"(?<=[.])\s+", schema.get("description", ""))
    return " ".join([first, *(each for each in others if "such as" in each)][:2])


def _belongs(path: str, schema: Schema) -> str:
    """Where fields with the name of an unknown one are, or else the field beside it with a name like it."""
    parent, _, name = path.rpartition(".")
    places = [each for each in _paths(schema, "") if each.rpartition(".")[2] == name]
    if not 0 < len(places) <= LONGEST_LIST:
        siblings = (_at(schema, parent) or {}).get("properties", {})
        places = [f"{parent}.{each}".lstrip(".") for each in difflib.get_close_matches(name, siblings, n=1)]
    return f"Did you mean {' or '.join(places)}?" if places else ""


def _paths(schema: Schema, path: str) -> Iterator[str]:
    """Yield the paths of all fields, such as `spec.models[].name`."""
    for name, each in schema.get("properties", {}).items():
        place = f"{path}.{name}" if path else name
        if place == "status":
            continue
        yield place
        yield from _paths(each, place)
        yield from _paths(each.get("items", {}), f"{place}[]")


def _at(schema: Schema, path: str) -> Schema | None:
    """The schema of a path such as `spec.models[0].name`; None: it is in a map, or nowhere."""
    found: Schema | None = schema
    for part in filter(None, path.split(".")):
        name, *numbers = part.split("[")
        found = (found or {}).get("properties", {}).get(name)
        for _ in numbers:
            found = (found or {}).get("items")
    return found
