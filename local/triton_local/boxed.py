"""Pods in namespaces of an ordinary user; `box.py` is what runs in them."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from socket import socket
from tempfile import TemporaryDirectory
from typing import IO

from triton_local.runtime import Network, Program

BOX = Path(__file__).with_name("box.py")


def forwarder(python: str, pod: int, address: str, listening: Sequence[socket]) -> "subprocess.Popen[bytes]":
    """Start `box.py forward`. ``pod``: as it has it."""
    descriptors = [each.fileno() for each in listening]
    argv = [python, "-I", str(BOX), "forward", str(pod), address, *map(str, descriptors)]
    return subprocess.Popen(argv, stdin=subprocess.PIPE, env={}, start_new_session=True, pass_fds=descriptors)


class BoxSandbox:
    """The namespaces of one pod."""

    def __init__(self, python: str, name: str, network: str, user: int, close: Callable[["BoxSandbox"], None]) -> None:
        """``network``: as `box.py pod` has it. ``close``: is called before the namespaces end."""
        self._python = python
        self._name = name
        self._network = network
        self._before_close = close
        self._asking = threading.Lock()
        self._pod = self._started(["pod", network, str(user)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        if self._pod.stdout is None or self._pod.stdout.readline().strip() != b"ready":
            _, words = self._pod.communicate()
            last = words.decode(errors="replace").strip().rpartition("\n")[2]
            raise OSError(f"this machine refuses namespaces to an ordinary user: {last}")

    @property
    def pid(self) -> int:
        """The process that holds the namespaces."""
        return self._pod.pid

    def answers(self, url: str, timeout: float) -> bool:
        """Whether a server in the pod's network answers with success."""
        with self._asking:
            assert self._pod.stdin is not None
            assert self._pod.stdout is not None
            try:
                self._pod.stdin.write(json.dumps([url, timeout]).encode() + b"\n")
                self._pod.stdin.flush()
            except OSError:
                return False
            return self._pod.stdout.readline().strip() == b"1"

    def start(self, program: Program) -> "subprocess.Popen[bytes]":
        """Start a container's program."""
        root = program.place / "root"
        root.mkdir(exist_ok=True)
        mounts = [
            {"source": str(each.source), "target": each.target, "read_only": each.read_only}
            for each in (*program.image.mounts, *program.mounts)
        ]
        spec = {
            "pod": self._pod.pid,
            "engine": os.getpid(),
            "network_of_machine": self._network == "machine",
            "hostname": self._name[:63],
            "root": str(root),
            "links": dict(program.image.links),
            "mounts": mounts,
            "argv": list(program.argv),
            "environment": dict(program.environment),
            "directory": program.directory,
            "pid_file": str(program.place / "pid"),
            "failure_file": str(program.failure),
        }
        self._file(program).write_text(json.dumps(spec), encoding="utf-8")
        (program.place / "pid").unlink(missing_ok=True)
        with program.log.open("ab") as log:
            return self._started(["run", str(self._file(program))], stdin=subprocess.DEVNULL, stdout=log)

    def execute(
        self, process: "subprocess.Popen[bytes]", program: Program, argv: Sequence[str]
    ) -> "subprocess.Popen[bytes]":
        """Start a program in the container."""
        words = ["exec", str(self._file(program)), "--", *argv]
        return self._started(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)

    def close(self) -> None:
        """End the pod's namespaces."""
        self._before_close(self)
        self._pod.communicate()

    def _started(self, words: Sequence[str], stdin: int, stdout: "int | IO[bytes]") -> "subprocess.Popen[bytes]":
        """Start `box.py` with none of the engine's variables, and without its terminal."""
        stderr = subprocess.STDOUT if stdout != subprocess.PIPE else subprocess.PIPE
        argv = [self._python, "-I", str(BOX), *words]
        return subprocess.Popen(argv, stdin=stdin, stdout=stdout, stderr=stderr, env={}, start_new_session=True)

    @staticmethod
    def _file(program: Program) -> Path:
        return program.place / "container.json"


class Box:
    """Runs pods in namespaces."""

    def __init__(self, python: str = sys.executable) -> None:
        """``python``: the interpreter of the program that makes the namespaces."""
        self._python = python
        self._lock = threading.Lock()
        self._clusters: dict[int, list[BoxSandbox]] = {}
        """The pods that share a network, by their user's id."""

    def refusal(self) -> str:
        """Why this machine refuses what containers need; empty: it does not."""
        with TemporaryDirectory() as folder:
            argv = [self._python, "-I", str(BOX), "trial", str(os.geteuid() or 1000), folder]
            done = subprocess.run(argv, capture_output=True, text=True, check=False)
        return (done.stdout + done.stderr).strip().rpartition("\n")[2] if done.returncode else ""

    def sandbox(self, pod: str, user: int, address: str, network: Network) -> BoxSandbox:
        """Return the namespaces of a pod. Raises OSError if this machine refuses them."""
        with self._lock:
            others = self._clusters.setdefault(user, [])
            if network != Network.CLUSTER:
                return BoxSandbox(self._python, pod, network, user, lambda _: None)
            shared = str(others[-1].pid) if others else Network.OWN
            others.append(BoxSandbox(self._python, pod, shared, user, self._left))
            return others[-1]

    def forwarder(self, address: str, listening: Sequence[socket]) -> "subprocess.Popen[bytes]":
        """Start a program that leads clients to a pod."""
        with self._lock:
            pid = next(others[-1].pid for others in self._clusters.values() if others)
        return forwarder(self._python, pid, address, listening)

    def _left(self, sandbox: BoxSandbox) -> None:
        with self._lock:
            for others in self._clusters.values():
                if sandbox in others:
                    others.remove(sandbox)
