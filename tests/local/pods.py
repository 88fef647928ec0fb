"""Pods of this machine's own programs: what an image's would be, without one."""

import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from triton_local.boxed import Box
from triton_local.kubelet import Node, Pod
from triton_local.objects import Objects
from triton_local.runtime import Image, Mount, Runtime
from triton_local.volumes import Storage

Body = dict[str, Any]
FOLDERS = sorted({"/usr", "/etc", "/lib", "/lib64", "/bin", str(Path(sys.base_prefix))})
SYSTEM = Image(
    id="this machine@sha256:0",
    mounts=tuple(Mount(Path(each), each, read_only=True) for each in FOLDERS if not Path(each).is_symlink()),
    links={each: str(Path(each).readlink()) for each in FOLDERS if Path(each).is_symlink()},
    environment={"PATH": f"{sys.base_prefix}/bin:/usr/bin:/bin"},
    entrypoint=("sh",),
    directory="/",
)
PATIENCE_SECONDS = 60.0


def a_container(name: str, script: str, **fields: Any) -> Body:
    """A container that runs a script of the shell."""
    return {"name": name, "image": "system", "command": ["sh", "-c", script], **fields}


def an_owner(
    *init: Body,
    main: Body,
    kind: str = "Job",
    stage: str = "convert",
    labels: Mapping[str, str] | None = None,
    **spec: Any,
) -> Body:
    """A Job, or a Deployment, with these containers."""
    security = {"runAsUser": 1000, "runAsNonRoot": True}
    pod = {
        "terminationGracePeriodSeconds": 1,
        "securityContext": security,
        "initContainers": [*init],
        "containers": [main],
        **spec,
    }
    labels = {"triton-operator.dev/stage": stage, **(labels or {})}
    return {
        "apiVersion": "batch/v1",
        "kind": kind,
        "metadata": {"name": "a-job", "namespace": "default", "uid": "uid-1"},
        "spec": {"template": {"metadata": {"labels": labels}, "spec": pod}},
    }


class Cluster:
    """A folder with objects, and the pods that a test starts."""

    def __init__(
        self,
        folder: Path,
        config_maps: Mapping[str, Mapping[str, bytes]] | None = None,
        image: Image = SYSTEM,
        runtime: Runtime | None = None,
    ) -> None:
        desired = {"metadata": {"name": "digits"}, "spec": {}}
        self.folder = folder
        self.objects = Objects(folder / "objects.json", desired, {}, lambda _: None)
        secrets: dict[str, Path] = {}
        storage = Storage(self._claim, (config_maps or {}).__getitem__, secrets.__getitem__)
        own = Box() if runtime is None else runtime
        images = {"system": image}.__getitem__
        self.node = Node("a-node", folder / "pods", own, storage, images, lambda: {"digits": "127.77.0.9"})
        self.pods: list[Pod] = []

    def _claim(self, name: str) -> Path:
        place = self.folder / "claims" / name
        place.mkdir(parents=True, exist_ok=True)
        return place

    def start(self, owner: Body) -> Pod:
        """Start a pod of that owner."""
        pod = Pod(self.node, self.objects, owner, f"a-pod-{len(self.pods)}", f"127.77.0.{len(self.pods) + 1}")
        self.pods.append(pod)
        pod.start()
        return pod

    def run(self, owner: Body) -> Body:
        """Run a pod of that owner to its end, and return its status."""
        pod = self.start(owner)
        pod.join(PATIENCE_SECONDS)
        assert not pod.is_alive(), self.status(pod)
        return self.status(pod)

    def status(self, pod: Pod) -> Body:
        """The status of a pod now."""
        found = self.objects.find("Pod", pod.name)
        assert found is not None
        status: Body = found["status"]
        return status

    def event(self) -> Body:
        """The first Event that comes."""
        end = time.monotonic() + PATIENCE_SECONDS
        while not (found := self.objects.of_kind("Event")) and time.monotonic() < end:
            time.sleep(0.05)
        (event,) = found
        return event

    def log(self, container: str, number: int = 0) -> str:
        """What a container printed."""
        file = self.folder / "pods" / f"a-pod-{number}" / f"{container}.log"
        return file.read_text(encoding="utf-8") if file.exists() else ""

    def until(self, pod: Pod, **fields: Any) -> Body:
        """Wait until the main container of a pod has these fields in its status."""
        end = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < end:
            status = self.status(pod)
            (main,) = status["containerStatuses"]
            if fields.items() <= main.items():
                return main
            time.sleep(0.05)
        raise AssertionError(f"it did not come about: {fields} in {self.status(pod)}; {os.listdir(self.folder)}")

    def close(self) -> None:
        """End all pods."""
        for pod in self.pods:
            pod.end()
        for pod in self.pods:
            pod.join(PATIENCE_SECONDS)


def of(status: Body, name: str) -> Body:
    """The status of a container."""
    found: Body = next(
        each for each in (*status["initContainerStatuses"], *status["containerStatuses"]) if each["name"] == name
    )
    return found


def ended(status: Body, name: str) -> tuple[int, str]:
    """Exit code and last words of a container."""
    state = of(status, name)["state"]["terminated"]
    return state["exitCode"], state["message"]
