"""What a server-side apply merges and what it replaces, by the schemas that an API server tells at /openapi/v3. Pure.

`edits` makes the edits that another client could make to an object, and says of each whether an apply undoes it. It
knows nothing of the operator; tests/unit/test_openapi.py shows it with a small schema.
"""

from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

Body = dict[str, Any]
Schema = Mapping[str, Any]
Path = tuple[str | int, ...]
NO_FIELDS_OF_CLIENTS = {"managedFields"}
"""The API server writes them itself."""


@dataclass(frozen=True)
class Place:
    """A list or a map of an object, and its schema."""

    path: Path
    value: Any
    schema: Schema
    items: Schema
    """The schema of a list's items; empty for a map."""
    replaced: bool
    """Whether an apply replaces the list or the map as a whole, or one that holds it."""
    keys: tuple[str, ...]
    """The fields that tell the items of a merged list apart, where it is such a list or an item of one."""

    @property
    def name(self) -> str:
        """The field that holds it, or holds the list of which it is an item; empty for the object itself."""
        return next((step for step in reversed(self.path) if isinstance(step, str)), "")

    @property
    def words(self) -> str:
        """The path without the numbers of items."""
        return ".".join(step if isinstance(step, str) else "[]" for step in self.path)


@dataclass(frozen=True)
class Edit:
    """An edit of another client."""

    what: str
    before: Body
    after: Body
    """The whole object, before it and after it."""
    undone: bool
    """Whether an apply of what was there before changes the object."""


def places(documents: Mapping[str, Schema], body: Body) -> Iterator[Place]:
    """Every list and map of an object; ``documents``: of /openapi/v3, by apiVersion. Raises KeyError for no schema."""
    schemas = documents[body["apiVersion"]]["components"]["schemas"]
    group, _, version = body["apiVersion"].rpartition("/")
    named = {"group": group, "version": version, "kind": body["kind"]}
    (root,) = (each for each in schemas.values() if named in each.get("x-kubernetes-group-version-kind", ()))
    return _places(schemas, root, body, (), False, ())


def edits(documents: Mapping[str, Schema], bodies: Iterable[Body]) -> Iterator[Edit]:
    """One edit of each sort at each path, in the first of the objects where it can be made."""
    seen = set()
    for body in bodies:
        for place in places(documents, body):
            for sort, value, undone in _edits_of(place):
                what = f"{body['kind']} {place.words}: {sort}"
                if what not in seen:
                    seen.add(what)
                    yield Edit(what, body, _with(body, place.path, value), undone)


def _places(
    schemas: Mapping[str, Schema], schema: Schema, value: Any, path: Path, replaced: bool, keys: tuple[str, ...]
) -> Iterator[Place]:
    schema = _resolved(schemas, schema)
    if isinstance(value, list):
        replaced = replaced or schema.get("x-kubernetes-list-type", "atomic") == "atomic"
        keys = () if replaced else tuple(schema.get("x-kubernetes-list-map-keys", ()))
        yield Place(path, value, schema, _resolved(schemas, schema["items"]), replaced, keys)
        for number, item in enumerate(value):
            yield from _places(schemas, schema["items"], item, (*path, number), replaced, keys)
    elif isinstance(value, dict):
        replaced = replaced or schema.get("x-kubernetes-map-type") == "atomic"
        yield Place(path, value, schema, {}, replaced, keys)
        for name, each in value.items():
            below = schema.get("properties", {}).get(name) or schema.get("additionalProperties")
            if not below:
                raise KeyError(f"no schema has the field {'.'.join(map(str, (*path, name)))}")
            yield from _places(schemas, below, each, (*path, name), replaced, ())


def _resolved(schemas: Mapping[str, Schema], schema: Schema) -> Schema:
    """The schema with what it refers to; its own words count more."""
    found: dict[str, Any] = {}
    for part in (*schema.get("allOf", ()), schema):
        if "$ref" in part:
            found |= _resolved(schemas, schemas[part["$ref"].rpartition("/")[2]])
    return found | dict(schema)


def _edits_of(place: Place) -> Iterator[tuple[str, Any, bool]]:
    """The sort of each edit, the list or map after it, and whether an apply undoes it."""
    if isinstance(place.value, dict):
        yield from _more_fields(place)
    elif place.replaced:
        yield "another item", [*place.value, *(place.value[-1:] or [{}])], True
        if place.value[::-1] != place.value:
            yield "the items in another order", place.value[::-1], True
    elif place.value:
        first = _defaults(place.items, place.keys) | place.value[0]
        for key in place.keys:
            yield f"another item by its {key}", [*place.value, first | {key: _other(first[key])}], False
        yield "the items in another order", place.value[::-1], False
        yield "the defaults of its keys", [first, *place.value[1:]], False


def _more_fields(place: Place) -> Iterator[tuple[str, Body, bool]]:
    if "additionalProperties" in place.schema:
        yield "another entry", place.value | {"x": "1"}, place.replaced
    fields = place.schema.get("properties", {})
    for name in fields.keys() - place.value.keys() - NO_FIELDS_OF_CLIENTS:
        default = fields[name].get("default")
        # With another key it is another item, and the one that is applied is missing.
        yield f"{name} added", place.value | {name: _other(default)}, place.replaced or name in place.keys
        if default is not None:
            yield f"the default of {name}", place.value | {name: default}, False


def _defaults(schema: Schema, names: Iterable[str]) -> Body:
    fields = schema["properties"]
    return {name: fields[name]["default"] for name in names if "default" in fields[name]}


def _other(value: Any) -> Any:
    return value + 1000 if isinstance(value, int) else f"{value}-other"


def _with(body: Body, path: Path, value: Any) -> Body:
    """A copy of the object with another value at the path."""
    if not path:
        return deepcopy(value)
    result = deepcopy(body)
    node: Any = result
    for step in path[:-1]:
        node = node[step]
    node[path[-1]] = deepcopy(value)
    return result
