"""What a kubelet asks of whatever starts a container's program."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from socket import socket
from subprocess import Popen
from typing import Protocol

TERMINATION_LOG = "/dev/termination-log"
"""Where a container finds its file of last words."""


@dataclass(frozen=True)
class Mount:
    """A file or folder of this machine, as a container sees it."""

    source: Path
    target: str
    """Absolute path in the container."""
    read_only: bool


@dataclass(frozen=True)
class Image:
    """What stands for a container image on this machine."""

    id: str
    """A name and a digest of the content, as a kubelet reports it."""
    mounts: tuple[Mount, ...]
    """The files of the image."""
    links: Mapping[str, str]
    """Symbolic links at its root, such as /lib."""
    environment: Mapping[str, str]
    entrypoint: tuple[str, ...]
    directory: str


@dataclass(frozen=True)
class Program:
    """A container's program and what it sees."""

    name: str
    image: Image
    argv: tuple[str, ...]
    environment: Mapping[str, str]
    directory: str
    mounts: tuple[Mount, ...]
    """Besides the image's files: volumes, the file of last words."""
    place: Path
    """A folder of its own on this machine, for what the runtime needs."""
    log: Path
    """The file that takes what it prints."""
    gpu: bool
    """Whether the program has this machine's GPUs."""

    @property
    def last_words(self) -> Path:
        """The file that takes the termination message."""
        return self.place / "termination-log"

    @property
    def failure(self) -> Path:
        """The file that says why it could not be started; empty, or not there: it was."""
        return self.place / "not-started"


class Network(StrEnum):
    """What a pod reaches."""

    OWN = "own"
    """A loopback device of its own, and nothing else."""
    CLUSTER = "cluster"
    """The other pods of the same engine that are told so, and nothing else."""
    MACHINE = "machine"
    """All that this machine reaches."""


class Sandbox(Protocol):
    """What the containers of one pod share."""

    def start(self, program: Program) -> "Popen[bytes]":
        """Start a container's program. Raises OSError."""

    def execute(self, process: "Popen[bytes]", program: Program, argv: Sequence[str]) -> "Popen[bytes]":
        """Start a program in the container that a process of `start` is."""

    def answers(self, url: str, timeout: float) -> bool:
        """Whether a server in the pod's network answers with success, after so many seconds at most."""

    def close(self) -> None:
        """End what is left of it."""


class Runtime(Protocol):
    """Box or Plain."""

    def sandbox(self, pod: str, user: int, address: str, network: Network) -> Sandbox:
        """Return a place for a pod. Raises OSError."""

    def forwarder(self, address: str, listening: Sequence[socket]) -> "Popen[bytes]":
        """Start a program that leads clients of listening sockets to the same ports of a pod of Network.CLUSTER.

        It ends when its standard input does. Raises OSError.
        """
