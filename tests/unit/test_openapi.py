"""What a schema says of an apply, shown with a small one; apiserver/test_drift_schemas.py asks a real API server."""

from typing import Any

import pytest

from tests.apiserver.openapi import Edit, edits, places

JSON = dict[str, Any]
TEXT = {"type": "string"}
PORT = {"properties": {"port": {"type": "integer"}, "protocol": TEXT | {"default": "TCP"}, "name": TEXT}}
SPEC: JSON = {
    "properties": {
        "labels": {"additionalProperties": TEXT},
        "nodes": {"additionalProperties": TEXT, "x-kubernetes-map-type": "atomic"},
        "arguments": {"type": "array", "items": TEXT},
        "ports": {
            "type": "array",
            # As the API server writes the items of its own kinds.
            "items": {"allOf": [{"$ref": "#/components/schemas/Port"}], "default": {}},
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["port", "protocol"],
        },
        "rules": {"type": "array", "items": {"$ref": "#/components/schemas/Port"}},
    }
}
KIND: JSON = {
    "properties": {"apiVersion": TEXT, "kind": TEXT, "spec": SPEC},
    "x-kubernetes-group-version-kind": [{"group": "example.com", "version": "v1", "kind": "Example"}],
}
DOCUMENTS = {"example.com/v1": {"components": {"schemas": {"Example": KIND, "Port": PORT}}}}


def edited(**spec: Any) -> dict[str, Edit]:
    """The edits of an object with this spec, by their words without the kind and the spec."""
    body = {"apiVersion": "example.com/v1", "kind": "Example", "spec": spec}
    found = list(edits(DOCUMENTS, [body, body]))
    assert all(each.before == body for each in found), "no edit is made to the object that was given"
    return {each.what.removeprefix("Example spec."): each for each in found if each.what.startswith("Example spec.")}


def undone(**spec: Any) -> dict[str, tuple[Any, bool]]:
    """What each of them makes of the only field, and whether an apply undoes it."""
    ((field, _),) = spec.items()
    return {what: (each.after["spec"][field], each.undone) for what, each in edited(**spec).items()}


def test_an_entry_of_others_stays_but_for_maps_that_are_one() -> None:
    assert undone(labels={"a": "1"}) == {"labels: another entry": ({"a": "1", "x": "1"}, False)}
    assert undone(nodes={"a": "1"}) == {"nodes: another entry": ({"a": "1", "x": "1"}, True)}


def test_a_list_without_keys_is_replaced() -> None:
    assert undone(arguments=["a", "b"]) == {
        "arguments: another item": (["a", "b", "b"], True),
        "arguments: the items in another order": (["b", "a"], True),
    }
    assert undone(arguments=[]) == {"arguments: another item": ([{}], True)}


def test_items_are_merged_by_their_keys_and_by_the_keys_defaults() -> None:
    http, grpc = {"port": 1, "name": "http"}, {"port": 2, "protocol": "TCP"}
    full = http | {"protocol": "TCP"}
    assert undone(ports=[http, grpc]) == {
        "ports: another item by its port": ([http, grpc, full | {"port": 1001}], False),
        "ports: another item by its protocol": ([http, grpc, full | {"protocol": "TCP-other"}], False),
        "ports: the items in another order": ([grpc, http], False),
        "ports: the defaults of its keys": ([full, grpc], False),
        "ports.[]: protocol added": ([http | {"protocol": "TCP-other"}, grpc], True),
        "ports.[]: the default of protocol": ([full, grpc], False),
        "ports.[]: name added": ([http, grpc | {"name": "None-other"}], False),
    }
    assert undone(ports=[]) == {}


def test_below_what_is_replaced_only_the_defaults_stay() -> None:
    rule = {"port": 1, "name": "a"}
    assert undone(rules=[rule]) == {
        "rules: another item": ([rule, rule], True),
        "rules.[]: protocol added": ([rule | {"protocol": "TCP-other"}], True),
        "rules.[]: the default of protocol": ([rule | {"protocol": "TCP"}], False),
    }


def test_a_field_that_no_schema_has_is_named() -> None:
    with pytest.raises(KeyError, match=r"no schema has the field spec\.ports\.0\.prot"):
        edited(ports=[{"port": 1, "prot": "UDP"}])


def test_a_place_is_named_by_the_field_that_holds_it() -> None:
    body = {"apiVersion": "example.com/v1", "kind": "Example", "spec": {"ports": [{"port": 1}], "rules": []}}
    assert [(each.name, each.keys, each.replaced) for each in places(DOCUMENTS, body)] == [
        ("", (), False),
        ("spec", (), False),
        ("ports", ("port", "protocol"), False),
        ("ports", ("port", "protocol"), False),
        ("rules", (), True),
    ]
