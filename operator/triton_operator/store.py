"""The latest known TritonDeployments and their children, in memory: written by watch events and by our own writes.

Passes read it from threads of their own, hence the lock. Objects are never changed once they are in.
"""

import threading
from collections import defaultdict
from collections.abc import Iterable
from typing import Any, NamedTuple

from triton_operator.drift import FIELD_MANAGER
from triton_operator.kinds import TRITON_DEPLOYMENT, Kind
from triton_operator.names import DEPLOYMENT_LABEL

REMEMBERED_DELETIONS = 10_000


class Key(NamedTuple):
    """A TritonDeployment."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class Store:
    """An informer's cache: what was seen last of every object.

    An older version never replaces a newer one nor undoes a deletion: a write's response and the watch event of a
    later change arrive in any order.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._objects: dict[Kind, dict[Key, dict[str, Any]]] = defaultdict(dict)
        self._children: dict[Key, dict[tuple[Kind, str], dict[str, Any]]] = defaultdict(dict)
        self._deleted: dict[str, int] = {}

    def put(self, kind: Kind, body: dict[str, Any]) -> Key | None:
        """Take in an object. The TritonDeployment it is or belongs to; None where it says nothing new."""
        with self._lock:
            return self._put(kind, body)

    def remove(self, kind: Kind, body: dict[str, Any]) -> Key | None:
        """Forget a deleted object. The TritonDeployment it was or belonged to.

        It may be alive and only have lost the label that the watch selects by: a later version is taken in again.
        """
        with self._lock:
            return self._remove(kind, body, _version(body))

    def replace(
        self, kind: Kind, namespace: str | None, bodies: Iterable[dict[str, Any]], resource_version: str
    ) -> set[Key]:
        """Take in a complete list of a kind (in a namespace, or in all), as of a resource version.

        What is not in the list and not newer than it is gone: a watch that was interrupted for long never says so.
        Returns the TritonDeployments that are concerned.
        """
        with self._lock:
            changed: set[Key | None] = set()
            listed = set()
            for body in bodies:
                listed.add(_key(body))
                changed.add(self._put(kind, body))
            for key, body in list(self._objects[kind].items()):
                gone = key not in listed and _version(body) <= int(resource_version)
                if gone and namespace in (None, key.namespace):
                    changed.add(self._remove(kind, body, int(resource_version)))
            return {key for key in changed if key is not None}

    def deployment(self, key: Key) -> dict[str, Any] | None:
        """A TritonDeployment's body; None where there is none."""
        with self._lock:
            return self._objects[TRITON_DEPLOYMENT].get(key)

    def deployments(self) -> list[dict[str, Any]]:
        """All TritonDeployments' bodies."""
        with self._lock:
            return list(self._objects[TRITON_DEPLOYMENT].values())

    def children(self, key: Key) -> list[dict[str, Any]]:
        """The objects that carry the label of a TritonDeployment, whoever controls them."""
        with self._lock:
            return list(self._children[key].values()) if key in self._children else []

    def _put(self, kind: Kind, body: dict[str, Any]) -> Key | None:
        key, known = _key(body), self._objects[kind].get(_key(body))
        if _version(body) <= self._deleted.get(body["metadata"]["uid"], -1):
            return None
        if known is not None and _version(known) >= _version(body):
            return None
        body = _trimmed({"apiVersion": kind.api_version, "kind": kind.kind, **body})
        if known is not None and _owner(kind, known) != _owner(kind, body):
            self._unlink(kind, known)
        self._objects[kind][key] = body
        owner = _owner(kind, body)
        if owner is not None and kind is not TRITON_DEPLOYMENT:
            self._children[owner][kind, key.name] = body
        return owner

    def _remove(self, kind: Kind, body: dict[str, Any], version: int) -> Key | None:
        uid = body["metadata"]["uid"]
        self._deleted[uid] = version
        if len(self._deleted) > REMEMBERED_DELETIONS:
            del self._deleted[next(iter(self._deleted))]
        known = self._objects[kind].get(_key(body))
        if known is None or known["metadata"]["uid"] != uid or _version(known) > version:
            return None
        del self._objects[kind][_key(body)]
        return self._unlink(kind, known)

    def _unlink(self, kind: Kind, body: dict[str, Any]) -> Key | None:
        owner = _owner(kind, body)
        if owner is not None and kind is not TRITON_DEPLOYMENT:
            children = self._children[owner]
            children.pop((kind, body["metadata"]["name"]), None)
            if not children:
                del self._children[owner]
        return owner


def _key(body: dict[str, Any]) -> Key:
    return Key(body["metadata"]["namespace"], body["metadata"]["name"])


def _owner(kind: Kind, body: dict[str, Any]) -> Key | None:
    if kind is TRITON_DEPLOYMENT:
        return _key(body)
    name = body["metadata"].get("labels", {}).get(DEPLOYMENT_LABEL)
    return None if name is None else Key(body["metadata"]["namespace"], name)


def _version(body: dict[str, Any]) -> int:
    """Resource versions of one kind are ordered (Kubernetes 1.35 promises what etcd always did)."""
    return int(body["metadata"]["resourceVersion"])


def _trimmed(body: dict[str, Any]) -> dict[str, Any]:
    """Without others' managed fields: half of an object's size, and only ours say anything to drift.py."""
    entries = body["metadata"].get("managedFields", [])
    ours = [
        entry
        for entry in entries
        if entry.get("manager") == FIELD_MANAGER and entry.get("operation") == "Apply" and not entry.get("subresource")
    ]
    return {**body, "metadata": {**body["metadata"], "managedFields": ours}}
