"""An object with thousands of labels takes little of the operator's memory, and is told to have fewer."""

import json
from typing import Any

import pytest

from triton_operator.api.triton_deployment import (
    LONGEST_LABELS_BYTES,
    InvalidSpecError,
    parse,
    parse_kept,
)
from triton_operator.kube.kinds import TRITON_DEPLOYMENT
from triton_operator.names import RETRY_ANNOTATION
from triton_operator.runtime.store import Key, Store


def labelled(count: int) -> dict[str, Any]:
    labels = {f"{'team' * 50}.example/{number:0>60}": f"{number:0>63}" for number in range(count)}
    metadata = {"name": "digits", "namespace": "vision", "uid": "uid", "generation": 1}
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": "x" * 200_000, RETRY_ANNOTATION: "1"}
    more = {"resourceVersion": "1", "labels": labels, "annotations": annotations}
    spec = {"source": {"uri": "pvc://models"}, "models": [{"name": "digits", "format": "onnx", "path": "a.onnx"}]}
    return {"apiVersion": "v", "kind": "k", "metadata": metadata | more, "spec": spec}


def annotated(count: int) -> dict[str, Any]:
    body = labelled(0)
    body["metadata"]["annotations"] |= {f"team.example/{number}": "x" * 100 for number in range(count)}
    return body


def long_status() -> dict[str, Any]:
    return labelled(0) | {"status": {"candidates": [{"message": "x" * 1_000_000}]}}


@pytest.mark.parametrize("body", [labelled(3_800), annotated(2_000), long_status()], ids=["labels", "notes", "status"])
def test_an_owner_takes_little_memory_whatever_it_holds(body: dict[str, Any]) -> None:
    store = Store()
    assert len(json.dumps(body)) > 200_000
    store.seen(TRITON_DEPLOYMENT, None, body)
    known = store.owner(Key("vision", "digits"))
    assert known is not None
    assert len(json.dumps(known)) < 2 * LONGEST_LABELS_BYTES


@pytest.mark.parametrize("count", [100, 2_000, 3_800])
def test_too_many_labels_are_refused_as_they_are_kept(count: int) -> None:
    store = Store()
    store.seen(TRITON_DEPLOYMENT, None, labelled(count))
    body = store.owner(Key("vision", "digits"))
    assert body is not None
    with pytest.raises(InvalidSpecError, match=r"metadata\.labels has more than 16384 bytes.*: remove labels"):
        parse(body)
    assert parse_kept(body).labels == {}, "what is restored for it has none"


def test_labels_within_the_bound_are_handed_on() -> None:
    store = Store()
    store.seen(TRITON_DEPLOYMENT, None, labelled(20))
    body = store.owner(Key("vision", "digits"))
    assert body is not None
    found = parse(body)
    assert (len(found.labels), bool(found.retry)) == (20, True)
