"""The API server of a folder: what an apply keeps, what a restart knows, and what the next pass is told."""

from pathlib import Path
from typing import Any

import pytest

from triton_local.objects import Objects
from triton_operator.kube.errors import ConflictError, NotFoundError
from triton_operator.kube.kinds import CONFIG_MAP
from triton_operator.kube.managed_fields import is_applied, owned

Body = dict[str, Any]
OBJECT: Body = {"metadata": {"name": "digits"}, "spec": {"source": {"uri": "pvc://models"}}}


def a_map(**data: str) -> Body:
    metadata = {"name": "digits-results", "namespace": "default", "labels": {"a": "b"}, "annotations": {"c": "d"}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def objects(folder: Path, desired: Body = OBJECT) -> Objects:
    return Objects(folder / "objects.json", desired, {"here": {"gpu": "H200"}}, lambda _: None)


def test_an_apply_keeps_what_the_server_has_set(tmp_path: Path) -> None:
    api = objects(tmp_path)
    first = api.apply_new(a_map(x="1"))
    api.set_status("ConfigMap", "digits-results", {"seen": True})
    second = api.apply(a_map(y="2"))
    for name in ("uid", "creationTimestamp"):
        assert second["metadata"][name] == first["metadata"][name]
    assert second["data"] == {"y": "2"}
    assert second["status"] == {"seen": True}
    assert int(second["metadata"]["resourceVersion"]) > int(first["metadata"]["resourceVersion"])
    assert is_applied(second)
    assert "f:y" in owned(second)["f:data"]
    with pytest.raises(ConflictError):
        api.apply_new(a_map())


def test_what_is_returned_is_a_copy(tmp_path: Path) -> None:
    api = objects(tmp_path)
    api.apply(a_map(x="1"))["data"]["x"] = "2"
    found = api.get(CONFIG_MAP, "default", "digits-results")
    assert found is not None
    assert found["data"] == {"x": "1"}


def test_a_restart_knows_all_but_pods_and_an_edit_is_a_new_generation(tmp_path: Path) -> None:
    api = objects(tmp_path)
    api.apply(a_map(x="1"))
    api.add({"kind": "Pod", "metadata": {"name": "a-pod"}, "status": {}})
    owner = api.owner(api.key)
    assert owner is not None
    api.apply_status({**owner, "status": {"ready": True}})
    api.save()
    again = objects(tmp_path)
    known = again.owner(again.key)
    assert known is not None
    assert (known["metadata"]["uid"], known["metadata"]["generation"]) == (owner["metadata"]["uid"], 1)
    assert known["status"] == {"ready": True}
    assert [each["kind"] for each in again.children(again.key)] == ["ConfigMap"]
    edited = objects(tmp_path, OBJECT | {"spec": {"source": {"uri": "pvc://others"}}}).owner(again.key)
    assert edited is not None
    assert edited["metadata"]["generation"] == 2


def test_what_is_gone_is_not_there(tmp_path: Path) -> None:
    api = objects(tmp_path)
    stored = api.apply(a_map(x="1"))
    api.disown(stored, {"labels": {"a": "b"}})
    found = api.find("ConfigMap", "digits-results")
    assert found is not None
    assert (found["metadata"]["labels"], found["metadata"]["annotations"]) == ({}, {"c": "d"})
    api.delete(stored)
    assert api.get(CONFIG_MAP, "default", "digits-results") is None
    with pytest.raises(NotFoundError):
        api.own(stored)


def test_every_change_wakes_and_the_labels_of_the_machine_are_known(tmp_path: Path) -> None:
    api = objects(tmp_path)
    api.changed.clear()
    api.apply(a_map())
    assert api.changed.is_set()
    assert (api.has_node("gpu", "H200"), api.has_node("gpu", "T4")) == (True, False)
    assert api.node_labels("here") == {"gpu": "H200"}
