"""Pods without namespaces, for machines that refuse them and models that their user trusts.

Each mount is a link below one folder of the pod, and every path and address that a program is told leads there. Nothing
keeps the program from this machine's other files, from its network, or from what is mounted read-only.
"""

import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from socket import socket

from triton_local.box import answers
from triton_local.boxed import BOX, forwarder
from triton_local.runtime import TERMINATION_LOG, Mount, Network, Program
from triton_operator.resources.private_server import LOOPBACK

MACHINES_OWN = frozenset({"usr", "bin", "sbin", "lib", "lib64", "etc", "tmp", "dev", "proc", "sys", "home", "root"})
"""Folders at the root that every program has at their own paths."""
MOUNTS = "TRITON_MOUNTS"
"""The variable by which the Jobs' programs learn where their mounts lie; contract/layout.py reads it."""
START = "/opt/tritonserver/start.sh"
"""The script that empties the pod's /dev/shm, which is the machine's here."""


class PlainSandbox:
    """The folder of one pod's mounts."""

    def __init__(self, python: str, address: str) -> None:
        self._address = address
        self._python = python

    def start(self, program: Program) -> "subprocess.Popen[bytes]":
        """Start a container's program."""
        with program.log.open("ab") as log:
            return self._start(program, program.argv, log.fileno(), program.failure)

    def execute(
        self, process: "subprocess.Popen[bytes]", program: Program, argv: Sequence[str]
    ) -> "subprocess.Popen[bytes]":
        """Start another program beside it."""
        return self._start(program, argv, subprocess.DEVNULL, Path(os.devnull))

    def answers(self, url: str, timeout: float) -> bool:
        """Whether a server answers with success."""
        return answers(url, timeout)

    def close(self) -> None:
        """Nothing is left: each program was ended."""

    def _start(self, program: Program, argv: Sequence[str], output: int, failure: Path) -> "subprocess.Popen[bytes]":
        root = program.place.parent / "root"
        root.mkdir(exist_ok=True)
        mounts = (*program.image.mounts, *program.mounts)
        for each in mounts:
            _show(each, root)
        told = _Told(root, self._address, program)
        words = [told(each) for each in argv if each != START]
        temporary = program.place / "tmp"
        temporary.mkdir(exist_ok=True)
        own = {MOUNTS: str(root), "TMPDIR": str(temporary), "HOME": str(temporary)}
        own["TERMINATION_LOG"] = told(TERMINATION_LOG)
        environment = {name: told(value) for name, value in program.environment.items()} | own
        if program.gpu and (libraries := os.environ.get("LD_LIBRARY_PATH")):
            # Some machines tell by it alone where the driver's libraries are.
            environment["LD_LIBRARY_PATH"] = ":".join(filter(None, (environment.get("LD_LIBRARY_PATH"), libraries)))
        if words[0] == "tritonserver":
            words.append(f"--backend-directory={told('/opt/tritonserver/backends')}")
        directory = Path(told(program.directory))
        return subprocess.Popen(
            [self._python, "-I", str(BOX), "plain", str(os.getpid()), str(failure), *words],
            env=environment,
            cwd=directory if directory.is_relative_to(root) else temporary,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


class _Told:
    """Tells a program of this machine's paths and addresses where it was told of its container's."""

    def __init__(self, root: Path, address: str, program: Program) -> None:
        self._root = root
        self._addresses = {**_hosts(program.mounts), "localhost": address, LOOPBACK: address}
        self._last_words = str(program.last_words)
        names = "|".join(sorted(re.escape(each.name) for each in root.iterdir()))
        # Not within a longer path, as /a/opt.
        self._path = re.compile(rf"(?<![\w./-])/({names})(?=[/\":,\s]|$)")
        hosts = "|".join(sorted(map(re.escape, self._addresses), key=len, reverse=True))
        self._host = re.compile(rf"(?<![\w.-])({hosts})(?=:\d|[\"/]|$)")

    def __call__(self, word: str) -> str:
        word = word.replace(TERMINATION_LOG, self._last_words)
        word = self._path.sub(lambda found: f"{self._root}/{found[1]}", word)
        return self._host.sub(lambda found: self._addresses[found[1]], word)


def _show(mount: Mount, root: Path) -> None:
    """Make a mount appear below the root. A volume of the pod itself lies there, because programs refuse links."""
    target = root / mount.target.lstrip("/")
    if Path(mount.target).parts[1] in MACHINES_OWN or target.exists() or target.is_symlink():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    if mount.source.parent == root.parent / "volumes" and not mount.source.is_symlink():
        mount.source.rename(target)
        mount.source.symlink_to(target)
    else:
        target.symlink_to(mount.source)


def _hosts(mounts: Sequence[Mount]) -> Mapping[str, str]:
    """The addresses of the hosts that the container's /etc/hosts names."""
    (file,) = (each.source for each in mounts if each.target == "/etc/hosts")
    lines = (line.split() for line in file.read_text(encoding="utf-8").splitlines())
    return {host: address for address, host in lines}


class Plain:
    """Runs pods as programs of the user."""

    def __init__(self, python: str = sys.executable) -> None:
        """``python``: the interpreter of the program that starts them."""
        self._python = python

    def sandbox(self, pod: str, user: int, address: str, network: Network) -> PlainSandbox:
        """Return the folder of a pod."""
        return PlainSandbox(self._python, address)

    def forwarder(self, address: str, listening: Sequence[socket]) -> "subprocess.Popen[bytes]":
        """Start a program that leads clients to an address of this machine."""
        return forwarder(self._python, 0, address, listening)
