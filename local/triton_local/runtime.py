"""What a kubelet asks of whatever starts a container's program."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from subprocess import Popen
from typing import Protocol


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


class Sandbox(Protocol):
    """What the containers of one pod share."""

    address: str
    """The address of the pod."""

    def start(self, program: Program) -> "Popen[bytes]":
        """Start a container's program. Raises OSError."""

    def execute(self, process: "Popen[bytes]", program: Program, argv: Sequence[str]) -> "Popen[bytes]":
        """Start a program in the container that a process of `start` is."""

    def close(self) -> None:
        """End what is left of it."""


class Runtime(Protocol):
    """Box or Plain."""

    def sandbox(self, pod: str, user: int, address: str, *, alone: bool) -> Sandbox:
        """Return a place for a pod. Raises OSError.

        ``alone``: its network is a loopback device of its own, and nothing else.
        """
