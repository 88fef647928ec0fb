"""What a pass asks of the API server, and of the store of what the watches told. Tests have others of both."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

from triton_operator.kube.kinds import ApiKind
from triton_operator.names import Body
from triton_operator.observed.routes import Host
from triton_operator.observed.turn import Measurement
from triton_operator.runtime.store import Key


class ApiServer(Protocol):
    """The requests of a pass; `kube.cluster.Cluster` sends them. Each may raise ClusterError."""

    def get(self, kind: ApiKind, namespace: str, name: str) -> Body | None:
        """An object; None if it does not exist."""

    def has_node(self, label: str, value: str) -> bool | None:
        """Whether a node has the label with the value; None if the operator may not read nodes."""

    def other_nodes(self, labels: Mapping[str, str], besides: Collection[str]) -> Sequence[Body] | None:
        """Nodes with these labels, besides those named; None if the operator may not read nodes."""

    def node_labels(self, name: str) -> Mapping[str, str]:
        """The labels of a node; none if it is gone, or if the operator may not read nodes."""

    def apply(self, body: Body) -> Body:
        """Make an object that was observed the desired one. Return the object as it is now."""

    def apply_new(self, body: Body) -> Body:
        """Make a missing object. Raises ConflictError and changes nothing if it exists."""

    def own(self, body: Body) -> Body:
        """Have what the operator created or updated of an object count as applied. Return the object as it is now."""

    def disown(self, body: Body, handed_on: Mapping[str, Any]) -> Body:
        """Take all owners of an object away, and these labels and annotations. Return the object as it is now."""

    def delete(self, observed: Body) -> None:
        """Delete exactly the object that was observed. Raises ConflictError if it has changed since."""

    def apply_status(self, body: Body) -> Body:
        """Write a TritonDeployment's status. Return the object as it is now; NotFoundError if it is gone."""

    def create_event(self, body: Body) -> None:
        """Create an Event."""


class PassStore(Protocol):
    """The store as a pass sees it: what the watches told, and what passes wrote. It is a `runtime.store.Store`."""

    def owner(self, key: Key) -> Body | None:
        """A TritonDeployment; None if there is none, or no more."""

    def children(self, key: Key) -> list[Body]:
        """The children of a TritonDeployment, and the Events about them."""

    def others_on_claim(self, key: Key, claim: str) -> Sequence[str]:
        """The names of the other TritonDeployments on a claim of the namespace."""

    def host_holder(self, key: Key, wanted: frozenset[Host]) -> str:
        """NAMESPACE/NAME of another TritonDeployment that has a host name which this one's route wants, or empty."""

    def looks_beside(self, key: Key) -> int:
        """How many Jobs of other TritonDeployments of the namespace look at their sources."""

    def measuring(self) -> Sequence[Measurement]:
        """The Jobs of all TritonDeployments that measure, or may begin to at any time."""

    def put(self, kind: ApiKind, body: Body) -> object:
        """Take in an object as a write left it, which the watch tells only later."""
