"""The simulation's cluster as the real Reconciler meets it: an API server that may refuse and fail, and a store."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.simulation.truths import Told, broken
from triton_operator.kube.errors import ConflictError, ForbiddenError, ServerError, UnavailableError
from triton_operator.kube.kinds import ApiKind
from triton_operator.kube.managed_fields import as_applied
from triton_operator.observed.routes import Host
from triton_operator.observed.turn import Measurement
from triton_operator.planning.plan import Event
from triton_operator.runtime.queue import Result
from triton_operator.runtime.store import Key

if TYPE_CHECKING:
    from tests.simulation.cluster import Cluster

Body = dict[str, Any]
KEY = Key("vision", "digits")
NEEDED_BY_JOBS = {"PersistentVolumeClaim", "NetworkPolicy"}


class BrokenError(BaseException):
    """Something did not hold. It is no Exception, so that no pass takes it for an error of its own."""


def require(holds: object, words: str) -> None:
    """Raise BrokenError with these words unless it holds."""
    if not holds:
        raise BrokenError(words)


@dataclass
class ApiServer:
    """What the Reconciler asks and writes, and what its store knows: always the newest state."""

    cluster: "Cluster"
    writes: Callable[[str, Body], None] = lambda verb, body: None
    """Looks at each write before it is made: `create`, `apply`, `delete` or `status`, and the body."""
    refused: set[tuple[str, str]] = field(default_factory=set)
    """The verbs and kinds that a policy forbids."""
    broken: set[str] = field(default_factory=set)
    """The kinds whose admission webhook is down: every write of such an object is answered with an error."""
    fails_after: int | None = None
    """How many more writes are made before one gets no answer; None: every one is answered."""
    claims: set[str] = field(default_factory=set)
    """Claims of the user's that are there although no object of the cluster shows it."""
    count: int = 0
    """How many writes were made."""
    starts: int = 0
    """How many of them made room for something, or started Jobs: the operator then plans anew before it reports."""
    failures: int = 0
    """How many writes failed in a webhook."""

    # What the store knows ------------------------------------------------------------------------------------------

    def owner(self, key: Key) -> Body | None:
        """The TritonDeployment."""
        body = self.cluster.body()
        body["metadata"]["resourceVersion"] = "1"
        return body

    def children(self, key: Key) -> list[Body]:
        """All that belongs to it."""
        if self.cluster.broken:
            raise ValueError(self.cluster.broken)
        return list(self.cluster.objects.values())

    def others_on_claim(self, key: Key, claim: str) -> tuple[str, ...]:
        """The neighbours on its claim."""
        return self.cluster.neighbours

    def host_holder(self, key: Key, wanted: frozenset[Host]) -> str:
        """Who has the host name of its route."""
        return self.cluster.host_holder

    def looks_beside(self, key: Key) -> int:
        """How many other objects of the namespace look at their sources."""
        return self.cluster.looks_beside

    def measuring(self) -> Sequence[Measurement]:
        """What other objects measure."""
        return self.cluster.measured_beside()

    def put(self, kind: ApiKind, body: Body) -> None:
        """Take in what was written: it is known already."""

    # What the API server does ----------------------------------------------------------------------------------------

    def has_node(self, label: str, value: str) -> bool | None:
        """Whether a node has the GPU product."""
        return self.cluster.gpu_product_exists

    def other_nodes(self, labels: Mapping[str, str], besides: Collection[str]) -> Sequence[Body] | None:
        """The nodes that measure, besides those named: all have room for any pod."""
        nodes = self.cluster.measuring_nodes
        return None if nodes is None else [{"spec": {}} for each in nodes if each not in besides]

    def node_labels(self, name: str) -> Mapping[str, str]:
        """The labels of a node."""
        return self.cluster.nodes.get(name, {})

    def get(self, kind: ApiKind, namespace: str, name: str) -> Body | None:
        """A claim of the user's, or an object that is there."""
        if kind.kind == "PersistentVolumeClaim" and name in self.claims:
            metadata = {"name": name, "namespace": namespace, "uid": f"uid-{name}"}
            metadata["creationTimestamp"] = self.cluster.born
            return {"metadata": metadata, "spec": {"accessModes": ["ReadWriteMany"]}}
        return self.cluster.objects.get((kind.kind, name))

    def apply_new(self, body: Body) -> Body:
        """Make an object; raises ConflictError if it is there."""
        self._answer("create", body)
        if (body["kind"], body["metadata"]["name"]) in self.cluster.objects:
            raise ConflictError(f"{body['kind']} {body['metadata']['name']} exists")
        return self._applied(body)

    def apply(self, body: Body) -> Body:
        """Change an object."""
        self._answer("apply", body)
        return self._applied(body)

    def own(self, body: Body) -> Body:
        """Have what was created of an object count as applied."""
        self._answer("apply", body)
        stored = self.cluster.objects[body["kind"], body["metadata"]["name"]]
        stored["metadata"]["managedFields"] = as_applied(body)
        return stored

    def disown(self, body: Body, handed_on: Mapping[str, Any]) -> Body:
        """Take the owners of an object away, and what it had from them, and leave the rest of it."""
        self._answer("apply", body)
        key = (body["kind"], body["metadata"]["name"])
        self.cluster.version += 1
        metadata: Body = {"ownerReferences": [], "resourceVersion": str(self.cluster.version)}
        stored = self.cluster.objects[key]
        for part, gone in handed_on.items():
            kept = {name: value for name, value in stored["metadata"].get(part, {}).items() if name not in gone}
            metadata |= {part: kept}
        self.cluster.objects[key] = stored | {"metadata": stored["metadata"] | metadata}
        return self.cluster.objects[key]

    def apply_status(self, body: Body) -> Body:
        """Write the status."""
        self._answer("status", body)
        self._check(body["status"])
        self.cluster.status = body["status"]
        return body

    def delete(self, body: Body) -> None:
        """Delete an object and the pods that it made."""
        self._answer("delete", body)
        self.cluster.delete(body["kind"], body["metadata"]["name"])

    def create_event(self, body: Body) -> None:
        """Take an Event of the operator's."""
        self.cluster.events.append(Event(body["type"], body["reason"], body["message"]))

    def rests(self, result: Result) -> None:
        """See that the status tells of what is there, if that was a pass that wrote nothing and did not fail."""
        if not result.failed and result.again_after != 0.0:
            self._check(self.cluster.status, rests=True)

    def _check(self, status: Body, *, rests: bool = False) -> None:
        told = Told(self.cluster.body() | {"status": status}, self.cluster.objects)
        require(not (found := next(broken(told, rests=rests), "")), found)

    def _answer(self, verb: str, body: Body) -> None:
        if self.fails_after is not None:
            self.fails_after -= 1
            if self.fails_after < 0:
                self.fails_after = None
                raise UnavailableError("no answer from the API server")
        if body["kind"] in self.broken and verb != "status":
            # As another port each time.
            self.failures += 1
            raise ServerError(f"failed calling webhook: dial tcp 10.0.0.1:{self.failures}: connection refused")
        if (verb, body["kind"]) in self.refused:
            raise ForbiddenError(f"a policy forbids to {verb} it")
        self.writes(verb, body)
        self.count += 1
        self.starts += verb == "delete" or body["kind"] in {"Job", *NEEDED_BY_JOBS}

    def _applied(self, body: Body) -> Body:
        self.cluster.apply(body)
        return self.cluster.objects[body["kind"], body["metadata"]["name"]]
