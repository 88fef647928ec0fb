"""The node, the controllers and the operator's passes of one TritonDeployment, in one process."""

import itertools
import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import uuid4

from triton_local import controllers
from triton_local.kubelet import Node, Pod
from triton_local.objects import Objects, now_text
from triton_operator.names import Body
from triton_operator.runtime.metrics import Metrics
from triton_operator.runtime.reconcile import Reconciler
from triton_operator.settings import Settings

LOOK_SECONDS = 0.1
"""How often controllers look, and the longest wait for a change."""
RETRY_SECONDS = 5.0
"""The pause after a pass that failed."""
ADDRESSES = 2**16 - 2
"""How many addresses 127.77.0.0/16 has; a pod has one of its own."""


class Machine:
    """The Job and Deployment controllers, and the pods of this machine."""

    def __init__(self, node: Node, objects: Objects) -> None:
        self._node = node
        self._objects = objects
        self._pods: dict[str, tuple[str, Pod]] = {}
        """Each pod with its owner's uid, the oldest first, by its name."""
        self._numbers = itertools.count(os.getpid() % ADDRESSES)

    def look(self) -> None:
        """Let the controllers look at all that there is."""
        owners = {
            each["metadata"]["uid"]: each for kind in ("Job", "Deployment") for each in self._objects.of_kind(kind)
        }
        for name, (owner, pod) in list(self._pods.items()):
            if owner not in owners:
                self._end(name, pod)
        for body in owners.values():
            if body["kind"] == "Job":
                self._job(body)
            else:
                self._deployment(body)

    def services(self) -> Mapping[str, str]:
        """The address of a ready pod of each Service that has one, by the Service's name."""
        found = {}
        for service in self._objects.of_kind("Service"):
            for address in self.addresses(service):
                found[service["metadata"]["name"]] = address
        return found

    def addresses(self, service: Body) -> Iterator[str]:
        """Yield the addresses of the ready pods that a Service leads to."""
        wanted = service["spec"].get("selector", {}).items()
        for pod in self._objects.of_kind("Pod"):
            if wanted <= pod["metadata"]["labels"].items() and controllers.is_ready(pod):
                yield pod["status"]["podIP"]

    def close(self) -> None:
        """End all pods, and wait for them."""
        pods = [pod for _, pod in self._pods.values()]
        for pod in pods:
            pod.end()
        for pod in pods:
            pod.join()

    def _job(self, job: Body) -> None:
        if job["status"].get("conditions"):
            return
        following = controllers.job_next(job, self._of(job))
        if isinstance(following, controllers.Over):
            status = controllers.job_status(job, following, now_text())
            self._objects.set_status("Job", job["metadata"]["name"], status)
        elif following is not None and following.due <= datetime.now(UTC):
            self._start(job)

    def _deployment(self, deployment: Body) -> None:
        pods = self._of(deployment)
        wanted = deployment["spec"]["replicas"]
        for pod in sorted(pods, key=controllers.is_ready)[: max(0, len(pods) - wanted)]:
            self._end(pod["metadata"]["name"], self._pods[pod["metadata"]["name"]][1])
        for _ in range(wanted - len(pods)):
            self._start(deployment)
        status = controllers.deployment_status(deployment, self._of(deployment), datetime.now(UTC))
        self._objects.set_status("Deployment", deployment["metadata"]["name"], status)

    def _of(self, owner: Body) -> list[Body]:
        uid = owner["metadata"]["uid"]
        own = [name for name, (each, _) in self._pods.items() if each == uid]
        return [body for name in own if (body := self._objects.find("Pod", name)) is not None]

    def _start(self, owner: Body) -> None:
        name = f"{owner['metadata']['name']}-{uuid4().hex[:8]}"
        high, low = divmod(next(self._numbers) % ADDRESSES + 1, 256)
        pod = Pod(self._node, self._objects, owner, name, f"127.77.{high}.{low}")
        self._pods[name] = owner["metadata"]["uid"], pod
        pod.start()

    def _end(self, name: str, pod: Pod) -> None:
        pod.end()
        del self._pods[name]
        self._objects.remove("Pod", name)


@dataclass(frozen=True)
class Engine:
    """The operator over one object."""

    objects: Objects
    machine: Machine
    settings: Settings

    def run(self, over: Callable[[Body], bool], seen: Callable[[Body], None]) -> Body:
        """Make passes until the object rests and ``over`` says that it has ended; return the TritonDeployment.

        ``seen``: is told the object after each pass.
        """
        operator = Reconciler(self.objects, self.objects, self.settings, Metrics())
        due = 0.0
        while True:
            self.machine.look()
            if self.objects.changed.is_set() or time.monotonic() >= due:
                self.objects.changed.clear()
                result = operator.reconcile(self.objects.key)
                pause = RETRY_SECONDS if result.failed else result.again_after
                due = float("inf") if pause is None else time.monotonic() + pause
                self.objects.save()
                body = self.objects.owner_body()
                seen(body)
                if pause is None and not self.objects.changed.is_set() and over(body):
                    return body
            self.objects.changed.wait(LOOK_SECONDS)
