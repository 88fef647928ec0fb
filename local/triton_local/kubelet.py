"""The kubelet of one pod: its containers are processes, and their ends become its status.

Containers start as a kubelet starts them: those of `initContainers` one after the other, where a sidecar counts once
its startup probe succeeds, and then the one of `containers`. The sidecars end after it.
"""

import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from triton_local.box import END_AT_ONCE, NOT_STARTED, exit_code
from triton_local.gpus import WHOLE_GPU
from triton_local.objects import Objects, now_text
from triton_local.probes import Probes
from triton_local.runtime import TERMINATION_LOG, Image, Mount, Network, Program, Runtime, Sandbox
from triton_local.status import GROUPS, PodStatus
from triton_local.volumes import Storage, Volumes
from triton_operator import names
from triton_operator.names import Body
from triton_operator.observed.pod import SERVER
from triton_operator.resources.private_server import LOOPBACK

LOOK_SECONDS = 0.05
"""How often the end of a process is looked for."""
FIRST_RESTART_SECONDS = 10.0
LONGEST_RESTART_SECONDS = 300.0
"""The pause before a sidecar or a server starts again, which doubles: the kubelet's CrashLoopBackOff. The first time
there is none, nor after one that ran twice the longest pause."""
LAST_WORDS_BYTES = 4096
ALL_LAST_WORDS_BYTES = 12288
"""The most that a kubelet keeps of one container's termination message, and of all of a pod's together."""
LOG_BYTES = 2048
LOG_LINES = 80
"""The end of the log that FallbackToLogsOnError takes for a message."""
VARIABLE = re.compile(r"\$(?:\$|\(([^)]*)\))")
"""What Kubernetes replaces in arguments and variables: $(NAME), and $$, which stands for $."""
GRACE_SECONDS = 30
"""How long a container may take to end, where the spec says nothing."""
ASKING = ("measure", "snapshot")
"""The stages whose Jobs ask a server in another pod."""


NOBODY_WAITS = threading.Event()
"""For a container of which nobody waits that it started."""


@dataclass(frozen=True)
class Node:
    """What a pod needs of the machine."""

    name: str
    folder: Path
    """For the pods' own folders."""
    runtime: Runtime
    storage: Storage
    image: Callable[[str], Image]
    """Return what stands for an image of that name. Raises LookupError."""
    hosts: Callable[[], Mapping[str, str]]
    """Return the addresses of Services, by their names."""


class Pod(threading.Thread):
    """One pod, from its making to the end of its last process."""

    def __init__(self, node: Node, objects: Objects, owner: Body, name: str, address: str) -> None:
        super().__init__(daemon=True, name=name)
        self._node = node
        self._folder = node.folder / name
        self._address = address
        self._runs_for_good = owner["kind"] == "Deployment"
        template = owner["spec"]["template"]
        self._spec: Body = template["spec"]
        self.labels: Mapping[str, str] = template["metadata"]["labels"]
        self._uid = f"{owner['metadata']['uid']}-{name.rpartition('-')[2]}"
        self._namespace: str = owner["metadata"]["namespace"]
        self._objects = objects
        self._ending = threading.Event()
        self._deadline = time.monotonic() + self._spec.get("activeDeadlineSeconds", float("inf"))
        reference = {key: owner["metadata"][key] for key in ("name", "uid")}
        kind = {key: owner[key] for key in ("apiVersion", "kind")}
        began = now_text()
        metadata = template["metadata"] | {"name": name, "namespace": self._namespace, "uid": self._uid}
        metadata |= {"creationTimestamp": began, "ownerReferences": [{**kind, **reference, "controller": True}]}
        spec = self._spec | {"nodeName": node.name}
        objects.add({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": {}})
        self._status = PodStatus(objects, name, self._spec, address, began, is_job=not self._runs_for_good)
        self._status.set()

    def end(self) -> None:
        """Let its containers end, as a deletion does; returns at once."""
        self._ending.set()

    def run(self) -> None:
        """Take it from its volumes to the end of its last process."""
        # What lies in it is every user's, as containers may have other users.
        self._folder.mkdir(parents=True, mode=0o700)
        try:
            volumes = Volumes(self._node.storage, self._folder, self._spec.get("volumes", []))
        except (OSError, LookupError) as error:
            # As a kubelet, which tries again: what the volume lacks is in an Event, and the pod waits.
            self._objects.add(self._event("FailedMount", f"MountVolume.SetUp failed: {error}"))
            self._wait_for_the_end()
            if time.monotonic() > self._deadline:
                self._status.unknown()
            self._end_in("Pending")
            return
        try:
            self._with(volumes)
        except Exception as error:
            self._status.set(phase="Failed", reason="EngineFailed", message=repr(error))
            raise
        finally:
            volumes.remove()

    def _event(self, reason: str, message: str) -> Body:
        about = {"kind": "Pod", "name": self.name, "uid": self._uid, "namespace": self._namespace}
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{self.name}.{reason.lower()}", "namespace": self._namespace, "labels": {}},
            "type": "Warning",
            "reason": reason,
            "message": message,
            "involvedObject": about,
            "lastTimestamp": now_text(),
        }

    def _with(self, volumes: Volumes) -> None:
        user = self._spec["securityContext"]["runAsUser"]
        sidecars: list[threading.Thread] = []
        sandbox = self._node.runtime.sandbox(self.name, user, self._address, self._network)
        phase = "Failed"
        try:
            phase = self._containers(sandbox, volumes, sidecars)
        finally:
            self._ending.set()
            for each in sidecars:
                each.join()
            sandbox.close()
            self._end_in(phase)

    def _end_in(self, phase: str) -> None:
        """Set the last phase, unless the pod's deadline has passed."""
        late = time.monotonic() > self._deadline
        words = {
            "reason": "DeadlineExceeded",
            "message": "Pod was active on the node longer than the specified deadline",
        }
        self._status.set(**{"phase": "Failed", **words} if late else {"phase": phase})

    @property
    def _network(self) -> Network:
        if names.DOWNLOADS_LABEL in self.labels:
            return Network.MACHINE
        asks = self.labels.get(names.STAGE_LABEL) in ASKING
        return Network.CLUSTER if self._runs_for_good or asks else Network.OWN

    def _containers(self, sandbox: Sandbox, volumes: Volumes, sidecars: list[threading.Thread]) -> str:
        """Run all containers, and return the phase in which the pod ends."""
        for container in self._spec.get("initContainers", []):
            if container.get("restartPolicy") == "Always":
                started = threading.Event()
                thread = threading.Thread(target=self._keep, args=(sandbox, volumes, container, started), daemon=True)
                sidecars.append(thread)
                thread.start()
                while not started.wait(LOOK_SECONDS):
                    if self._is_over():
                        return "Failed"
            elif self._runs_for_good:
                self._keep(sandbox, volumes, container, until_success=True)
            elif self._once(sandbox, volumes, container) != 0:
                return "Failed"
        (container,) = self._spec["containers"]
        if self._runs_for_good:
            self._keep(sandbox, volumes, container)
            return "Succeeded"
        return "Failed" if self._once(sandbox, volumes, container) else "Succeeded"

    def _is_over(self) -> bool:
        return self._ending.is_set() or time.monotonic() > self._deadline

    def _wait_for_the_end(self, at_most: float = threading.TIMEOUT_MAX) -> None:
        self._ending.wait(max(0.0, min(self._deadline - time.monotonic(), at_most)))

    def _keep(
        self,
        sandbox: Sandbox,
        volumes: Volumes,
        container: Body,
        started: threading.Event = NOBODY_WAITS,
        *,
        until_success: bool = False,
    ) -> None:
        """Run a container until the pod ends, or until it succeeds; again after each end.

        ``started``: is set once its startup probe succeeds.
        """
        pause = 0.0
        try:
            while not self._is_over():
                began = time.monotonic()
                code = self._once(sandbox, volumes, container, started)
                if self._is_over() or (until_success and code == 0):
                    return
                if time.monotonic() - began > 2 * LONGEST_RESTART_SECONDS:
                    pause = 0.0
                if pause:
                    self._status.backs_off(container["name"])
                    self._wait_for_the_end(pause)
                pause = min(LONGEST_RESTART_SECONDS, 2 * pause) or FIRST_RESTART_SECONDS
        except Exception:
            self._ending.set()
            raise

    def _once(
        self, sandbox: Sandbox, volumes: Volumes, container: Body, started: threading.Event = NOBODY_WAITS
    ) -> int:
        """Run a container to its end, and return its exit code."""
        name, began = container["name"], now_text()
        waits = "ErrImagePull"
        try:
            image = self._node.image(container["image"])
            waits = "CreateContainerConfigError"
            program = self._program(volumes, container, image)
        except (LookupError, ValueError) as error:
            self._status.of(name, state={"waiting": {"reason": waits, "message": str(error)}})
            self._wait_for_the_end()
            return NOT_STARTED
        program.last_words.unlink(missing_ok=True)
        program.last_words.touch()
        printed = program.log.stat().st_size if program.log.exists() else 0
        program.failure.unlink(missing_ok=True)
        self._status.runs(name, began, image.id)
        try:
            process = sandbox.start(program)
        except OSError as error:
            self._status.ended(name, _terminated(NOT_STARTED, "StartError", str(error), began), ready=False)
            return NOT_STARTED
        probes = Probes(container, self._address, sandbox.answers, lambda argv: sandbox.execute(process, program, argv))
        shown = None
        while process.poll() is None:
            if self._is_over() or not probes.look(time.monotonic()):
                _end(process, self._spec.get("terminationGracePeriodSeconds", GRACE_SECONDS))
                break
            if shown != (probes.started, probes.ready):
                shown = (probes.started, probes.ready)
                self._status.of(name, started=probes.started, ready=probes.ready)
            if probes.started:
                started.set()
            time.sleep(LOOK_SECONDS)
        probes.close()
        code = exit_code(process.wait())
        words, reason = self._last_words(container, program, code, printed), "Completed" if code == 0 else "Error"
        if program.failure.exists() and (failure := program.failure.read_text(encoding="utf-8")):
            words, reason = failure, "StartError"
        is_done = code == 0 and container in self._spec.get("initContainers", []) and "restartPolicy" not in container
        self._status.ended(name, _terminated(code, reason, words, began), ready=is_done)
        return code

    def _program(self, volumes: Volumes, container: Body, image: Image) -> Program:
        place = self._folder / container["name"]
        place.mkdir(exist_ok=True)
        hosts = place / "hosts"
        # Servers share a network, and each is at home at its own address, for its probe too.
        own = self._address if self._runs_for_good else LOOPBACK
        names_of = {"localhost": own, **self._node.hosts()}
        hosts.write_text("".join(f"{address} {host}\n" for host, address in names_of.items()), encoding="utf-8")
        gpus = int(container.get("resources", {}).get("limits", {}).get(WHOLE_GPU, 0))
        environment: dict[str, str] = {}
        for each in container.get("env", []):
            environment[each["name"]] = expanded(self._value(each), environment)
        command = [expanded(each, environment) for each in container.get("command", [])]
        arguments = [expanded(each, environment) for each in container.get("args", [])]
        environment["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, range(gpus)))
        if gpus:
            # So CUDA counts them as nvidia-smi does.
            environment["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
        if self._runs_for_good and container["name"] == SERVER:
            arguments += [f"--{each}-address={self._address}" for each in ("http", "grpc", "metrics")]
        program = Program(
            name=container["name"],
            image=image,
            argv=(*(command or image.entrypoint), *arguments),
            environment={"HOSTNAME": self.name, "HOME": "/", **image.environment, **environment},
            directory=container.get("workingDir") or image.directory,
            mounts=(Mount(hosts, "/etc/hosts", read_only=True), *volumes.mounts(container)),
            place=place,
            log=self._folder / f"{container['name']}.log",
            gpu=gpus > 0,
        )
        return replace(program, mounts=(Mount(program.last_words, TERMINATION_LOG, read_only=False), *program.mounts))

    def _value(self, variable: Body) -> str:
        """The value of a variable of the environment. The operator names no other field of the pod than its uid."""
        return self._uid if "valueFrom" in variable else str(variable.get("value", ""))

    def _last_words(self, container: Body, program: Program, code: int, printed: int) -> str:
        """The container's termination message. ``printed``: how long its log was when it started."""
        words = end_of(program.last_words, LAST_WORDS_BYTES)
        if not words and code and container.get("terminationMessagePolicy") == "FallbackToLogsOnError":
            lines = end_of(program.log, LOG_BYTES, printed).splitlines(keepends=True)
            words = b"".join(lines[-LOG_LINES:])
        count = sum(len(self._spec.get(group, [])) for group in GROUPS)
        return words[-LAST_WORDS_BYTES:][: ALL_LAST_WORDS_BYTES // count].decode(errors="replace")


def end_of(file: Path, count: int, since: int = 0) -> bytes:
    """The last bytes of a file that a program may have made as long as it likes; none: it cannot be read.

    ``since``: where the file begins that counts.
    """
    try:
        with file.open("rb") as opened:
            opened.seek(max(since, opened.seek(0, os.SEEK_END) - count))
            return opened.read(count)
    except OSError:
        return b""


def _terminated(code: int, reason: str, words: str, began: str) -> Body:
    return {"exitCode": code, "reason": reason, "message": words, "startedAt": began, "finishedAt": now_text()}


def expanded(word: str, environment: Mapping[str, str]) -> str:
    """A word with the values of variables, written $(NAME), as Kubernetes expands it; an unknown one stays."""
    return VARIABLE.sub(lambda found: environment.get(found[1], found[0]) if found[1] is not None else "$", word)


def _end(process: "subprocess.Popen[bytes]", grace_seconds: float) -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(grace_seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(END_AT_ONCE)
        process.wait()
