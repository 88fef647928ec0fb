"""The Kubernetes API: the only module that imports `kubernetes`. Plain dicts in and out, errors of its own.

ClusterError              what the API server said
├── RefusedError          it will say so again until somebody changes something
│   ├── InvalidError      400, 422: the object is not valid
│   └── ForbiddenError    403: a quota, an admission policy, a missing rule
├── NotFoundError         404
├── ConflictError         409: what was observed is not the latest
└── UnavailableError      anything else: no answer, a timeout, 401, 429, 5xx
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import urllib3
from kubernetes import client, config
from kubernetes.dynamic import DynamicClient
from kubernetes.dynamic.exceptions import DynamicApiError, ResourceNotFoundError

from triton_operator.drift import FIELD_MANAGER
from triton_operator.kinds import ALL, EVENT, NODE, TRITON_DEPLOYMENT, Kind, kind_of

CONNECT_SECONDS = 5
REQUEST_SECONDS = 30
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


class UnavailableError(ClusterError):
    """No answer, or one that says nothing about the request."""


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
        self._dynamic = dynamic
        self._resources = {kind: _resolve(dynamic, kind) for kind in ALL}

    @classmethod
    def connect(cls, connections: int) -> "Cluster":
        """Connect as the pod's service account, or else as KUBECONFIG says, and look every kind up.

        `connections` are kept open for as many threads.
        """
        settings = client.Configuration()
        settings.connection_pool_maxsize = connections
        try:
            config.load_incluster_config(client_configuration=settings)
        except config.ConfigException:
            try:
                config.load_kube_config(os.environ.get("KUBECONFIG"), client_configuration=settings)
            except config.ConfigException as error:
                raise UnavailableError(f"no service account and no usable kubeconfig: {error}") from error
        with _translated():
            return cls(DynamicClient(client.ApiClient(settings)))

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

    def has_node(self, label: str, value: str) -> bool | None:
        """Whether a node has the label's value; None where the operator may not read nodes."""
        try:
            return bool(self._call(NODE, "list", label_selector=f"{label}={value}", limit=1)["items"])
        except ForbiddenError:
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
        with _translated():
            response = self._resources[TRITON_DEPLOYMENT].status.server_side_apply(
                body=body,
                name=metadata["name"],
                namespace=metadata["namespace"],
                field_manager=FIELD_MANAGER,
                force_conflicts=True,
                serialize=False,
                _request_timeout=(CONNECT_SECONDS, REQUEST_SECONDS),
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

    def create_event(self, body: dict[str, Any]) -> None:
        """Create a core/v1 Event."""
        self._call(EVENT, "create", body=body, namespace=body["metadata"]["namespace"])

    def events_about(self, namespace: str, uid: str) -> list[dict[str, Any]]:
        """The Events about an object."""
        selector = f"involvedObject.uid={uid}"
        page = self._call(EVENT, "list", namespace=namespace, field_selector=selector, limit=EVENTS_READ)
        events: list[dict[str, Any]] = page["items"]
        return [{"apiVersion": "v1", "kind": "Event", **event} for event in events]

    def _call(self, kind: Kind, verb: str, **arguments: Any) -> dict[str, Any]:
        self._allow(kind.verbs, verb, kind.plural)
        resource = self._resources[kind]
        method = {"list": "get", "patch": "server_side_apply"}.get(verb, verb)
        with _translated():
            response = getattr(resource, method)(
                **arguments, serialize=False, _request_timeout=(CONNECT_SECONDS, REQUEST_SECONDS)
            )
        return _parsed(response)

    @staticmethod
    def _allow(verbs: frozenset[str], verb: str, resource: str) -> None:
        if verb not in verbs:
            raise RuntimeError(f"{verb} {resource}: not among the verbs of kinds.py, which the chart grants")


def _resolve(dynamic: DynamicClient, kind: Kind) -> Any:
    with _translated():
        return dynamic.resources.get(api_version=kind.api_version, kind=kind.kind)


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
        raise (InvalidError if invalid else _ERRORS.get(error.status, UnavailableError))(message) from error
    except ResourceNotFoundError as error:
        raise NotFoundError(f"{error}: install the CRD first (crds/, or the chart's crds.install)") from error
    except (urllib3.exceptions.HTTPError, OSError) as error:
        raise UnavailableError(f"no answer from the API server: {error}") from error


def _message(error: DynamicApiError) -> str:
    """The message of the API server's Status, or what there is."""
    try:
        return str(json.loads(error.body or "")["message"])
    except (ValueError, KeyError, TypeError):
        return f"HTTP {error.status} {error.reason}"
