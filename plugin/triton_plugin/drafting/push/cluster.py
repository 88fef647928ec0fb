"""What a push, and its inverse, need of the cluster: the image, the claim, and the pod while it lives."""

import secrets
import shlex
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from triton_converters.contract.reasons import Reason
from triton_operator.names import Body
from triton_operator.observed.pod import pod_view
from triton_operator.observed.trouble import pod_trouble
from triton_plugin.drafting.push.objects import CONTAINER, MOUNT, Target, claim, pod
from triton_plugin.drafting.push.sending import Remote
from triton_plugin.errors import PushError, SubjectError
from triton_plugin.reading.cluster import Cluster

OPERATOR_SELECTOR = "app.kubernetes.io/name=triton-operator"
IMAGE_VARIABLE = "CONVERTER_IMAGE"
"""The variable of the operator's container that names the converter image."""
NAMED = 3
"""How many Deployments or objects a message names at most."""
START_SECONDS = 600.0
"""How long the pod may take to start: a node may have to be made, and a large image pulled."""
POLL_SECONDS = 1.0
LASTING = {Reason.IMAGE_PULL_FAILED, Reason.CONTAINER_CONFIG_INVALID}
"""Troubles of a pod that end a push at once; others may pass."""


def pod_name() -> str:
    """Return a new name: who is interrupted while the pod is made knows which one to delete."""
    return f"triton-push-{secrets.token_hex(4)}"


class Claims:
    """The claims of a namespace, and the pods through which files get there."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.namespace = cluster.namespace

    def converter_image(self) -> str:
        """Return the converter image of the installation. Raises PushError if it cannot be found.

        Whoever may make Deployments in a namespace can give one the operator's labels. So the image counts that all of
        them name or, if they differ, that all objects of this namespace have.
        """
        operators, objects = self._of_operators(), self._of_objects()
        for found in (operators, objects):
            if len(set(found.values())) == 1:
                return next(iter(found.values()))
        if operators:
            # Their images are not named: one that somebody else chose would run with the files.
            places = ", ".join(sorted(operators)[:NAMED])
            raise PushError(
                f"{len(operators)} Deployments with the operator's labels name different converter images ({places});"
                " anybody may set these labels, so take the image from the Deployment that your administrator"
                " installed: --image IMAGE"
            )
        if objects:
            named = ", ".join(f"{name} ({image})" for name, image in sorted(objects.items())[:NAMED])
            raise PushError(
                f"the TritonDeployments of namespace {self.namespace} have different converter images: {named};"
                " pass the right one: --image IMAGE"
            )
        raise PushError(
            f"no operator's Deployment and no TritonDeployment in namespace {self.namespace} tells the converter image,"
            " or you may not read them; pass an image with Python 3.11: --image IMAGE"
        )

    def _of_operators(self) -> dict[str, str]:
        """Return the image that each Deployment with the operator's labels names; empty: none may be read."""
        with suppress(SubjectError):
            return {
                "{namespace}/{name}".format_map(each["metadata"]): variable["value"]
                for each in self._cluster.operators(OPERATOR_SELECTOR)
                for container in each["spec"]["template"]["spec"]["containers"]
                for variable in container.get("env", ())
                if variable["name"] == IMAGE_VARIABLE and variable.get("value")
            }
        return {}

    def _of_objects(self) -> dict[str, str]:
        """Return the image that each object of the namespace is pinned to; empty: none may be read."""
        with suppress(SubjectError):
            images = {
                each["metadata"]["name"]: each.get("status", {}).get("images", {}).get("converter", "")
                for each in self._cluster.deployments()
            }
            return {name: image for name, image in images.items() if image}
        return {}

    def make(self, name: str, size: str, storage_class: str) -> bool:
        """Make the claim unless it exists; returns whether it was made. Raises SubjectError."""
        return self._cluster.make_claim(claim(name, size, storage_class))

    @contextmanager
    def opened(self, target: Target, image: str, say: Callable[[str], None]) -> Iterator[Remote]:
        """Yield the way to a folder, through a pod that is deleted in any case; ``say`` is told what it waits for.

        Raises SubjectError, or PushError if the pod does not start.
        """
        with self.within(pod(pod_name(), target.claim, image), say) as prefix:
            yield Remote(prefix, f"{MOUNT}/{target.path}")

    @contextmanager
    def within(self, body: Body, say: Callable[[str], None]) -> Iterator[list[str]]:
        """Yield the command line that runs what follows it in a pod that is deleted in any case.

        Raises SubjectError, or PushError if the pod does not start.
        """
        name, (container,) = body["metadata"]["name"], body["spec"]["containers"]
        say(f"starting pod {name} with image {container['image']}")
        try:
            self._cluster.make_pod(body)
            self._wait(name, say)
            yield self._cluster.kubectl("exec", "--stdin", name, "--container", CONTAINER, "--")
        finally:
            self._delete(name, say)

    def _wait(self, name: str, say: Callable[[str], None]) -> None:
        deadline = time.monotonic() + START_SECONDS
        said = ""
        while True:
            found, events = self._cluster.pod(name)
            if found["status"].get("phase") == "Running":
                return
            trouble = pod_trouble(pod_view(found), events)
            words = trouble.message if trouble else f"pod {name} is {found['status'].get('phase', 'Pending')}"
            ended = found["status"].get("phase") in ("Succeeded", "Failed")
            if ended or (trouble and trouble.reason in LASTING):
                raise PushError(f"the pod with the claim does not run: {words}")
            if time.monotonic() > deadline:
                raise PushError(f"the pod with the claim did not start in {START_SECONDS:.0f} s: {words}")
            if trouble and words != said:
                say(f"waiting: {words}")
                said = words
            time.sleep(POLL_SECONDS)

    def _delete(self, name: str, say: Callable[[str], None]) -> None:
        try:
            self._cluster.delete_pod(name)
        except SubjectError as error:
            say(f"pod {name}: {error}; delete it: {shlex.join(self._cluster.kubectl('delete', 'pod', name))}")
