"""A pod's status, as its kubelet tells it while containers start and end."""

import threading
from copy import deepcopy

from triton_local.objects import Objects
from triton_operator.names import Body

GROUPS = {"initContainers": "initContainerStatuses", "containers": "containerStatuses"}
"""Where the status of a container stands, by where its spec stands."""
WAITING: Body = {"waiting": {"reason": "PodInitializing"}}


class PodStatus:
    """The status of one pod; each change is written at once."""

    def __init__(self, objects: Objects, name: str, spec: Body, address: str, began: str) -> None:
        self._objects = objects
        self._name = name
        self._lock = threading.Lock()
        self._body: Body = {
            "phase": "Pending",
            "conditions": [{"type": "PodScheduled", "status": "True"}],
            "podIP": address,
            "startTime": began,
        }
        for group, statuses in GROUPS.items():
            self._body[statuses] = [
                {
                    "name": each["name"],
                    "image": each["image"],
                    "imageID": "",
                    "ready": False,
                    "restartCount": 0,
                    "state": WAITING,
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

    def restarts(self, container: str) -> None:
        """Say that a container that ended starts again after a pause."""
        with self._lock:
            found = self._find(container)
            found |= {
                "lastState": found["state"],
                "state": {"waiting": {"reason": "CrashLoopBackOff"}},
                "restartCount": found["restartCount"] + 1,
                "ready": False,
                "started": False,
            }
            self._write()

    def _find(self, container: str) -> Body:
        return next(each for group in GROUPS.values() for each in self._body[group] if each["name"] == container)

    def _write(self) -> None:
        self._objects.set_status("Pod", self._name, deepcopy(self._body))
