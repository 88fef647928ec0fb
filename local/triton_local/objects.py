"""The API server and the store of one TritonDeployment: objects in memory, and in a file of its folder."""

import json
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from copy import deepcopy
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

from triton_local.applied import as_stored
from triton_operator.kube.errors import ConflictError, NotFoundError
from triton_operator.kube.kinds import ApiKind
from triton_operator.kube.managed_fields import as_applied
from triton_operator.names import Body
from triton_operator.observed.routes import Host
from triton_operator.observed.turn import Measurement
from triton_operator.runtime.store import Key

SET_BY_SERVER = ("uid", "creationTimestamp", "generation", "resourceVersion", "managedFields")
"""Fields of `metadata` that no apply changes."""
OF_THIS_RUN = frozenset({"Pod", "Event"})
"""Kinds that end with the engine's process, as their processes do."""


def as_text(moment: datetime) -> str:
    """A time in UTC as objects have it, in seconds."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def now_text() -> str:
    """The time as objects have it, in UTC and seconds."""
    return as_text(datetime.now(UTC))


class Objects:
    """What `runtime.outside` asks of an API server and of a store; every change wakes who waits for one."""

    def __init__(
        self, file: Path, desired: Body, nodes: Mapping[str, Mapping[str, str]], event: Callable[[Body], None]
    ) -> None:
        """``desired``: the TritonDeployment of the user's file. ``nodes``: the labels of each node.

        ``event``: is told of each Event. Raises OSError, and ValueError if the file is not one of ours.
        """
        self.changed = threading.Event()
        self._lock = threading.RLock()
        self._file = file
        self._nodes = nodes
        self._event = event
        self._objects: dict[tuple[str, str], Body] = {}
        self._version = 0
        kept = json.loads(file.read_text(encoding="utf-8"))["items"] if file.exists() else []
        for child in kept[1:]:
            self._store(child)
        self._owner = self._merged(kept[0] if kept else None, desired)
        self.key = Key(self._owner["metadata"]["namespace"], self._owner["metadata"]["name"])
        self._bump(self._owner)

    def _merged(self, known: Body | None, desired: Body) -> Body:
        """The TritonDeployment as the user's file has it now, with what an API server keeps of it."""
        metadata = {"namespace": "default", **desired["metadata"]}
        if known is None:
            metadata |= {"uid": str(uuid4()), "generation": 1, "creationTimestamp": now_text()}
            return {**desired, "metadata": metadata, "status": {}}
        if (known["metadata"]["name"], known["metadata"]["namespace"]) != (metadata["name"], metadata["namespace"]):
            raise ValueError(f"it is of the object {known['metadata']['namespace']}/{known['metadata']['name']}")
        metadata |= {name: known["metadata"][name] for name in SET_BY_SERVER if name in known["metadata"]}
        metadata["generation"] += known["spec"] != desired["spec"]
        return {**desired, "metadata": metadata, "status": known["status"]}

    def save(self) -> None:
        """Write all that outlives the engine, whole or not at all: as `kubectl get -o json` prints a list."""
        with self._lock:
            children = [each for (kind, _), each in self._objects.items() if kind not in OF_THIS_RUN]
            text = json.dumps({"apiVersion": "v1", "kind": "List", "items": [self._owner, *children]})
        temporary = self._file.with_suffix(".tmp")
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(self._file)

    # For the controllers and the kubelet -----------------------------------------------------------------------------

    def of_kind(self, kind: str) -> list[Body]:
        """Copies of the objects of a kind."""
        with self._lock:
            return [deepcopy(each) for (own, _), each in self._objects.items() if own == kind]

    def find(self, kind: str, name: str) -> Body | None:
        """A copy of an object; None: there is none."""
        with self._lock:
            return deepcopy(self._objects.get((kind, name)))

    def add(self, body: Body) -> None:
        """Make a pod, or an object of the user's file."""
        with self._lock:
            self._store(deepcopy(body))

    def set_status(self, kind: str, name: str, status: Body) -> None:
        """Write the status of an object; nothing if it is gone."""
        with self._lock:
            body = self._objects.get((kind, name))
            if body is not None and body.get("status") != status:
                body["status"] = deepcopy(status)
                self._bump(body)

    def remove(self, kind: str, name: str) -> None:
        """Remove an object; nothing if it is gone."""
        with self._lock:
            if self._objects.pop((kind, name), None) is not None:
                self.changed.set()

    def owner_body(self) -> Body:
        """A copy of the TritonDeployment with its status."""
        with self._lock:
            return deepcopy(self._owner)

    # runtime.outside.PassStore --------------------------------------------------------------------------------------

    def owner(self, key: Key) -> Body | None:
        """The TritonDeployment."""
        return self.owner_body() if key == self.key else None

    def children(self, key: Key) -> list[Body]:
        """All others."""
        with self._lock:
            return deepcopy(list(self._objects.values()))

    def others_on_claim(self, key: Key, claim: str) -> Sequence[str]:
        """None: a folder holds one TritonDeployment."""
        return ()

    def host_holder(self, key: Key, wanted: frozenset[Host]) -> str:
        """None: there are no routes."""
        return ""

    def looks_beside(self, key: Key) -> int:
        """None, for the same reason."""
        return 0

    def measuring(self) -> Sequence[Measurement]:
        """None, for the same reason."""
        return ()

    def put(self, kind: ApiKind, body: Body) -> None:
        """Nothing: what was written is known."""

    # runtime.outside.ApiServer --------------------------------------------------------------------------------------

    def has_node(self, label: str, value: str) -> bool | None:
        """Whether this machine has the label with the value."""
        return any(labels.get(label) == value for labels in self._nodes.values())

    def other_nodes(self, labels: Mapping[str, str], besides: Collection[str]) -> None:
        """Nobody asks: nothing is measured beside the one TritonDeployment."""

    def node_labels(self, name: str) -> Mapping[str, str]:
        """The labels of this machine."""
        return self._nodes.get(name, {})

    def get(self, kind: ApiKind, namespace: str, name: str) -> Body | None:
        """An object; None if it does not exist."""
        return self.find(kind.kind, name)

    def apply_new(self, body: Body) -> Body:
        """Make a missing object. Raises ConflictError if it exists."""
        with self._lock:
            if (body["kind"], body["metadata"]["name"]) in self._objects:
                raise ConflictError(f"{body['kind']} {body['metadata']['name']} exists")
            return self.apply(body)

    def apply(self, body: Body) -> Body:
        """Make an object, or make the one that is there this one; what the controllers set of it stays."""
        with self._lock:
            known = self._objects.get((body["kind"], body["metadata"]["name"]))
            new = deepcopy(body)
            if known is None:
                new["metadata"] |= {"uid": str(uuid4()), "generation": 1, "creationTimestamp": now_text()}
                new["status"] = {"phase": "Bound"} if body["kind"] == "PersistentVolumeClaim" else {}
            else:
                new["metadata"] |= {
                    name: known["metadata"][name] for name in SET_BY_SERVER if name in known["metadata"]
                }
                new["metadata"]["generation"] += known.get("spec") != new.get("spec")
                new["status"] = known["status"]
            stored = as_stored(new, body, self._version + 1)
            self._store(stored)
            return deepcopy(stored)

    def own(self, body: Body) -> Body:
        """Have what was created of an object count as applied."""
        with self._lock:
            stored = self._known(body)
            stored["metadata"]["managedFields"] = as_applied(body)
            self._bump(stored)
            return deepcopy(stored)

    def disown(self, body: Body, handed_on: Mapping[str, Any]) -> Body:
        """Take the owners of an object away, and these labels and annotations."""
        with self._lock:
            stored = self._known(body)
            stored["metadata"]["ownerReferences"] = []
            for part, names in handed_on.items():
                for name in names:
                    stored["metadata"].get(part, {}).pop(name, None)
            self._bump(stored)
            return deepcopy(stored)

    def delete(self, observed: Body) -> None:
        """Delete an object; its pods end when the controllers see it."""
        self.remove(observed["kind"], observed["metadata"]["name"])

    def apply_status(self, body: Body) -> Body:
        """Write the TritonDeployment's status."""
        with self._lock:
            self._owner["status"] = deepcopy(body["status"])
            self._bump(self._owner)
            return deepcopy(self._owner)

    def create_event(self, body: Body) -> None:
        """Tell of an Event."""
        self._event(body)

    def _known(self, body: Body) -> Body:
        known = self._objects.get((body["kind"], body["metadata"]["name"]))
        if known is None:
            raise NotFoundError(f"{body['kind']} {body['metadata']['name']} does not exist")
        return known

    def _store(self, body: Body) -> None:
        self._objects[body["kind"], body["metadata"]["name"]] = body
        self._bump(body)

    def _bump(self, body: Body) -> None:
        self._version += 1
        body["metadata"]["resourceVersion"] = str(self._version)
        self.changed.set()
