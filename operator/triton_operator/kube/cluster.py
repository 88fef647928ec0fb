"""The Kubernetes API as the operator uses it: plain dicts in and out, errors of its own.

ClusterError              what the API server said
├── RefusedError          it will say so again until somebody changes something
│   ├── InvalidError      400, 422: the object is not valid
│   └── ForbiddenError    403: a quota, an admission policy, a missing rule
├── NotFoundError         404, and 403 for what a namespace that is being deleted takes no more
├── ConflictError         409: what was observed is not the latest
├── GoneError             410: a watch of a version that is too old
├── NotLeaderError        nothing: this replica may not write (lease.py), so nothing was asked
└── UnavailableError      anything else: no answer, a timeout, 401, 429, 5xx
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from typing import Any

import urllib3

from triton_operator.kube.connection import APPLY, AnswerError, ConfigurationError, Connection, configuration
from triton_operator.kube.drift import FIELD_MANAGER
from triton_operator.kube.kinds import EVENT, LEASE, NODE, READING, TRITON_DEPLOYMENT, Kind, kind_of

CONNECT_SECONDS = 3.0
READ_SECONDS = 30.0
WRITE_SECONDS = 8.0
"""A write that was begun has ended by then, or is given up; lease.py counts on it."""
SILENT_SECONDS = 70.0
"""A watch without a word for so long is broken: the API server sends a bookmark each minute."""
WATCH_SECONDS = 600
"""After so long the API server ends a watch; else it would at a random time of up to an hour."""
PAGE = 100
"""Objects of one answer to a list: parsed, 500 Jobs would take 18 MiB for a moment."""
NEVER_A_VERSION = "1"
"""A resource version that no object has: etcd counts on from 1, and every object comes later."""


class ClusterError(Exception):
    """What the API server said."""


class RefusedError(ClusterError):
    """It will say so again until somebody changes something."""


class InvalidError(RefusedError):
    """The object is not valid."""


class ForbiddenError(RefusedError):
    """A quota, an admission policy or a missing rule."""


class NotFoundError(ClusterError):
    """No such object, no such kind, or soon no such namespace."""


class ConflictError(ClusterError):
    """What was observed is not the latest."""


class GoneError(ClusterError):
    """The API server does not remember what came after a version, or has no more pages of a list."""


class NotLeaderError(ClusterError):
    """Another replica works; nothing was asked of the API server."""


class UnavailableError(ClusterError):
    """No answer, or one that says nothing about the request."""

    def __init__(self, message: str, retry_after: float = 0.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        """Seconds that the API server wants to be left alone."""


_ERRORS: dict[int, type[ClusterError]] = {
    400: InvalidError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    410: GoneError,
    422: InvalidError,
}


_METHODS = {"list": "GET", "get": "GET", "patch": "PATCH", "create": "POST", "update": "PUT", "delete": "DELETE"}
_NOTHING: Mapping[str, str] = {}
# Else a field that no schema has would be left out.
_CREATED = {"fieldManager": FIELD_MANAGER, "fieldValidation": "Strict"}
# Without fieldValidation the API server parses each apply twice, the second time for fields that are there twice.
_APPLIED = {"fieldManager": FIELD_MANAGER, "force": "true", "fieldValidation": "Ignore"}


class Cluster:
    """A connection, usable from many threads. Every method raises ClusterError.

    Raises RuntimeError, a bug, on a verb that kinds.py does not name: the chart grants no other.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._may_write: Callable[[], bool] = lambda: True

    @classmethod
    def connect(cls, holder: str = "") -> "Cluster":
        """As the pod's service account, or else as KUBECONFIG says. Asks nothing of the API server yet.

        `holder` tells replicas apart in the API server's audit log.
        """
        try:
            return cls(Connection(configuration(), f"{FIELD_MANAGER}/{holder}".rstrip("/"), CONNECT_SECONDS))
        except ConfigurationError as error:
            raise UnavailableError(str(error)) from error

    def guarded(self, may_write: Callable[[], bool]) -> "Cluster":
        """The same connection, which asks before every write and raises NotLeaderError where it may not."""
        other = copy(self)
        other._may_write = may_write
        return other

    def list_all(self, kind: Kind, namespace: str | None) -> tuple[Iterator[dict[str, Any]], str]:
        """What is watched of a kind in a namespace (None: in all), and the resource version of the list.

        The iterator asks for page after page, so that all of them are never in memory at once; it raises ClusterError.
        """
        query = {"labelSelector": kind.labels, "fieldSelector": kind.fields, "limit": str(PAGE)}
        first = self._call(kind, "list", _path(kind, namespace), query)

        def items() -> Iterator[dict[str, Any]]:
            page = first
            while True:
                yield from page["items"]
                following = page["metadata"].get("continue")
                if not following:
                    return
                page = self._call(kind, "list", _path(kind, namespace), query | {"continue": following})

        # Every page is of the first one's version.
        return items(), first["metadata"]["resourceVersion"]

    def watch(self, kind: Kind, namespace: str | None, version: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """What became of the listed objects after a resource version: ADDED, MODIFIED or DELETED, and the object.

        BOOKMARK comes with nothing but a version that all was said of. Ends now and then, to be called again; raises
        GoneError where the version is too old.
        """
        self._allow(kind.verbs, "watch", kind.plural)
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": str(WATCH_SECONDS),
            "labelSelector": kind.labels,
            "fieldSelector": kind.fields,
        }
        with _translated():
            for event in self._connection.stream(_path(kind, namespace), query, SILENT_SECONDS):
                body = event["object"]
                if event["type"] == "ERROR":
                    raise AnswerError(body.get("code", 500), body.get("message", ""))
                yield event["type"], body

    def get(self, kind: Kind, namespace: str, name: str) -> dict[str, Any] | None:
        """An object; None where there is none."""
        try:
            return self._call(kind, "get", _path(kind, namespace, name))
        except NotFoundError:
            return None

    def has_node(self, label: str, value: str) -> bool | None:
        """Whether a node has the label's value; None where the operator may not read nodes."""
        try:
            query = {"labelSelector": f"{label}={value}", "limit": "1"}
            return bool(self._call(NODE, "list", _path(NODE, None), query)["items"])
        except ForbiddenError:
            return None

    def apply(self, body: dict[str, Any]) -> dict[str, Any]:
        """Server-side apply of the whole intent, taking over fields that others set. The object as it is now.

        With `metadata.resourceVersion`, ConflictError where the object has changed since.
        """
        kind, metadata = kind_of(body), body["metadata"]
        return self._call(kind, "patch", _path(kind, metadata["namespace"], metadata["name"]), _APPLIED, body, APPLY)

    def apply_new(self, body: dict[str, Any]) -> dict[str, Any]:
        """Make an object that is not there yet, in one request; ConflictError, and no change, where it is.

        By an apply on condition of a version that no object has, so that a later apply can remove fields; some kinds
        are created instead (kinds.py).
        """
        kind = kind_of(body)
        if kind.created:
            return self.create(kind, body)
        return self.apply({**body, "metadata": {**body["metadata"], "resourceVersion": NEVER_A_VERSION}})

    def apply_status(self, body: dict[str, Any]) -> dict[str, Any]:
        """Server-side apply of a TritonDeployment's status; NotFoundError where it is gone. The object as it is now.

        Never of the object itself: that would create it.
        """
        self._allow(TRITON_DEPLOYMENT.status_verbs, "patch", "tritondeployments/status")
        metadata = body["metadata"]
        path = f"{_path(TRITON_DEPLOYMENT, metadata['namespace'], metadata['name'])}/status"
        return self._request(TRITON_DEPLOYMENT, "patch", path, _APPLIED, body, APPLY)

    def delete(self, observed: dict[str, Any]) -> None:
        """Delete the very object that was observed; its dependents follow. Nothing happens where it is gone.

        Raises ConflictError where it has changed since.
        """
        kind, metadata = kind_of(observed), observed["metadata"]
        options = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": "Background",
            "preconditions": {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]},
        }
        try:
            self._call(kind, "delete", _path(kind, metadata["namespace"], metadata["name"]), body=options)
        except NotFoundError:
            return

    def create(self, kind: Kind, body: dict[str, Any]) -> dict[str, Any]:
        """Create an object; ConflictError where there is one of the name. The object as it is now."""
        return self._call(kind, "create", _path(kind, body["metadata"]["namespace"]), _CREATED, body)

    def replace(self, kind: Kind, body: dict[str, Any]) -> None:
        """Replace the very version that was read; ConflictError where it has changed since."""
        metadata = body["metadata"]
        self._call(kind, "update", _path(kind, metadata["namespace"], metadata["name"]), body=body)

    def create_event(self, body: dict[str, Any]) -> None:
        """Create a core/v1 Event."""
        self.create(EVENT, body)

    def _call(
        self,
        kind: Kind,
        verb: str,
        path: str,
        query: Mapping[str, str] = _NOTHING,
        body: Mapping[str, Any] | None = None,
        content_type: str = "application/json",
    ) -> dict[str, Any]:
        self._allow(kind.verbs, verb, kind.plural)
        return self._request(kind, verb, path, query, body, content_type)

    def _request(
        self,
        kind: Kind,
        verb: str,
        path: str,
        query: Mapping[str, str],
        body: Mapping[str, Any] | None,
        content_type: str,
    ) -> dict[str, Any]:
        if verb not in READING and not self._may_write():
            raise NotLeaderError("this replica does not hold the Lease, so another one works")
        # What is said of the Lease is of no use later either.
        seconds = READ_SECONDS if verb in READING and kind is not LEASE else WRITE_SECONDS - CONNECT_SECONDS
        with _translated():
            return self._connection.request(_METHODS[verb], path, query, body, content_type, seconds)

    @staticmethod
    def _allow(verbs: frozenset[str], verb: str, resource: str) -> None:
        if verb not in verbs:
            raise RuntimeError(f"{verb} {resource} is not among the verbs of kinds.py, which the chart grants")


def _path(kind: Kind, namespace: str | None, name: str = "") -> str:
    """Of an object, or, without a name, of all objects of the kind in the namespace (None: in all)."""
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
        if message.startswith("HTTP 404"):
            # No Status: the API server knows no such path.
            message = (
                f"the API server does not know the kind ({message}): install the CRD first"
                " (crds/, or the chart's crds.install)"
            )
        if "NamespaceTerminating" in error.causes:
            raise NotFoundError(message) from error
        # A field that no schema has: the API server calls its own answer an internal error (500).
        invalid = message.startswith("failed to create typed patch object")
        if not invalid and error.status not in _ERRORS:
            raise UnavailableError(message, error.retry_after) from error
        raise (InvalidError if invalid else _ERRORS[error.status])(message) from error
    except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
        raise UnavailableError(f"no answer from the API server: {error}") from error
