"""The node, the controllers and the operator's passes of one TritonDeployment, in one process."""

import itertools
import os
import threading
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from uuid import uuid4

from triton_local import controllers
from triton_local.kubelet import Node, Pod
from triton_local.objects import Objects, now_text
from triton_local.turn import Turn
from triton_operator import names
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
MEASURING = ("profile", "search", "measure")
"""The stages whose figures another load would change."""


class Machine:
    """The Job and Deployment controllers, and the pods of this machine."""

    def __init__(self, node: Node, objects: Objects, measuring: Turn) -> None:
        """``measuring``: whose turn it is to measure on this machine."""
        self._node = node
        self._objects = objects
        self._measuring = measuring
        self.waits = False
        """Whether a Job may not start yet, because somebody else measures."""
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
        if not any(pod.is_alive() and _measures(pod.labels) for _, pod in self._pods.values()):
            self._measuring.give()

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
        elif following is not None and following.due <= datetime.now(UTC) and self._may_start(job):
            self._start(job)

    def _may_start(self, job: Body) -> bool:
        if not _measures(job["spec"]["template"]["metadata"]["labels"]):
            return True
        self.waits = not self._measuring.take()
        return not self.waits

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


def services(objects: Objects) -> Mapping[str, str]:
    """The address of a ready pod of each Service that has one, by the Service's name."""
    ready = [pod for pod in objects.of_kind("Pod") if controllers.is_ready(pod)]
    return {
        service["metadata"]["name"]: pod["status"]["podIP"]
        for service in objects.of_kind("Service")
        for pod in ready
        if service["spec"].get("selector", {}).items() <= pod["metadata"]["labels"].items()
    }


def _measures(labels: Mapping[str, str]) -> bool:
    return labels.get(names.STAGE_LABEL) in MEASURING


class Engine(threading.Thread):
    """The operator over one object, from its start until it is stopped."""

    def __init__(self, objects: Objects, machine: Machine, settings: Settings) -> None:
        super().__init__(daemon=True, name="engine")
        self.knows = threading.Event()
        """Whether a pass has told of this run; until then the status is that of an earlier one."""
        self.rests = threading.Event()
        """Whether nothing more comes by itself."""
        self.failure: BaseException | None = None
        """Why the engine ended by itself; None: it did not."""
        self._objects = objects
        self._machine = machine
        self._operator = Reconciler(objects, objects, settings, Metrics())
        self._stopped = False

    @property
    def waits(self) -> bool:
        """Whether a Job waits until another command of this machine has measured."""
        return self._machine.waits

    def stop(self) -> None:
        """End all pods, and save the objects."""
        self._stopped = True
        self._objects.changed.set()
        self.join()
        self._machine.close()
        self._objects.save()

    def run(self) -> None:
        """Make passes while something changes or is due."""
        try:
            self._passes()
        except BaseException as error:
            self.failure = error
            self.knows.set()
            raise

    def _passes(self) -> None:
        due = 0.0
        while not self._stopped:
            self._machine.look()
            if self._objects.changed.is_set() or time.monotonic() >= due:
                self.rests.clear()
                self._objects.changed.clear()
                result = self._operator.reconcile(self._objects.key)
                if not result.failed:
                    self.knows.set()
                pause = RETRY_SECONDS if result.failed else result.again_after
                due = float("inf") if pause is None else time.monotonic() + pause
                self._objects.save()
                if pause is None and not self._objects.changed.is_set():
                    self.rests.set()
            self._objects.changed.wait(LOOK_SECONDS)
