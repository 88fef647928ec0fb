"""All that the plugin asks of a cluster, and a command's subject from it or from a saved file."""

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http import HTTPStatus
from pathlib import Path
from typing import Any

import yaml
from kubernetes import client, config
from kubernetes.client.exceptions import ApiException
from kubernetes.config import kube_config
from kubernetes.config.config_exception import ConfigException
from urllib3.exceptions import HTTPError

from triton_operator import names
from triton_operator.kube.kinds import CLAIM, SERVICE, TRITON_DEPLOYMENT, ApiKind
from triton_operator.kube.nesting import shallow
from triton_plugin.errors import SubjectError, UnreachableError
from triton_plugin.reading import bounded_yaml
from triton_plugin.reading.job_log import LOGGED_STAGES, JobLog, job_log
from triton_plugin.reading.subject import Subject, parse, parse_saved

TIMEOUT_SECONDS = 20
"""The longest silence of the API server, in seconds: a user waits, and a large list takes it some seconds."""
LOG_TIMEOUT_SECONDS = 5
"""The longest silence of the API server before a log, in seconds: the display of progress does not wait for one."""
LOG_LINES = 100
"""How many of the last lines of a log are read: all points of a profile, one a line, and some warnings between them."""


OWN_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
"""The file that tells a pod its namespace, if it has a ServiceAccount's token."""


class MissingError(SubjectError):
    """What was asked for does not exist (404)."""


class DeniedError(SubjectError):
    """The user may not do what was asked (403)."""


class ConflictError(SubjectError):
    """What was to be changed is not what was read (409)."""


ERRORS: Mapping[int, type[SubjectError]] = {403: DeniedError, 404: MissingError, 409: ConflictError}
"""The error of each status that a command may go on after; any other is a SubjectError."""


class Cluster:
    """The cluster and namespace of a kubeconfig's context or, where there is no kubeconfig, of the pod that this is."""

    def __init__(self, context: str | None, namespace: str | None, kubeconfig: str | None = None) -> None:
        """Raise SubjectError if there is no such configuration.

        ``kubeconfig``: path of the file; None: that of KUBECONFIG, or the one of the home folder.
        """
        self.options = [*(["--kubeconfig", kubeconfig] if kubeconfig else [])]
        """The options of kubectl that name the cluster."""
        try:
            if not kubeconfig and not context and _is_pod_without_kubeconfig():
                configuration = client.Configuration()
                config.load_incluster_config(configuration)
                self._api = client.ApiClient(configuration)
                own_namespace = OWN_NAMESPACE.read_text(encoding="utf-8").strip()
            else:
                self._api = config.new_client_from_config(kubeconfig, context)
                entry = _active_context(kubeconfig, context)
                self.options += ["--context", entry["name"]]
                own_namespace = entry["context"].get("namespace", "")
        # Of a kubeconfig of another form, the client raises whatever it stumbles over.
        except (ConfigException, yaml.YAMLError, TypeError, ValueError, LookupError, AttributeError) as error:
            words = " ".join(str(error).split()).rstrip(".")
            raise SubjectError(
                f"no cluster is configured ({words}): set KUBECONFIG, or pass --kubeconfig FILE or a --context of it"
            ) from error
        self.namespace: str = namespace or own_namespace or "default"
        self._custom = client.CustomObjectsApi(self._api)
        self._core = client.CoreV1Api(self._api)
        self._apps = client.AppsV1Api(self._api)
        self._measuring_pod: Any = None
        """Metadata of the last pod that was seen to measure."""

    def kubectl(self, *arguments: str) -> list[str]:
        """Return the command line of kubectl for this cluster and namespace."""
        return ["kubectl", *self.place, *arguments]

    @property
    def place(self) -> list[str]:
        """The options of kubectl that name the cluster and the namespace."""
        return [*self.options, "--namespace", self.namespace]

    def subject(self, name: str) -> Subject:
        """Return the object with its results. Raises SubjectError."""
        body = self.triton_deployment(name)
        return parse(body, self.results(name), self.options)

    def triton_deployment(self, name: str) -> dict[str, Any]:
        """Return the object alone. Raises SubjectError."""
        return self._request(self._custom.get_namespaced_custom_object, name)

    def deployments(self, *, everywhere: bool = False) -> list[dict[str, Any]]:
        """Return all objects of the namespace or, ``everywhere``, of all namespaces. Raises SubjectError."""
        kind = TRITON_DEPLOYMENT
        place = "all namespaces" if everywhere else f"namespace {self.namespace}"
        with translated_errors(f"the TritonDeployments of {place}"):
            if everywhere:
                return _items(self._custom.list_cluster_custom_object, kind.group, kind.version, kind.plural)
            where = (kind.group, kind.version, self.namespace, kind.plural)
            return _items(self._custom.list_namespaced_custom_object, *where)

    def subjects(self) -> list[Subject]:
        """Return all objects of the namespace, without their results. Raises SubjectError."""
        return [parse(each, None, self.options) for each in self.deployments()]

    def retry(self, name: str, moment: str) -> None:
        """Ask the operator for another try of what failed; ``moment`` differs each time. Raises SubjectError."""
        self._annotate(name, names.RETRY_ANNOTATION, moment)

    def update_images(self, name: str, moment: str) -> None:
        """Ask the operator for the installation's images; ``moment`` differs each time. Raises SubjectError."""
        self._annotate(name, names.UPDATE_IMAGES_ANNOTATION, moment)

    def _annotate(self, name: str, annotation: str, text: str) -> None:
        self.patch(name, {"metadata": {"annotations": {annotation: text}}})

    def patch(self, name: str, change: dict[str, Any]) -> None:
        """Change the object by a merge patch. Raises SubjectError."""
        self._request(self._custom.patch_namespaced_custom_object, name, change)

    def patch_spec(self, name: str, version: str, spec: dict[str, Any]) -> None:
        """Change the spec that was read with a resourceVersion. Raises ConflictError if it is another by now."""
        try:
            self.patch(name, {"metadata": {"resourceVersion": version}, "spec": spec})
        except ConflictError as error:
            raise ConflictError(
                f"TritonDeployment {name} was changed while this command decided, so it is left as it is;"
                " type the command again"
            ) from error

    def _request(self, request: Callable[..., Any], name: str, *body: dict[str, Any]) -> dict[str, Any]:
        """Send a request about one TritonDeployment and return the answer. Raises SubjectError."""
        kind = TRITON_DEPLOYMENT
        try:
            with translated_errors(f"TritonDeployment {name}"):
                return _as_json(request, kind.group, kind.version, self.namespace, kind.plural, name, *body)
        except MissingError as error:
            raise MissingError(f"no TritonDeployment {name} in namespace {self.namespace}") from error

    def measuring(self, name: str) -> JobLog:
        """Return the log of the object's Job that measures now, or that did so at the last call.

        The log of a pod that has ended since the last call still counts: its last line may be new. It needs the user's
        rights to list pods and to read their logs; if they are missing, the words say so.
        """
        try:
            with translated_errors("measurements of running Jobs"):
                self._measuring_pod = self._newest_pod(name) or self._measuring_pod
                log = self._log(self._measuring_pod) if self._measuring_pod is not None else ""
        except DeniedError:
            text = "measurements of running Jobs are not shown: you need the rights to list pods and to get pods/log"
            return JobLog(words=f"{text} in namespace {self.namespace}")
        except SubjectError:
            return JobLog()
        if self._measuring_pod is None:
            return JobLog()
        return job_log(name, self._measuring_pod.name, self._measuring_pod.labels, log)

    def _newest_pod(self, name: str) -> Any:
        """Return the metadata of the pod that measures for the object; None if there is none."""
        stages = f"{names.STAGE_LABEL} in ({','.join(LOGGED_STAGES)})"
        pods: Any = self._core.list_namespaced_pod(
            self.namespace,
            label_selector=f"{names.TRITON_DEPLOYMENT_LABEL}={name},{stages}",
            # To Kubernetes, a pod is Pending until its last container starts, and others measure.
            field_selector="status.phase!=Succeeded,status.phase!=Failed",
            _request_timeout=LOG_TIMEOUT_SECONDS,
        )
        return max((pod.metadata for pod in pods.items), key=lambda each: each.creation_timestamp, default=None)

    def _log(self, pod: Any) -> str:
        """Return the last lines of the container that measures, from the metadata of its pod."""
        # As bytes: the client would print them as Python does.
        answer: Any = self._core.read_namespaced_pod_log(
            pod.name,
            self.namespace,
            container=names.logged_container(pod.labels, pod.annotations),
            tail_lines=LOG_LINES,
            _preload_content=False,
            _request_timeout=LOG_TIMEOUT_SECONDS,
        )
        log: str = answer.data.decode(errors="replace")
        return log

    def operators(self, selector: str) -> list[dict[str, Any]]:
        """Return the Deployments of all namespaces with the labels of a selector. Raises SubjectError."""
        with translated_errors("the operator's Deployment cannot be read"):
            return _items(self._apps.list_deployment_for_all_namespaces, label_selector=selector)

    def child(self, kind: ApiKind, name: str) -> dict[str, Any] | None:
        """Return an object of the namespace; None if there is none, or no such kind. Raises SubjectError."""
        core = {SERVICE: self._core.read_namespaced_service, CLAIM: self._core.read_namespaced_persistent_volume_claim}
        with suppress(MissingError), translated_errors(f"{kind} {name} cannot be read"):
            if kind in core:
                return _as_json(core[kind], name, self.namespace)
            place = (kind.group, kind.version, self.namespace, kind.plural, name)
            return _as_json(self._custom.get_namespaced_custom_object, *place)
        return None

    def children(self, kind: ApiKind) -> list[dict[str, Any]]:
        """Return all objects of a kind in the namespace, of a group that is not the core's. Raises SubjectError."""
        with translated_errors(f"the {kind.plural} of namespace {self.namespace} cannot be read"):
            place = (kind.group, kind.version, self.namespace, kind.plural)
            listed = _items(self._custom.list_namespaced_custom_object, *place)
        # Items of a list lack what the list says once.
        return [{"apiVersion": kind.api_version, "kind": kind.kind, **each} for each in listed]

    def make_claim(self, body: dict[str, Any]) -> bool:
        """Make a PersistentVolumeClaim unless it exists; return whether it was made. Raises SubjectError."""
        name = body["metadata"]["name"]
        with translated_errors(f"PersistentVolumeClaim {name} cannot be made in namespace {self.namespace}"):
            try:
                _as_json(self._core.read_namespaced_persistent_volume_claim, name, self.namespace)
            except ApiException as error:
                if error.status != HTTPStatus.NOT_FOUND:
                    raise
                _as_json(self._core.create_namespaced_persistent_volume_claim, self.namespace, body)
                return True
        return False

    def make_pod(self, body: dict[str, Any]) -> None:
        """Make a pod. Raises SubjectError."""
        with translated_errors(f"pod {body['metadata']['name']} cannot be made in namespace {self.namespace}"):
            _as_json(self._core.create_namespaced_pod, self.namespace, body)

    def pod(self, name: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """Return a pod, and the Events about it. Raises SubjectError."""
        with translated_errors(f"pod {name} cannot be read"):
            pod = _as_json(self._core.read_namespaced_pod, name, self.namespace)
            selector = f"involvedObject.uid={pod['metadata']['uid']}"
            return pod, _items(self._core.list_namespaced_event, self.namespace, field_selector=selector)

    def delete_pod(self, name: str) -> None:
        """Delete a pod, if it is there. Raises SubjectError."""
        with suppress(MissingError), translated_errors("it was not deleted"):
            _as_json(self._core.delete_namespaced_pod, name, self.namespace)

    def results(self, name: str, namespace: str = "") -> dict[str, Any] | None:
        """Return the ConfigMap with an object's results; None if there is none. Raises SubjectError.

        ``namespace``: the object's, if it is another than this cluster's.
        """
        try:
            with translated_errors(f"ConfigMap {names.results(name)} cannot be read"):
                where = (names.results(name), namespace or self.namespace)
                config_map = _as_json(self._core.read_namespaced_config_map, *where)
        except MissingError:
            return None
        return {"kind": "ConfigMap", "metadata": {"name": names.results(name)}, "data": config_map.get("data") or {}}


def _as_json(request: Callable[..., Any], *arguments: Any, **options: str) -> dict[str, Any]:
    """Send a request and return the answer as the API server wrote it, with null for each value that is too deep.

    One object of a list that is nested deeper than Python reads, which anybody may write, keeps no other away.
    """
    answer = request(*arguments, **options, _preload_content=False, _request_timeout=TIMEOUT_SECONDS)
    document: dict[str, Any] = json.loads(shallow(answer.data))
    return document


def _items(request: Callable[..., Any], *arguments: str, **options: str) -> list[dict[str, Any]]:
    """Send a request for a list and return its items as the API server wrote them."""
    return list(_as_json(request, *arguments, **options)["items"])


@contextmanager
def translated_errors(request: str) -> Iterator[None]:
    """Turn the client's errors into a SubjectError about what was asked, with the API server's words.

    Raises SubjectError if the API server refuses, and UnreachableError if it does not answer.
    """
    try:
        yield
    except ApiException as error:
        raise ERRORS.get(error.status, SubjectError)(
            f"{request}: the API server answered {error.status} {_server_message(error)}{_remedy(error)}"
        ) from error
    except HTTPError as error:
        raise UnreachableError(f"{request}: the API server cannot be reached: {error}") from error


def _server_message(error: ApiException) -> str:
    """Return the message of a refusal, or else its name."""
    try:
        return str(json.loads(error.body or "")["message"])
    except (TypeError, ValueError, KeyError):
        return str(error.reason)


def _remedy(error: ApiException) -> str:
    """Return how to make a namespace that is missing."""
    match = re.fullmatch(r'namespaces "([a-z0-9-]+)" not found', _server_message(error))
    return f"; make it first: kubectl create namespace {match[1]}" if match else ""


def _is_pod_without_kubeconfig() -> bool:
    """Whether kubectl, too, would take the pod's own account: no kubeconfig is there."""
    paths = kube_config.KUBE_CONFIG_DEFAULT_LOCATION.split(os.pathsep)
    return OWN_NAMESPACE.is_file() and not any(Path(path).expanduser().is_file() for path in paths if path)


def is_file(name: str) -> bool:
    """Whether a name is a path: no object's name contains a dot or a slash."""
    return "." in name or "/" in name


def read_file(path: str) -> Subject:
    """Read what ``kubectl get td/NAME configmap/NAME-results -o yaml`` printed. Raises SubjectError."""
    try:
        with Path(path).open(encoding="utf-8") as file:
            return parse_saved(bounded_yaml.documents(bounded_yaml.text_of(file)))
    except (OSError, UnicodeDecodeError, yaml.YAMLError, AttributeError, KeyError, TypeError) as error:
        raise SubjectError(f"{path} is not a saved TritonDeployment: {error}") from error


def _active_context(kubeconfig: str | None, context: str | None) -> Any:
    """Return the context of that name, or else the current one. Raises ConfigException.

    The client's own list of contexts needs a current one that exists.
    """
    merged = kube_config.KubeConfigMerger(kubeconfig or kube_config.KUBE_CONFIG_DEFAULT_LOCATION)
    return kube_config.KubeConfigLoader(merged.config, active_context=context).current_context
