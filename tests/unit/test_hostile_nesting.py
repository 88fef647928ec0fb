"""An object that is nested deeper than Python reads costs itself, and no other."""

import json
from typing import Any
from unittest import mock

import pytest

from tests.simulation.deployments import a_spec
from triton_operator.api.triton_deployment import InvalidSpecError, parse
from triton_operator.kube import nesting
from triton_operator.kube.cluster import Cluster
from triton_operator.kube.connection import Connection
from triton_operator.kube.drift import drift
from triton_operator.kube.kinds import DEPLOYMENT, TRITON_DEPLOYMENT
from triton_operator.kube.managed_fields import FIELD_MANAGER
from triton_operator.kube.nesting import LEVELS
from triton_operator.names import TRITON_DEPLOYMENT_LABEL
from triton_operator.observed.active_record import ActiveRecord
from triton_operator.runtime.store import Key, Store

DEEPEST = 9_995
"""The API server takes 10,000 levels of an object."""
DEPTHS = (40, 300, 900, 990, 1_100, 3_000, DEEPEST)


def body_text(levels: int) -> str:
    metadata = {"name": "a", "namespace": "t", "uid": "u", "resourceVersion": "7", "generation": 1}
    deep = "[" * levels + "]" * levels
    spec = json.dumps(a_spec())[:-1]
    return f'{{"metadata":{json.dumps(metadata)},"spec":{spec},"pod":{{"affinity":{{"podAffinity":{deep}}}}}}}}}'


def connection(*answers: str) -> Connection:
    """A connection that gets these answers, whose chunks end anywhere."""
    made = Connection.__new__(Connection)

    def answer(*_: Any) -> Any:
        text = answers_left.pop(0).encode()
        chunks = [text[begin : begin + 1000] for begin in range(0, len(text), 1000)]
        return mock.Mock(read=lambda: text, response=mock.Mock(stream=lambda amt: iter(chunks)))

    answers_left = list(answers)
    made._answer = answer  # type: ignore[assignment, method-assign]  # a stand-in
    return made


@pytest.mark.parametrize("levels", DEPTHS)
def test_a_list_with_a_deep_object_has_all_objects(levels: int) -> None:
    other = body_text(1).replace('"podAffinity":[]', "").replace('"u"', '"v"').replace('"a"', '"b"', 1)
    page = f'{{"metadata":{{"resourceVersion":"9"}},"items":[{body_text(levels)},{other}]}}'
    bodies, version = Cluster(connection(page)).list_all(TRITON_DEPLOYMENT, None)
    store = Store()
    store.replace(TRITON_DEPLOYMENT, None, bodies, version)
    assert parse(store.owner(Key("t", "b")) or {}).name == "b"
    with pytest.raises(InvalidSpecError, match=r"spec\.pod is nested more than 32 levels deep"):
        parse(store.owner(Key("t", "a")) or {})


@pytest.mark.parametrize("levels", DEPTHS)
def test_a_watch_goes_on_after_a_deep_object(levels: int) -> None:
    events = "".join(f'{{"type":"ADDED","object":{body_text(each)}}}\n' for each in (levels, 1))
    kinds = [event for event, _ in Cluster(connection(events)).watch(TRITON_DEPLOYMENT, None, "1")]
    assert kinds == ["ADDED", "ADDED"]


def test_only_what_is_too_deep_is_left_out() -> None:
    deep = '{"a":' * 5_000 + '"]}\\""' + "}" * 5_000
    read = nesting.loads(f'{{"before":["[{{",1],"deep":{deep},"after":{{"b":[true,"\\\\"]}}}}'.encode())
    assert (read["before"], read["after"]) == (["[{", 1], {"b": [True, "\\"]})
    for _ in range(LEVELS - 1):
        read = read.get("deep", read.get("a"))
    assert read == {"a": None}


def test_what_is_not_json_is_an_error_however_deep() -> None:
    with pytest.raises(ValueError, match="Expecting"):
        nesting.loads(b"[" * 100_000)


@pytest.mark.parametrize("levels", DEPTHS)
def test_a_record_that_is_nested_counts_as_absent(levels: int) -> None:
    deep = '{"a":' * levels + "1" + "}" * levels
    text = f'{{"server":"s","uid":"u","revision":"r","model":"m","deployment":{deep}}}'
    with pytest.raises(ValueError, match="nested more than 32 levels"):
        ActiveRecord.from_json(text)


@pytest.mark.parametrize("levels", DEPTHS)
def test_what_somebody_writes_in_the_operators_name_is_nothing_it_set(levels: int) -> None:
    fields: dict[str, Any] = {}
    for _ in range(levels):
        fields = {"f:a": fields}
    metadata = {"name": "digits-0", "namespace": "t", "uid": "u", "resourceVersion": "7"}
    entry = {"manager": FIELD_MANAGER, "operation": "Apply", "fieldsV1": fields}
    labels = {TRITON_DEPLOYMENT_LABEL: "digits"}
    store = Store()
    store.put(DEPLOYMENT, {"metadata": metadata | {"labels": labels, "managedFields": [entry]}})
    (found,) = store.children(Key("t", "digits"))
    assert drift({"metadata": {"name": "digits-0"}}, found) == ("a" if levels < LEVELS else None)


def test_a_deep_key_of_a_list_is_no_key_of_the_operators() -> None:
    deep = "v:" + "[" * 5_000 + "]" * 5_000
    fields: dict[str, Any] = {"f:spec": {"f:values": {deep: {}}}}
    entry = {"manager": FIELD_MANAGER, "operation": "Apply", "fieldsV1": fields}
    body = {"metadata": {"managedFields": [entry]}, "spec": {"values": ["a"]}}
    assert drift({"spec": {"values": ["a"]}}, body) is not None
