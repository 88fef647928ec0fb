"""Pods in namespaces of an ordinary user; `box.py` is what runs in them."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from triton_local.runtime import Program

BOX = Path(__file__).with_name("box.py")


class BoxSandbox:
    """The namespaces of one pod."""

    def __init__(self, python: str, name: str, user: int, address: str, *, alone: bool) -> None:
        self.address = address
        self._python = python
        self._name = name
        self._alone = alone
        network = "alone" if alone else "shared"
        argv = [self._python, "-I", str(BOX), "pod", network, str(user)]
        self._pod = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert self._pod.stdout is not None
        if self._pod.stdout.readline().strip() != b"ready":
            _, words = self._pod.communicate()
            last = words.decode(errors="replace").strip().rpartition("\n")[2]
            raise OSError(f"this machine refuses namespaces to an ordinary user: {last}")

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
            "alone": self._alone,
            "hostname": self._name[:63],
            "root": str(root),
            "links": dict(program.image.links),
            "mounts": mounts,
            "argv": list(program.argv),
            "environment": dict(program.environment),
            "directory": program.directory,
            "pid_file": str(program.place / "pid"),
            "failure_file": str(program.failure),
            "devices": [str(each) for each in Path("/dev").glob("nvidia*") if program.gpu and not each.is_dir()],
        }
        self._file(program).write_text(json.dumps(spec), encoding="utf-8")
        (program.place / "pid").unlink(missing_ok=True)
        with program.log.open("ab") as log:
            return subprocess.Popen(
                [self._python, "-I", str(BOX), "run", str(self._file(program))],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def execute(
        self, process: "subprocess.Popen[bytes]", program: Program, argv: Sequence[str]
    ) -> "subprocess.Popen[bytes]":
        """Start a program in the container."""
        words = [self._python, "-I", str(BOX), "exec", str(self._file(program)), "--", *argv]
        return subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def close(self) -> None:
        """End the pod's namespaces."""
        self._pod.communicate()

    @staticmethod
    def _file(program: Program) -> Path:
        return program.place / "container.json"


class Box:
    """Runs pods in namespaces."""

    def __init__(self, python: str = sys.executable) -> None:
        """``python``: the interpreter of the program that makes the namespaces."""
        self._python = python

    def refusal(self) -> str:
        """Why this machine refuses what containers need; empty: it does not."""
        argv = [self._python, "-I", str(BOX), "trial", str(os.geteuid() or 1000)]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        return (done.stdout + done.stderr).strip().rpartition("\n")[2] if done.returncode else ""

    def sandbox(self, pod: str, user: int, address: str, *, alone: bool) -> BoxSandbox:
        """Return the namespaces of a pod. Raises OSError if this machine refuses them."""
        return BoxSandbox(self._python, pod, user, address, alone=alone)
