"""Stored objects with old names: kept by the CRD, refused by the operator, and nothing is started or deleted."""

from copy import deepcopy
from typing import Any

import pytest

from tests.upgrades.stored import STORED, state
from triton_operator.api.renamed import found, rewritten
from triton_operator.api.triton_deployment import parse_status
from triton_operator.crdgen import crd
from triton_operator.kube.kinds import kind_of
from triton_operator.runtime.metrics import Metrics
from triton_operator.runtime.reconcile import Reconciler
from triton_operator.runtime.store import Key, Store
from triton_plugin.validation.cel import broken
from triton_plugin.validation.structural import faults, pruned

Body = dict[str, Any]
OLD = [name for name in STORED if list(found(STORED[name]["body"]["spec"]))]
"""The states whose spec has old names."""
KEY = Key("vision", "digits")


class Api:
    """An API server that takes a status, Events, and what ends a canary. It has nothing else: no object is deleted."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.events: list[Body] = []
        self.applied: list[str] = []

    def apply_status(self, body: Body) -> Body:
        key = Key(body["metadata"]["namespace"], body["metadata"]["name"])
        found = deepcopy(self._store.owner(key) or {})
        found["metadata"]["resourceVersion"] = "1000"
        return found | {"status": deepcopy(body["status"])}

    def apply(self, body: Body) -> Body:
        name = body["metadata"]["name"]
        self.applied.append(name)
        stored = next(each for each in self._store.children(KEY) if each["metadata"]["name"] == name)
        return body | {"metadata": stored["metadata"] | {"resourceVersion": "1000"}}

    def create_event(self, body: Body) -> None:
        self.events.append(body)


def test_the_states_have_old_names() -> None:
    assert len(OLD) > len(STORED) / 2
    assert len(OLD) < len(STORED)


@pytest.mark.parametrize("name", OLD)
def test_an_old_name_is_told_and_what_is_there_stays(name: str) -> None:
    stored, store = state(name), Store()
    for number, body in enumerate([stored.body, *stored.children]):
        copy = deepcopy(body)
        made = {"namespace": "vision", "creationTimestamp": "2026-11-21T00:00:00Z"}
        copy["metadata"] = made | copy["metadata"] | {"resourceVersion": str(number + 1)}
        store.put(kind_of(copy), copy)
    api = Api(store)
    Reconciler(api, store, stored.settings, Metrics(), lambda: stored.now).reconcile(KEY)  # type: ignore[arg-type]  # a stand-in
    after = (store.owner(KEY) or {})["status"]
    conditions = {each["type"]: each for each in after["conditions"]}
    assert (conditions["Stalled"]["status"], conditions["Stalled"]["reason"]) == ("True", "FieldRenamed")
    assert (conditions["Ready"]["status"], conditions["Ready"]["reason"]) == ("False", "FieldRenamed")
    assert str(next(found(stored.body["spec"]))) in conditions["Ready"]["message"]
    assert [each["reason"] for each in api.events] == ["FieldRenamed"]
    is_canary = any(each.reason == "Canary" for each in parse_status(stored.body).conditions)
    assert api.applied == (["digits-results", "digits-preview"] if is_canary else [])
    said, was = (parse_status({"status": each}).model_dump() for each in (after, stored.body["status"]))
    for field in ("images", "serving", "candidates", "endpoint", "source", "performance"):
        assert said[field] == was[field], field


def test_the_crd_takes_every_stored_object_and_prunes_none_of_it() -> None:
    schema = crd()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    for name in STORED:
        body = pruned(STORED[name]["body"])
        assert list(faults(body["spec"], schema["spec"], "spec")) == [], name
        assert list(faults(body["status"], schema["status"], "status")) == [], name


def test_no_rule_refuses_an_old_name() -> None:
    """What a rule says of an object of the simulation, it says of the same one with the new names."""
    schema = crd()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    specs = {repr(spec): spec for name in OLD if (spec := pruned(STORED[name]["body"]["spec"]))}
    for spec in specs.values():
        assert list(broken(spec, schema, "spec")) == list(broken(rewritten(spec), schema, "spec"))


def test_a_bound_may_have_either_name_but_not_be_missing() -> None:
    schema = crd()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    regression = schema["properties"]["performance"]["properties"]["regression"]
    for name in ("maximumPercent", "maxPercent"):
        assert list(faults({name: 5}, regression, "regression")) == []
        assert list(broken({name: 5}, regression, "regression")) == []
    assert [each.message for each in broken({}, regression, "regression")] == ["maxPercent is required: set it"]
