"""What a push asks of the API server: the image, the claim, and the pod while it lives."""

import json
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from kubernetes import client

from triton_converters.contract.reasons import Reason
from triton_operator.observed.pod import pod_view
from triton_operator.observed.trouble import pod_trouble
from triton_plugin.push.objects import CONTAINER, MOUNT, PushError, Target, claim, pod
from triton_plugin.push.sending import Remote
from triton_plugin.source import TIMEOUT_SECONDS, Cluster, MissingError, answered
from triton_plugin.subject import SubjectError

JSON = dict[str, Any]
OPERATOR_SELECTOR = "app.kubernetes.io/name=triton-operator"
START_SECONDS = 600.0
"""How long the pod may take to start: a node may have to be made, and a large image pulled."""
POLL_SECONDS = 1.0
LASTING = {Reason.IMAGE_PULL_FAILED, Reason.CONTAINER_CONFIG_INVALID}
"""Troubles of a pod that end a push at once; others may pass."""


class Claims:
    """The claims of a namespace, and the pods through which files get there."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._core = client.CoreV1Api(cluster.api)
        self._apps = client.AppsV1Api(cluster.api)
        self.namespace = cluster.namespace

    def converter_image(self) -> str:
        """Return the converter image of the installation. Raises PushError if it cannot be found."""
        for image in (self._of_operator, self._of_objects):
            try:
                if found := image():
                    return found
            except SubjectError:
                # A user may have no right to one of the two.
                continue
        raise PushError(
            f"no operator's Deployment and no TritonDeployment in namespace {self.namespace} tells the converter image,"
            " or you may not read them; pass an image with Python 3.11: --image IMAGE"
        )

    def _of_operator(self) -> str:
        with answered("the operator's Deployment cannot be read"):
            found: Any = self._apps.list_deployment_for_all_namespaces(
                label_selector=OPERATOR_SELECTOR, _request_timeout=TIMEOUT_SECONDS
            )
        containers = (each for deployment in found.items for each in deployment.spec.template.spec.containers)
        variables = (each for container in containers for each in container.env or ())
        return next((each.value for each in variables if each.name == "CONVERTER_IMAGE" and each.value), "")

    def _of_objects(self) -> str:
        found = self._cluster.deployments()
        images = (each.get("status", {}).get("images", {}).get("converter", "") for each in found)
        return next(filter(None, images), "")

    def make(self, name: str, size: str, storage_class: str) -> bool:
        """Make the claim unless it exists; returns whether it was made. Raises SubjectError."""
        what = f"PersistentVolumeClaim {name} cannot be made in namespace {self.namespace}"
        try:
            with answered(what):
                self._core.read_namespaced_persistent_volume_claim(
                    name, self.namespace, _request_timeout=TIMEOUT_SECONDS
                )
            return False
        except MissingError:
            body: Any = claim(name, size, storage_class)
        with answered(what):
            self._core.create_namespaced_persistent_volume_claim(self.namespace, body, _request_timeout=TIMEOUT_SECONDS)
        return True

    @contextmanager
    def opened(self, target: Target, image: str, say: Callable[[str], None]) -> Iterator[Remote]:
        """Yield the way to a folder, through a pod that is deleted in any case; ``say`` is told what it waits for.

        Raises SubjectError, or PushError if the pod does not start.
        """
        # A name of ours: who is interrupted while the pod is made knows which one to delete.
        name = f"triton-push-{secrets.token_hex(4)}"
        body: Any = pod(name, target.claim, image)
        say(f"starting pod {name} with image {image}")
        try:
            with answered(f"pod {name} cannot be made in namespace {self.namespace}"):
                self._core.create_namespaced_pod(self.namespace, body, _request_timeout=TIMEOUT_SECONDS)
            self._wait(name, say)
            within = self._cluster.kubectl("exec", "--stdin", name, "--container", CONTAINER, "--")
            yield Remote(within, f"{MOUNT}/{target.path}")
        finally:
            self._delete(name, say)

    def _wait(self, name: str, say: Callable[[str], None]) -> None:
        deadline = time.monotonic() + START_SECONDS
        said = ""
        while True:
            with answered(f"pod {name} cannot be read"):
                found = _as_json(self._core.read_namespaced_pod, name, self.namespace)
                if found["status"].get("phase") == "Running":
                    return
                about = f"involvedObject.uid={found['metadata']['uid']}"
                events = _as_json(self._core.list_namespaced_event, self.namespace, field_selector=about)["items"]
            trouble = pod_trouble(pod_view(found), events)
            words = trouble.message if trouble else f"pod {name} is {found['status'].get('phase', 'Pending')}"
            ended = found["status"].get("phase") in ("Succeeded", "Failed")
            if ended or (trouble and trouble.reason in LASTING):
                raise PushError(f"the pod that takes the files does not run: {words}")
            if time.monotonic() > deadline:
                raise PushError(f"the pod that takes the files did not start in {START_SECONDS:.0f} s: {words}")
            if trouble and words != said:
                say(f"waiting: {words}")
                said = words
            time.sleep(POLL_SECONDS)

    def _delete(self, name: str, say: Callable[[str], None]) -> None:
        try:
            with suppress(MissingError), answered("it was not deleted"):
                self._core.delete_namespaced_pod(name, self.namespace, _request_timeout=TIMEOUT_SECONDS)
        except SubjectError as error:
            say(f"pod {name}: {error}; delete it: kubectl delete pod {name} --namespace {self.namespace}")


def _as_json(request: Callable[..., Any], *arguments: str, **options: str) -> JSON:
    """Send a request and return the answer as the API server wrote it."""
    answer = request(*arguments, **options, _preload_content=False, _request_timeout=TIMEOUT_SECONDS)
    found: JSON = json.loads(answer.data)
    return found
