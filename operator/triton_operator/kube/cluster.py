"""The Kubernetes API as the operator uses it: plain dicts in and out, and the errors of kube/errors.py."""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from copy import copy
from itertools import chain
from typing import Any

from triton_operator.kube.connection import (
    APPLY,
    MERGE,
    AnswerError,
    ConfigurationError,
    Connection,
    NoAnswerError,
    TooLongError,
    configuration,
)
from triton_operator.kube.errors import (
    ClusterError,
    ConflictError,
    ForbiddenError,
    GoneError,
    InvalidError,
    NotFoundError,
    NotLeaderError,
    ServerError,
    UnavailableError,
)
from triton_operator.kube.kinds import CONFIG_MAP, EVENT, LEASE, NODE, READING, TRITON_DEPLOYMENT, ApiKind, kind_of
from triton_operator.kube.managed_fields import FIELD_MANAGER, as_applied
from triton_operator.kube.pages import LONGEST_PAGE, pages

CONNECT_SECONDS = 3.0
"""The longest that a connection may take, in seconds: a lost first packet is sent again after 1 s, and has 2 s then."""
READ_SECONDS = 30.0
"""The longest silence of the API server before the answer to a read, in seconds: a page of a list of a large cluster
takes it some seconds, and a read that is late harms nobody."""
WRITE_SECONDS = 8.0
"""Every write has ended or been given up after this time, in seconds, connecting included; lease.py relies on it. A
write takes milliseconds; the rest is for admission webhooks, and the longer it is, the later another replica takes
over."""
ANSWER_SECONDS = 4
"""The time in seconds after which the API server is to give a write up, so that it still answers: it waits 10 s for a
webhook by default, and its answer tells which one hangs. Less than WRITE_SECONDS without CONNECT_SECONDS."""
SILENT_SECONDS = 70.0
"""A watch that is silent for so many seconds is broken, because the API server sends a bookmark each minute."""
WATCH_SECONDS = 600
"""How long the API server keeps a watch, in seconds; without it, a random time of up to an hour."""
EVENTS_WATCH_SECONDS = 60
"""How long the API server keeps a watch of Events, in seconds: it sends no bookmarks of them, because they are not in
its watch cache, and a longer silence would look broken (SILENT_SECONDS)."""
NODES = 100
"""The most nodes that are looked at for one that may take a pod: a response of about 2 MB."""
PAGE = 100
"""The most objects in one page of a list; 500 parsed Jobs would take 18 MiB for a moment."""
LONG_BODIES = {CONFIG_MAP: 10}
"""The most in a page of a kind whose objects are long by design, so that most pages are not asked for twice."""
NEVER_A_VERSION = "1"
"""A resource version that no object has: etcd starts at 1, and every object comes later."""


_ERRORS: dict[int, type[ClusterError]] = {
    **dict.fromkeys((400, 413, 415, 422), InvalidError),
    401: UnavailableError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    410: GoneError,
    429: UnavailableError,
}
"""The error of each status of an answer; any other status is a ServerError."""


_METHODS = {"list": "GET", "get": "GET", "patch": "PATCH", "create": "POST", "update": "PUT", "delete": "DELETE"}
_NOTHING: Mapping[str, str] = {}
# Without Strict the API server would drop a field that no schema has.
_CREATED = {"fieldManager": FIELD_MANAGER, "fieldValidation": "Strict"}
# Without fieldValidation the API server parses each apply twice, to find repeated fields.
_APPLIED = {"fieldManager": FIELD_MANAGER, "force": "true", "fieldValidation": "Ignore"}
_MERGED = {"fieldManager": FIELD_MANAGER}


def server_address() -> str:
    """Return the URL by which every connection asks the API server. Raises ConfigurationError if none is known."""
    return str(configuration().host)


class Cluster:
    """A connection to the API server for any number of threads. Every method may raise ClusterError.

    RuntimeError means a bug: kinds.py does not name the verb, so the chart does not grant it.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._may_write: Callable[[], bool] = lambda: True

    @classmethod
    def connect(cls, holder: str = "") -> "Cluster":
        """Connect as the pod's service account, or else as KUBECONFIG says. Sends nothing to the API server yet.

        `holder` tells replicas apart in the API server's audit log. Raises UnavailableError if there is neither a
        service account nor a file that can be read.
        """
        try:
            return cls(Connection(configuration(), f"{FIELD_MANAGER}/{holder}".rstrip("/"), CONNECT_SECONDS))
        except ConfigurationError as error:
            raise UnavailableError(str(error)) from error

    def guarded(self, may_write: Callable[[], bool]) -> "Cluster":
        """Return a copy of this connection that calls `may_write` before every write.

        A write raises NotLeaderError if `may_write` returns False: another replica may be acting already.
        """
        other = copy(self)
        other._may_write = may_write  # noqa: SLF001 - a copy of itself
        return other

    def list_all(self, kind: ApiKind, namespace: str | None, page: int = PAGE) -> tuple[Iterator[dict[str, Any]], str]:
        """The watched objects of a kind in a namespace (None: in all), and the resource version of the list.

        The iterator fetches page after page, so all objects are never in memory at once. It raises ClusterError.
        """
        query = {"labelSelector": kind.labels, "fieldSelector": kind.fields}

        def ask(size: int, token: str) -> dict[str, Any] | None:
            further = {"limit": str(size), **({"continue": token} if token else {})}
            longest = LONGEST_PAGE if size > 1 else None
            try:
                return self._call(kind, "list", _path(kind, namespace), query | further, longest=longest)
            except TooLongError:
                return None

        found = pages(ask, min(page, LONG_BODIES.get(kind, PAGE)))
        first = next(found)
        # Every page is of the first one's version.
        return (item for page in chain((first,), found) for item in page["items"]), first["metadata"]["resourceVersion"]

    def watch(self, kind: ApiKind, namespace: str | None, version: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the changes after a resource version: ADDED, MODIFIED or DELETED, and the object.

        A BOOKMARK has only a version up to which every change was sent. The watch ends from time to time and is to be
        called again. Raises GoneError if the version is too old. Any other ERROR that the API server sends is an
        AnswerError inside, which comes out as the ClusterError of its status.
        """
        self._allow(kind.verbs, "watch", kind.plural)
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": str(EVENTS_WATCH_SECONDS if kind is EVENT else WATCH_SECONDS),
            "labelSelector": kind.labels,
            "fieldSelector": kind.fields,
        }
        with _translated():
            for event in self._connection.stream(_path(kind, namespace), query, SILENT_SECONDS):
                body = event["object"]
                if event["type"] == "ERROR":
                    raise AnswerError(body.get("code", 500), body.get("message", ""))
                yield event["type"], body

    def get(self, kind: ApiKind, namespace: str, name: str) -> dict[str, Any] | None:
        """An object; None if it does not exist."""
        try:
            return self._call(kind, "get", _path(kind, namespace, name))
        except NotFoundError:
            return None

    def serves(self, kind: ApiKind) -> bool:
        """Whether the API server knows the kind. Every user may ask for that."""
        try:
            served = self._request(kind, "get", f"/apis/{kind.api_version}", _NOTHING, None, "application/json")
        except NotFoundError:
            return False
        return any(each["name"] == kind.plural for each in served["resources"])

    def has_node(self, label: str, value: str) -> bool | None:
        """Whether a node has the label with the value; None if the operator may not read nodes."""
        try:
            query = {"labelSelector": f"{label}={value}", "limit": "1"}
            return bool(self._call(NODE, "list", _path(NODE, None), query)["items"])
        except ForbiddenError:
            return None

    def other_nodes(self, labels: Mapping[str, str], besides: Collection[str]) -> list[dict[str, Any]] | None:
        """Some nodes with these labels, besides those named; None if the operator may not read nodes."""
        selector = ",".join(f"{label}={value}" for label, value in sorted(labels.items()))
        fields = ",".join(f"metadata.name!={each}" for each in sorted(besides))
        try:
            query = {"labelSelector": selector, "fieldSelector": fields, "limit": str(NODES)}
            return list(self._call(NODE, "list", _path(NODE, None), query)["items"])
        except ForbiddenError:
            return None

    def node_labels(self, name: str) -> Mapping[str, str]:
        """The labels of a node; none if it is gone, or if the operator may not read nodes."""
        try:
            query = {"fieldSelector": f"metadata.name={name}", "limit": "1"}
            found = self._call(NODE, "list", _path(NODE, None), query)
        except ForbiddenError:
            return {}
        return next((each["metadata"].get("labels", {}) for each in found["items"]), {})

    def apply(self, body: dict[str, Any]) -> dict[str, Any]:
        """Apply a whole object server-side, taking over fields that others set. Return the object as it is now.

        With `metadata.resourceVersion`, raises ConflictError if the object has changed since.
        """
        kind, metadata = kind_of(body), body["metadata"]
        return self._call(kind, "patch", _path(kind, metadata["namespace"], metadata["name"]), _APPLIED, body, APPLY)

    def apply_new(self, body: dict[str, Any]) -> dict[str, Any]:
        """Make a missing object in one request. Raises ConflictError and changes nothing if it exists.

        An apply with a version that no object has does it, so that a later apply can remove fields. A Job is created
        instead (kinds.py).
        """
        kind = kind_of(body)
        if kind.created:
            return self.create(kind, body)
        return self.apply({**body, "metadata": {**body["metadata"], "resourceVersion": NEVER_A_VERSION}})

    def own(self, body: dict[str, Any]) -> dict[str, Any]:
        """Have what the operator created or updated of an object count as applied. Return the object as it is now.

        It does not change otherwise, and the next apply removes what it no longer sets. ``body``: as the API server
        answered. Raises ConflictError if the object has changed since, NotFoundError if it is gone.
        """
        return self._set(body, {"managedFields": as_applied(body)})

    def disown(self, body: dict[str, Any], handed_on: Mapping[str, Any]) -> dict[str, Any]:
        """Take all owners of an object away, whoever set them, and ``handed_on``: labels and annotations of theirs.

        An apply removes only what its own manager alone has applied. Anybody may empty `metadata.managedFields`, and
        the API server then counts all as set by another manager. A claim would go with its object, and the user's
        models with it, although `whenDeleted` says Retain. Return the object as it is now. Raises ConflictError if it
        is no longer of the version in ``body``, NotFoundError if it is gone.
        """
        return self._set(body, {"ownerReferences": [], **handed_on})

    def apply_status(self, body: dict[str, Any]) -> dict[str, Any]:
        """Apply a TritonDeployment's status server-side. Return the object as it is now; NotFoundError if it is gone.

        The object itself is never applied, because that would create it.
        """
        self._allow(TRITON_DEPLOYMENT.status_verbs, "patch", "tritondeployments/status")
        metadata = body["metadata"]
        path = f"{_path(TRITON_DEPLOYMENT, metadata['namespace'], metadata['name'])}/status"
        return self._request(TRITON_DEPLOYMENT, "patch", path, _APPLIED, body, APPLY)

    def delete(self, observed: dict[str, Any]) -> None:
        """Delete exactly the object that was observed; its dependents follow. If it is gone, do nothing.

        Raises ConflictError if it has changed since.
        """
        kind, metadata = kind_of(observed), observed["metadata"]
        options = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": "Background",
            "preconditions": {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]},
        }
        with suppress(NotFoundError):
            self._call(kind, "delete", _path(kind, metadata["namespace"], metadata["name"]), body=options)

    def create(self, kind: ApiKind, body: dict[str, Any]) -> dict[str, Any]:
        """Create an object and return it as it is now. Raises ConflictError if the name is taken."""
        return self._call(kind, "create", _path(kind, body["metadata"]["namespace"]), _CREATED, body)

    def try_create(self, kind: ApiKind, body: dict[str, Any]) -> None:
        """Ask the API server whether it would create an object, which it does not. Raises RefusedError if it would not.

        The operator has no right to it; `helm test` has (kinds.py).
        """
        self._allow(kind.dry_run_verbs, "create", kind.plural)
        path, query = _path(kind, body["metadata"]["namespace"]), _CREATED | {"dryRun": "All"}
        self._request(kind, "create", path, query, body, "application/json")

    def replace(self, kind: ApiKind, body: dict[str, Any]) -> None:
        """Replace exactly the version that was read. Raises ConflictError if it has changed since."""
        metadata = body["metadata"]
        self._call(kind, "update", _path(kind, metadata["namespace"], metadata["name"]), body=body)

    def create_event(self, body: dict[str, Any]) -> None:
        """Create a core/v1 Event."""
        self.create(EVENT, body)

    def _set(self, body: dict[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
        """Set fields of the metadata of exactly that version of an object."""
        kind, metadata = kind_of(body), body["metadata"]
        change = {"metadata": {"resourceVersion": metadata["resourceVersion"], **fields}}
        return self._call(kind, "patch", _path(kind, metadata["namespace"], metadata["name"]), _MERGED, change, MERGE)

    def _call(
        self,
        kind: ApiKind,
        verb: str,
        path: str,
        query: Mapping[str, str] = _NOTHING,
        body: Mapping[str, Any] | None = None,
        content_type: str = "application/json",
        longest: int | None = None,
    ) -> dict[str, Any]:
        self._allow(kind.verbs, verb, kind.plural)
        return self._request(kind, verb, path, query, body, content_type, longest)

    def _request(
        self,
        kind: ApiKind,
        verb: str,
        path: str,
        query: Mapping[str, str],
        body: Mapping[str, Any] | None,
        content_type: str,
        longest: int | None = None,
    ) -> dict[str, Any]:
        if verb not in READING and not self._may_write():
            raise NotLeaderError("this replica does not hold the Lease, so another one works")
        if verb not in READING:
            query = {**query, "timeout": f"{ANSWER_SECONDS}s"}
        # A late answer about the Lease is of no use either.
        seconds = READ_SECONDS if verb in READING and kind is not LEASE else WRITE_SECONDS - CONNECT_SECONDS
        with _translated():
            return self._connection.request(_METHODS[verb], path, query, body, content_type, seconds, longest)

    @staticmethod
    def _allow(verbs: frozenset[str], verb: str, resource: str) -> None:
        if verb not in verbs:
            raise RuntimeError(f"{verb} {resource} is not among the verbs of kinds.py, which the chart grants")


def _path(kind: ApiKind, namespace: str | None, name: str = "") -> str:
    """The path of an object, or without a name of all objects of the kind in the namespace (None: in all)."""
    group = f"/apis/{kind.api_version}" if kind.group else f"/api/{kind.api_version}"
    within = "" if namespace is None else f"/namespaces/{namespace}"
    return f"{group}{within}/{kind.plural}{'/' if name else ''}{name}"


@contextmanager
def _translated() -> Iterator[None]:
    """Turn what the connection raises into a ClusterError with the API server's own message."""
    try:
        yield
    except AnswerError as error:
        message = str(error)
        if error.status == 404 and not error.is_status:
            message = (
                f"the API server does not know the kind ({message}): install the CRD first"
                " (crds/, or the chart's crds.install)"
            )
        if "NamespaceTerminating" in error.causes:
            raise NotFoundError(message) from error
        # A field that no schema has. The Status is that of any bug of the API server, 500 without a reason or details,
        # so only its words tell.
        invalid = message.startswith("failed to create typed patch object")
        kind = InvalidError if invalid else _ERRORS.get(error.status, ServerError)
        raise kind(message, error.retry_after) from error
    except NoAnswerError as error:
        raise UnavailableError(f"no answer from the API server: {error}") from error
