"""The latest known TritonDeployments and their children, in memory: written by watch events and by our own writes.

Passes read it from threads of their own, hence the lock. A body is kept as compressed JSON and parsed anew for each
pass: a small part of the memory of its dicts, nothing for the garbage collector to look through, and never changed.
Objects of a kind look alike, so the first one of each kind is the dictionary that the others are compressed with.
"""

import json
import threading
import zlib
from collections import defaultdict
from collections.abc import Iterable
from typing import Any, NamedTuple

from triton_operator.drift import FIELD_MANAGER
from triton_operator.kinds import EVENT, TRITON_DEPLOYMENT, Kind
from triton_operator.names import DEPLOYMENT_LABEL

REMEMBERED_DELETIONS = 10_000


class Key(NamedTuple):
    """A TritonDeployment."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class _Known(NamedTuple):
    """What was seen last of an object."""

    uid: str
    version: int
    owner: Key | None
    """The TritonDeployment it is or belongs to."""
    packed: bytes


class Store:
    """An informer's cache: what was seen last of every object.

    An older version never replaces a newer one nor undoes a deletion: a write's response and the watch event of a
    later change arrive in any order.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._objects: dict[Kind, dict[Key, _Known]] = defaultdict(dict)
        self._samples: dict[Kind, bytes] = {}
        """By kind, the compression's dictionary; never changed once it is there."""
        self._children: dict[Key, dict[tuple[Kind, str], _Known]] = defaultdict(dict)
        self._deleted: dict[str, int] = {}
        self._owners: dict[str, Key] = {}
        """By uid of a child: an Event names what it is about by it."""
        self._reasons: dict[Key, str] = {}
        self._claims: dict[Key, str] = {}
        """The user's claim that a TritonDeployment names; empty: it has its own."""

    def put(self, kind: Kind, body: dict[str, Any]) -> Key | None:
        """Take in an object. The TritonDeployment it is or belongs to; None where it says nothing new."""
        with self._lock:
            return self._put(kind, body)

    def remove(self, kind: Kind, body: dict[str, Any]) -> Key | None:
        """Forget a deleted object. The TritonDeployment it was or belonged to.

        It may be alive and only have lost the label that the watch selects by: a later version is taken in again.
        """
        with self._lock:
            return self._remove(kind, _key(body), body["metadata"]["uid"], _version(body))

    def replace(
        self, kind: Kind, namespace: str | None, bodies: Iterable[dict[str, Any]], resource_version: str
    ) -> set[Key]:
        """Take in a complete list of a kind (in a namespace, or in all), as of a resource version.

        What is not in the list and not newer than it is gone: a watch that was interrupted for long never says so.
        Returns the TritonDeployments that are concerned.
        """
        changed: set[Key | None] = set()
        listed = set()
        for body in bodies:
            listed.add(_key(body))
            changed.add(self.put(kind, body))
        version = int(resource_version)
        with self._lock:
            for key, known in list(self._objects[kind].items()):
                gone = key not in listed and known.version <= version
                if gone and namespace in (None, key.namespace):
                    changed.add(self._remove(kind, key, known.uid, version))
        return {key for key in changed if key is not None}

    def deployment(self, key: Key) -> dict[str, Any] | None:
        """A TritonDeployment's body; None where there is none."""
        with self._lock:
            known = self._objects[TRITON_DEPLOYMENT].get(key)
        return None if known is None else self._unpacked(TRITON_DEPLOYMENT, known)

    def ready_reasons(self) -> list[str]:
        """The reason of each TritonDeployment's Ready condition; Pending where it has none yet."""
        with self._lock:
            return list(self._reasons.values())

    def keys(self) -> list[Key]:
        """Every TritonDeployment."""
        with self._lock:
            return list(self._reasons)

    def others_on_claim(self, key: Key, claim: str) -> list[str]:
        """Names of the other TritonDeployments of the namespace whose spec names the claim."""
        with self._lock:
            sharing = [other for other, named in self._claims.items() if named == claim and other != key]
        return [other.name for other in sharing if other.namespace == key.namespace]

    def children(self, key: Key) -> list[dict[str, Any]]:
        """The objects that carry the label of a TritonDeployment, whoever controls them."""
        with self._lock:
            known = list(self._children[key].items()) if key in self._children else []
        return [self._unpacked(kind, each) for (kind, _), each in known]

    def _put(self, kind: Kind, body: dict[str, Any]) -> Key | None:
        key, uid, version = _key(body), body["metadata"]["uid"], _version(body)
        known = self._objects[kind].get(key)
        if version <= self._deleted.get(uid, -1) or (known is not None and known.version >= version):
            return None
        owner = self._owner(kind, body)
        if kind is EVENT and owner is None:
            # About somebody else's object.
            return None
        new = _Known(uid, version, owner, self._packed(kind, body))
        if known is not None and known.owner != new.owner:
            self._unlink(kind, key, known)
        self._objects[kind][key] = new
        if kind is TRITON_DEPLOYMENT:
            self._reasons[key] = _ready_reason(body)
            self._claims[key] = body.get("spec", {}).get("repository", {}).get("claimName", "")
        elif owner is not None:
            self._children[owner][kind, key.name] = new
            self._owners[uid] = owner
        return owner

    def _remove(self, kind: Kind, key: Key, uid: str, version: int) -> Key | None:
        self._deleted[uid] = version
        if len(self._deleted) > REMEMBERED_DELETIONS:
            del self._deleted[next(iter(self._deleted))]
        known = self._objects[kind].get(key)
        if known is None or known.uid != uid or known.version > version:
            return None
        del self._objects[kind][key]
        if kind is TRITON_DEPLOYMENT:
            del self._reasons[key], self._claims[key]
        return self._unlink(kind, key, known)

    def _unlink(self, kind: Kind, key: Key, known: _Known) -> Key | None:
        owner = known.owner
        if owner is not None and kind is not TRITON_DEPLOYMENT:
            self._owners.pop(known.uid, None)
            children = self._children[owner]
            children.pop((kind, key.name), None)
            if not children:
                del self._children[owner]
        return owner

    def _packed(self, kind: Kind, body: dict[str, Any]) -> bytes:
        text = json.dumps(_trimmed(kind, body), separators=(",", ":")).encode()
        compression = zlib.compressobj(level=1, zdict=self._samples.setdefault(kind, text))
        return compression.compress(text) + compression.flush()

    def _unpacked(self, kind: Kind, known: _Known) -> dict[str, Any]:
        body: dict[str, Any] = json.loads(zlib.decompressobj(zdict=self._samples[kind]).decompress(known.packed))
        return body

    def _owner(self, kind: Kind, body: dict[str, Any]) -> Key | None:
        if kind is TRITON_DEPLOYMENT:
            return _key(body)
        if kind is EVENT:
            return self._owners.get(body["involvedObject"].get("uid", ""))
        name = body["metadata"].get("labels", {}).get(DEPLOYMENT_LABEL)
        return None if name is None else Key(body["metadata"]["namespace"], name)


def _key(body: dict[str, Any]) -> Key:
    return Key(body["metadata"]["namespace"], body["metadata"]["name"])


def _version(body: dict[str, Any]) -> int:
    """Resource versions of one kind are ordered (Kubernetes 1.35 promises what etcd always did)."""
    return int(body["metadata"]["resourceVersion"])


def _ready_reason(body: dict[str, Any]) -> str:
    for condition in body.get("status", {}).get("conditions", []):
        if condition["type"] == "Ready":
            return str(condition["reason"])
    return "Pending"


def _trimmed(kind: Kind, body: dict[str, Any]) -> dict[str, Any]:
    """Without others' managed fields: half of an object's size, and only ours say anything to drift.py."""
    entries = body["metadata"].get("managedFields", [])
    ours = [
        entry
        for entry in entries
        if entry.get("manager") == FIELD_MANAGER and entry.get("operation") == "Apply" and not entry.get("subresource")
    ]
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        **body,
        "metadata": {**body["metadata"], "managedFields": ours},
    }
