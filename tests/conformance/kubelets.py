"""Those that run the cases: the one of the development cluster, and this project's own with Box or Plain."""

import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from tests.conformance import shell
from tests.conformance.cases import Body, Case, claims
from tests.conformance.statuses import Told, told
from tests.e2e.kubectl import Kubectl
from triton_local.kubelet import Node, Pod
from triton_local.objects import Objects
from triton_local.runtime import Image, Runtime
from triton_local.volumes import Storage

LOOK_SECONDS = 0.3
WAITS = ("CrashLoopBackOff", "ImagePullBackOff", "ErrImageNeverPull", "CreateContainerConfigError")
"""Reasons for which a container waits long enough to be seen."""
SETTLED_SECONDS = 4.0
"""How long a pod stays as it is until it counts, where a container waits like that: others still change."""
STILL_SECONDS, EXPECTED_SECONDS = 15.0, 4.0
"""The same, for one that does not end, and where it is as it should."""
PATIENCE_SECONDS = 300.0
"""How long is waited for the end of one that is."""


class Kubelet(Protocol):
    """Runs pods."""

    def start(self, case: Case) -> None:
        """Make its pod, and all that this names."""

    def statuses(self) -> Mapping[str, Body]:
        """The statuses of all pods, by their names."""

    def end(self, case: Case) -> None:
        """Remove its pod; returns at once."""


def data_of(cases: Iterable[Case]) -> dict[str, dict[str, str]]:
    """What each ConfigMap and Secret of the cases holds; those named `absent` are not there."""
    found = {shell.EXISTING: shell.DATA}
    for case in cases:
        for each in case.spec.get("volumes", []):
            source = each.get("configMap") or each.get("secret") or {}
            name = source.get("name") or source.get("secretName")
            if name not in (None, "absent", shell.EXISTING):
                keys = {item["key"]: "{}" for item in source.get("items", [])}
                found[name] = found.get(name, shell.DATA) | keys
    return found


def run(
    kubelet: Kubelet,
    cases: Iterable[Case],
    at_a_time: int,
    expected: Callable[[str, Told], bool] = lambda name, said: False,
) -> dict[str, Told]:
    """Run the cases until nothing more comes of each, and return what its status then says.

    ``expected``: whether a pod says what it should, and need not stay so for long.
    """
    left, active, found = list(cases), dict[str, _Watched](), dict[str, Told]()
    while left or active:
        while left and len(active) < at_a_time:
            case = left.pop(0)
            kubelet.start(case)
            active[case.name] = _Watched(case)
        time.sleep(LOOK_SECONDS)
        statuses = kubelet.statuses()
        for name, watched in list(active.items()):
            if watched.rests(statuses.get(name, {}), expected):
                found[name] = told(watched.status)
                kubelet.end(watched.case)
                del active[name]
    return found


def _backs_off(case: Case, said: Told) -> bool:
    """Whether a container waits until it starts again, which a sidecar of a Job's pod does without a word."""
    sidecars = [each["name"] for each in case.containers if each.get("restartPolicy") == "Always"]
    ended = [name for name in sidecars if said.get(f"{name}.state.is") == "terminated"]
    waits = any(said[f"{name}.restarted"] == "True" for name in ended)
    return waits or any(value in WAITS for value in said.values())


class _Watched:
    """A pod, and since when it is as it is."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.status: Body = {}
        self._told: Told = {}
        self._since = self._began = time.monotonic()

    def rests(self, status: Body, expected: Callable[[str, Told], bool]) -> bool:
        """Whether nothing more comes of it."""
        now = time.monotonic()
        if (said := told(status)) != self._told:
            self._told, self._since = said, now
        self.status = status
        if now - self._began > PATIENCE_SECONDS or status.get("phase") in ("Succeeded", "Failed"):
            return True
        if _backs_off(self.case, said):
            return now - self._since > SETTLED_SECONDS
        still = EXPECTED_SECONDS if expected(self.case.name, said) else STILL_SECONDS
        return self.case.stays and now - self._since > still


class Here:
    """This project's own kubelet."""

    def __init__(
        self, folder: Path, runtime: Runtime, image: Callable[[str], Image], data: Mapping[str, Mapping[str, str]]
    ) -> None:
        """``image``: what stands for the images of the cases. Raises OSError."""
        self._folder = folder
        owner: Body = {"metadata": {"name": "conformance"}, "spec": {}}
        self._objects = Objects(folder / "objects.json", owner, {}, _ignored)
        for name, values in data.items():
            place = folder / "secrets" / name
            place.mkdir(parents=True)
            place.chmod(0o777)
            for key, value in values.items():
                (place / key).write_text(value, encoding="utf-8")
        contents = {name: {key: text.encode() for key, text in values.items()} for name, values in data.items()}
        self._node = Node(
            "here",
            folder / "pods",
            runtime,
            Storage(self._claim, contents.__getitem__, self._secret),
            image,
            dict,
        )
        self._pods: dict[str, Pod] = {}

    def start(self, case: Case) -> None:
        """Make its pod."""
        labels = case.labels or {"triton-operator.dev/stage": "convert"}
        template = {"metadata": {"labels": labels}, "spec": case.with_own_claims()}
        owner = {
            "apiVersion": "v1",
            "kind": case.kind,
            "metadata": {"name": case.name, "namespace": "default", "uid": "0e0e0e0e-0e0e-4e0e-8e0e-0e0e0e0e0e0e"},
            "spec": {"template": template},
        }
        high, low = divmod(len(self._pods) + 1, 256)
        pod = Pod(self._node, self._objects, owner, case.name, f"127.78.{high}.{low}")
        self._pods[case.name] = pod
        pod.start()

    def statuses(self) -> Mapping[str, Body]:
        """The statuses of all pods."""
        return {each["metadata"]["name"]: each["status"] for each in self._objects.of_kind("Pod")}

    def end(self, case: Case) -> None:
        """Let its pod end."""
        self._pods[case.name].end()

    def close(self) -> None:
        """Wait for all pods."""
        for pod in self._pods.values():
            pod.end()
        for pod in self._pods.values():
            pod.join()

    def _claim(self, name: str) -> Path:
        place = self._folder / "claims" / name
        place.mkdir(parents=True, exist_ok=True)
        place.chmod(0o777)
        return place

    def _secret(self, name: str) -> Path:
        place = self._folder / "secrets" / name
        if not place.is_dir():
            raise LookupError(name)
        return place


class InCluster:
    """The kubelet of the development cluster, whose node is this machine."""

    def __init__(
        self, kubectl: Kubectl, images: Mapping[str, str], data: Mapping[str, Mapping[str, str]], folder: Path
    ) -> None:
        """``kubectl``: in a namespace of its own. ``folder``: holds the claims' folders."""
        self._kubectl = kubectl
        self._images = images
        self._folder = folder
        for name, values in data.items():
            metadata = {"name": name}
            kubectl.apply(
                {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": dict(values)},
                {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": dict(values)},
            )

    def start(self, case: Case) -> None:
        """Make its claims and its pod."""
        spec = case.with_own_claims()
        for each in (*spec.get("initContainers", []), *spec["containers"]):
            each["image"] = self._images.get(each["image"], each["image"])
        volumes = [each for name in sorted(claims(spec)) for each in self._claim(name)]
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": case.name, "labels": case.labels}, "spec": spec}
        self._kubectl.apply(*volumes, pod)

    def statuses(self) -> Mapping[str, Body]:
        """The statuses of all pods."""
        return {each["metadata"]["name"]: each["status"] for each in self._kubectl.items("pods")}

    def end(self, case: Case) -> None:
        """Delete its pod."""
        self._kubectl.run("delete", "pod", case.name, "--grace-period=1", "--wait=false")

    def close(self) -> None:
        """Remove the namespace, the volumes and their folders."""
        self._kubectl.run("delete", "namespace", self._kubectl.namespace, "--wait=true", timeout=300)
        self._kubectl.run("delete", "pv", f"--selector=conformance={self._kubectl.namespace}")
        with suppress(FileNotFoundError):
            shutil.rmtree(self._folder)

    def _claim(self, name: str) -> Iterator[Body]:
        """A claim whose folder any user may write to, as the provisioner's."""
        folder = self._folder / name
        folder.mkdir(parents=True)
        folder.chmod(0o777)
        size: Any = {"storage": "1Gi"}
        volume_name = f"{self._kubectl.namespace}.{name}"
        metadata = {"name": volume_name, "labels": {"conformance": self._kubectl.namespace}}
        common = {"storageClassName": "", "accessModes": ["ReadWriteOnce"]}
        volume = {"capacity": size, "hostPath": {"path": str(folder)}, "persistentVolumeReclaimPolicy": "Retain"}
        bound = {"claimRef": {"namespace": self._kubectl.namespace, "name": name}}
        yield {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": metadata,
            "spec": {**common, **volume, **bound},
        }
        claim_spec = {**common, "volumeName": volume_name, "resources": {"requests": size}}
        yield {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name},
            "spec": claim_spec,
        }


def _ignored(event: Body) -> None:
    """Nobody asks for Events."""
