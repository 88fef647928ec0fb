"""A pod's status, as its kubelet tells it while containers start and end."""

import threading
from copy import deepcopy

from triton_local.objects import Objects
from triton_operator.names import Body

GROUPS = {"initContainers": "initContainerStatuses", "containers": "containerStatuses"}
"""Where the status of a container stands, by where its spec stands."""
ENDED = {"ready": False, "started": False}
"""What is no longer so of a container that does not run."""


class PodStatus:
    """The status of one pod; each change is written at once."""

    def __init__(self, objects: Objects, name: str, spec: Body, address: str, began: str, *, is_job: bool) -> None:
        """``is_job``: what starts again in it are sidecars, of which a kubelet does not say that they wait for it."""
        self._objects = objects
        self._name = name
        self._is_job = is_job
        self._lock = threading.Lock()
        self._body: Body = {
            "phase": "Pending",
            "conditions": [{"type": "PodScheduled", "status": "True"}],
            "podIP": address,
            "startTime": began,
        }
        waits = {"waiting": {"reason": "PodInitializing" if spec.get("initContainers") else "ContainerCreating"}}
        for group, statuses in GROUPS.items():
            self._body[statuses] = [
                {
                    "name": each["name"],
                    "image": each["image"],
                    "imageID": "",
                    "ready": False,
                    "restartCount": 0,
                    "state": waits,
                    "lastState": {},
                }
                for each in spec.get(group, [])
            ]

    def set(self, **fields: object) -> None:
        """Set fields of the pod's status."""
        with self._lock:
            self._body |= fields
            self._write()

    def of(self, container: str, **fields: object) -> None:
        """Set fields of a container's status."""
        with self._lock:
            self._find(container).update(fields)
            self._write()

    def runs(self, container: str, began: str, image: str) -> None:
        """Say that a container runs, once more if it did before."""
        with self._lock:
            found = self._find(container)
            again = "terminated" in found["state"] or bool(found["lastState"])
            if "terminated" in found["state"]:
                found["lastState"] = found["state"]
            found |= {
                "state": {"running": {"startedAt": began}},
                "imageID": image,
                "restartCount": found["restartCount"] + again,
            }
            if found in self._body["containerStatuses"]:
                self._body["phase"] = "Running"
            self._write()

    def backs_off(self, container: str) -> None:
        """Say that a container that ended starts again after a pause."""
        if self._is_job:
            return
        with self._lock:
            found = self._find(container)
            found |= {"lastState": found["state"], "state": {"waiting": {"reason": "CrashLoopBackOff"}}, **ENDED}
            self._write()

    def ended(self, container: str, terminated: Body, *, ready: bool) -> None:
        """Say how a container ended. ``ready``: it did what those after it wait for."""
        with self._lock:
            found = self._find(container)
            found |= {"state": {"terminated": terminated}, **ENDED, "ready": ready}
            if self._is_job:
                found["lastState"] = {}
            self._write()

    def unknown(self) -> None:
        """Say of containers that will never start how they ended."""
        words = "The container could not be located when the pod was terminated"
        with self._lock:
            for each in self._body["containerStatuses"]:
                if not self._body["initContainerStatuses"] and "waiting" in each["state"]:
                    ended = {"exitCode": 137, "reason": "ContainerStatusUnknown", "message": words}
                    each["state"] = {"terminated": {**ended, "startedAt": None, "finishedAt": None}}
            self._write()

    def _find(self, container: str) -> Body:
        return next(each for group in GROUPS.values() for each in self._body[group] if each["name"] == container)

    def _write(self) -> None:
        self._objects.set_status("Pod", self._name, deepcopy(self._body))
