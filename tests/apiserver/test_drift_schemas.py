"""The tables of kube/drift.py against a real API server: its schemas, and what it makes of each object.

The operator could ask for the schemas each time it starts. It does not, because they do not tell everything: most
defaults are in the API server's code. So the tables are written by hand and held to the API server here, for every
field that the operator uses. What another version of Kubernetes merges otherwise shows with that version.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.apiserver.definitions import HTTP_ROUTES, SCALED_OBJECTS
from tests.apiserver.kubectl import Kubectl
from tests.apiserver.openapi import Place, edits, places
from tests.apiserver.operator_process import eventually
from tests.apiserver.planned import anywhere, planned, simulated_objects
from triton_operator.kube.drift import MERGED, REPLACED, drift
from triton_operator.kube.kinds import CHILDREN, JOB, OPTIONAL, POD
from triton_operator.kube.managed_fields import FIELD_MANAGER

JSON = dict[str, Any]
COMPARED = {*CHILDREN, *OPTIONAL} - {JOB, POD}
"""A Job is never changed, a pod never written."""


@pytest.fixture(scope="module")
def documents(cluster_kubectl: Kubectl) -> Iterator[dict[str, JSON]]:
    """The API server's own schemas of all versions with a kind that is compared, by apiVersion."""

    def document(api_version: str) -> JSON:
        path = f"/openapi/v3/{'apis' if '/' in api_version else 'api'}/{api_version}"
        found: JSON = json.loads(cluster_kubectl("get", "--raw", path))
        return found

    with HTTP_ROUTES.served(cluster_kubectl), SCALED_OBJECTS.served(cluster_kubectl):
        # The schema of a new kind is told a moment after the kind is served.
        eventually(lambda: all(f'"{kind}"' in json.dumps(document(kind.api_version)) for kind in OPTIONAL))
        yield {api_version: document(api_version) for api_version in {kind.api_version for kind in COMPARED}}


@pytest.fixture(scope="module")
def objects() -> list[JSON]:
    """Every object that the operator compares with what it finds, each once, for any namespace."""
    made = (anywhere(body) for body in [*planned(), *simulated_objects()])
    # As JSON: a builder's tuple is a list to the API server.
    found = [json.loads(text) for text in dict.fromkeys(map(json.dumps, made))]
    kinds = {kind.kind for kind in COMPARED}
    assert {body["kind"] for body in found} >= kinds
    return [body for body in found if body["kind"] in kinds]


@pytest.fixture(scope="module")
def used(documents: dict[str, JSON], objects: list[JSON]) -> list[Place]:
    """Every list and map of the objects, with its schema."""
    return [place for body in objects for place in places(documents, body)]


def test_drift_is_what_an_apply_undoes(documents: dict[str, JSON], objects: list[JSON]) -> None:
    """Drift that an apply does not undo is written without end; what it would undo and is no drift stays for good."""
    made = list(edits(documents, objects))
    assert len(made) > 400, "the walk through the schemas ended early"
    endless = [each.what for each in made if not each.undone and drift(each.before, each.after) is not None]
    hidden = [each.what for each in made if each.undone and drift(each.before, each.after) is None]
    assert (endless, hidden) == ([], [])


def test_a_list_is_merged_by_the_keys_of_its_schema(used: list[Place]) -> None:
    keys: dict[str, set[str]] = {}
    for place in used:
        if isinstance(place.value, list) and place.keys:
            keys.setdefault(place.name, set()).update(place.keys)
    assert {name: set(row) for name, row in MERGED.items()} == keys


def test_each_field_that_is_said_to_be_replaced_is_one(used: list[Place]) -> None:
    assert {place.name for place in used if place.replaced} >= REPLACED


@pytest.mark.usefixtures("documents")
def test_what_the_api_server_makes_of_an_object_is_no_drift(objects: list[JSON], kubectl_shared: Kubectl) -> None:
    """Its defaults are in its code, and it leaves out some fields that are empty, false or 0."""
    asked = ("apply", "--server-side", "--dry-run=server", f"--field-manager={FIELD_MANAGER}", "--show-managed-fields")
    made = json.loads(kubectl_shared(*asked, "-o", "json", "-f", "-", body=objects))["items"]
    drifting = [
        f"{body['kind']} {body['metadata']['name']}: {field}"
        for body, found in zip(objects, made, strict=True)
        if (field := drift(body, found)) is not None
    ]
    assert drifting == []
