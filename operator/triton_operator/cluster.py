"""The Kubernetes API: the only module that imports `kubernetes`. Plain dicts in and out, errors of its own.

ClusterError              what the API server said
├── RefusedError          it will say so again until somebody changes something
│   ├── InvalidError      400, 422: the object is not valid
│   └── ForbiddenError    403: a quota, an admission policy, a missing rule
├── NotFoundError         404
├── ConflictError         409: what was observed is not the latest
├── NotLeaderError        nothing: this replica may not write (lease.py), so nothing was asked
└── UnavailableError      anything else: no answer, a timeout, 401, 429, 5xx
"""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from typing import Any

import urllib3
from kubernetes import client, config
from kubernetes.dynamic import DynamicClient
from kubernetes.dynamic.exceptions import DynamicApiError, ResourceNotFoundError

from triton_operator.drift import FIELD_MANAGER
from triton_operator.kinds import ALL, EVENT, LEASE, READING, TRITON_DEPLOYMENT, Kind, kind_of

CONNECT_SECONDS = 3.0
READ_SECONDS = 30.0
WRITE_SECONDS = 8.0
"""A write that was begun has ended by then, or is given up; lease.py counts on it."""
PAGE = 500
"""Objects of one answer to a list."""
EVENTS_READ = 50
"""Events about one object that are read: the API server keeps them for an hour."""


class ClusterError(Exception):
    """What the API server said."""


class RefusedError(ClusterError):
    """It will say so again until somebody changes something."""


class InvalidError(RefusedError):
    """The object is not valid."""


class ForbiddenError(RefusedError):
    """A quota, an admission policy or a missing rule."""


class NotFoundError(ClusterError):
    """No such object, or no such kind."""


class ConflictError(ClusterError):
    """What was observed is not the latest."""


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
    422: InvalidError,
}


class Cluster:
    """A connection, usable from many threads. Every method raises ClusterError.

    Raises RuntimeError, a bug, on a verb that kinds.py does not name: the chart grants no other.
    """

    def __init__(self, dynamic: DynamicClient) -> None:
        self._resources = {kind: _resolve(dynamic, kind) for kind in (*ALL, LEASE)}
        self._may_write: Callable[[], bool] = lambda: True

    def guarded(self, may_write: Callable[[], bool]) -> "Cluster":
        """The same connection, which asks before every write and raises NotLeaderError where it may not."""
        other = copy(self)
        other._may_write = may_write
        return other

    @classmethod
    def connect(cls, connections: int, holder: str = "") -> "Cluster":
        """Connect as the pod's service account, or else as KUBECONFIG says, and look every kind up.

        `connections` are kept open for as many threads. `holder` tells replicas apart in the API server's audit log.
        """
        settings = client.Configuration()
        settings.connection_pool_maxsize = connections
        # urllib3 would repeat reads by itself, and sleep for as long as a 429 says; passes come again anyway.
        settings.retries = urllib3.Retry(0)
        try:
            config.load_incluster_config(client_configuration=settings)
        except config.ConfigException:
            try:
                config.load_kube_config(os.environ.get("KUBECONFIG"), client_configuration=settings)
            except config.ConfigException as error:
                raise UnavailableError(f"no service account and no usable kubeconfig: {error}") from error
        api = client.ApiClient(settings)
        api.user_agent = f"{FIELD_MANAGER}/{holder}" if holder else FIELD_MANAGER
        with _translated():
            return cls(DynamicClient(api))

    def list_all(self, kind: Kind, namespace: str | None, label_selector: str) -> tuple[list[dict[str, Any]], str]:
        """All objects of a kind in a namespace (None: in all), and the resource version of the list."""
        items: list[dict[str, Any]] = []
        next_page = None
        while True:
            page = self._call(
                kind, "list", namespace=namespace, label_selector=label_selector, limit=PAGE, _continue=next_page
            )
            items += page["items"]
            next_page = page["metadata"].get("continue")
            if not next_page:
                return items, page["metadata"]["resourceVersion"]

    def get(self, kind: Kind, namespace: str, name: str) -> dict[str, Any] | None:
        """An object; None where there is none."""
        try:
            return self._call(kind, "get", namespace=namespace, name=name)
        except NotFoundError:
            return None

    def apply(self, body: dict[str, Any]) -> dict[str, Any]:
        """Server-side apply of the whole intent, taking over fields that others set. The object as it is now.

        With `metadata.resourceVersion`, ConflictError where the object has changed since.
        """
        return self._call(kind_of(body), "patch", body=body, field_manager=FIELD_MANAGER, force_conflicts=True)

    def apply_status(self, body: dict[str, Any]) -> dict[str, Any]:
        """Server-side apply of a TritonDeployment's status; NotFoundError where it is gone. The object as it is now.

        Never of the object itself: that would create it.
        """
        metadata = body["metadata"]
        self._allow(TRITON_DEPLOYMENT.status_verbs, "patch", "tritondeployments/status")
        self._check_leader()
        with _translated():
            response = self._resources[TRITON_DEPLOYMENT].status.server_side_apply(
                body=body,
                name=metadata["name"],
                namespace=metadata["namespace"],
                field_manager=FIELD_MANAGER,
                force_conflicts=True,
                serialize=False,
                _request_timeout=(CONNECT_SECONDS, WRITE_SECONDS - CONNECT_SECONDS),
            )
        return _parsed(response)

    def delete(self, observed: dict[str, Any]) -> None:
        """Delete the very object that was observed; its dependents follow. Nothing happens where it is gone.

        Raises ConflictError where it has changed since.
        """
        metadata = observed["metadata"]
        preconditions = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
        options = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": "Background",
            "preconditions": preconditions,
        }
        try:
            self._call(
                kind_of(observed),
                "delete",
                body=options,
                name=metadata["name"],
                namespace=metadata["namespace"],
            )
        except NotFoundError:
            return

    def create(self, kind: Kind, body: dict[str, Any]) -> None:
        """Create an object; ConflictError where there is one of the name."""
        self._call(kind, "create", body=_typed(kind, body), namespace=body["metadata"]["namespace"])

    def replace(self, kind: Kind, body: dict[str, Any]) -> None:
        """Replace the very version that was read; ConflictError where it has changed since."""
        metadata = body["metadata"]
        self._call(kind, "update", body=_typed(kind, body), name=metadata["name"], namespace=metadata["namespace"])

    def create_event(self, body: dict[str, Any]) -> None:
        """Create a core/v1 Event."""
        self.create(EVENT, body)

    def events_about(self, namespace: str, uid: str) -> list[dict[str, Any]]:
        """The Events about an object."""
        selector = f"involvedObject.uid={uid}"
        page = self._call(EVENT, "list", namespace=namespace, field_selector=selector, limit=EVENTS_READ)
        events: list[dict[str, Any]] = page["items"]
        return [{"apiVersion": "v1", "kind": "Event", **event} for event in events]

    def _call(self, kind: Kind, verb: str, **arguments: Any) -> dict[str, Any]:
        self._allow(kind.verbs, verb, kind.plural)
        # What is said of the Lease is of no use later either.
        seconds = READ_SECONDS if verb in READING and kind is not LEASE else WRITE_SECONDS - CONNECT_SECONDS
        if verb not in READING:
            self._check_leader()
        method = {"list": "get", "patch": "server_side_apply", "update": "replace"}.get(verb, verb)
        with _translated():
            response = getattr(self._resources[kind], method)(
                **arguments, serialize=False, _request_timeout=(CONNECT_SECONDS, seconds)
            )
        return _parsed(response)

    def _check_leader(self) -> None:
        if not self._may_write():
            raise NotLeaderError("this replica does not hold the Lease (any more): another one works")

    @staticmethod
    def _allow(verbs: frozenset[str], verb: str, resource: str) -> None:
        if verb not in verbs:
            raise RuntimeError(f"{verb} {resource}: not among the verbs of kinds.py, which the chart grants")


def _resolve(dynamic: DynamicClient, kind: Kind) -> Any:
    with _translated():
        return dynamic.resources.get(api_version=kind.api_version, kind=kind.kind)


def _typed(kind: Kind, body: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": kind.api_version, "kind": kind.kind, **body}


def _parsed(response: Any) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(response.data)
    return body


@contextmanager
def _translated() -> Iterator[None]:
    """Turn what the client raises into a ClusterError with the API server's own message."""
    try:
        yield
    except DynamicApiError as error:
        message = _message(error)
        # A field that no schema has: the API server calls its own answer an internal error (500).
        invalid = message.startswith("failed to create typed patch object")
        if not invalid and error.status not in _ERRORS:
            raise UnavailableError(message, _retry_after(error)) from error
        raise (InvalidError if invalid else _ERRORS[error.status])(message) from error
    except ResourceNotFoundError as error:
        raise NotFoundError(f"{error}: install the CRD first (crds/, or the chart's crds.install)") from error
    except (urllib3.exceptions.HTTPError, OSError) as error:
        raise UnavailableError(f"no answer from the API server: {error}") from error


def _retry_after(error: DynamicApiError) -> float:
    """Seconds; the API server never gives a date."""
    text = (error.headers or {}).get("Retry-After", "")
    return float(text) if text.isdecimal() else 0.0


def _message(error: DynamicApiError) -> str:
    """The message of the API server's Status, or what there is."""
    try:
        return str(json.loads(error.body or "")["message"])
    except (ValueError, KeyError, TypeError):
        return f"HTTP {error.status} {error.reason}"
