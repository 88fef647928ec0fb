"""One TritonDeployment in a folder of this machine, from the start of its engine to the end of its last process."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from socket import socket
from uuid import uuid4

from triton_local.engine import RETRY_SECONDS, Engine, Machine, services
from triton_local.gpus import Gpu
from triton_local.kubelet import Node, end_of
from triton_local.objects import Objects
from triton_local.runtime import Image, Runtime
from triton_local.turn import MEASURING, Turn
from triton_local.volumes import Storage, remove_memory
from triton_operator import names
from triton_operator.names import Body
from triton_operator.planning.setbacks import TOLD_AFTER
from triton_operator.settings import Settings

OBJECTS = "objects.json"
"""The TritonDeployment and its children, in the folder of a session."""
MARK = "made-here"
"""A link to the note of a folder that a command of this user has made, in that folder."""
LOG_BYTES = 2**20
"""How much of the end of a log is read; a program may print for ever."""
FIRST_SECONDS = TOLD_AFTER.total_seconds() + RETRY_SECONDS
"""How long the first pass is waited for: if passes fail for so long, the status says so."""
SETTLING_SECONDS = 10.0
"""How long the last passes may take once the outcome is known: they write the results of the last Job."""


class SessionError(Exception):
    """The folder cannot be worked in; the message says why."""


@dataclass(frozen=True)
class Given:
    """What lies on this machine of all that the object names."""

    claims: dict[str, Path] = field(default_factory=dict)
    """A folder for each PersistentVolumeClaim that exists already."""
    config_maps: Mapping[str, Mapping[str, bytes]] = field(default_factory=dict)
    """The content by key of each ConfigMap."""
    secrets: Mapping[str, Path] = field(default_factory=dict)
    """A folder for each Secret, with a file for each key."""
    images: Mapping[str, str] = field(default_factory=dict)
    """The name with a digest of each image that the object names."""
    gpus: tuple[Gpu, ...] = ()
    """The machine's GPUs."""
    isolates: bool = True
    """Whether programs run in namespaces."""


@dataclass(frozen=True)
class Session:
    """The engine at work, and what can be asked of it."""

    objects: Objects
    engine: Engine
    pods: Path
    runtime: Runtime

    def body(self) -> Body:
        """The TritonDeployment as it is now. Raises RuntimeError if the engine has ended by a fault of its own."""
        if self.engine.failure is not None:
            raise RuntimeError("the engine failed") from self.engine.failure
        return self.objects.owner_body()

    def log(self, pod: Body) -> str:
        """What the container of a pod that is to be shown has printed; empty: nothing yet."""
        metadata = pod["metadata"]
        container = names.logged_container(metadata["labels"], metadata.get("annotations"))
        file = self.pods / metadata["name"] / f"{container}.log"
        return end_of(file, LOG_BYTES).decode(errors="replace")

    @contextmanager
    def served(self, bound: Sequence[socket]) -> Iterator[None]:
        """Lead clients of bound sockets to the server until the block ends. Raises SessionError, OSError."""
        address = services(self.objects).get(self.objects.key.name)
        if address is None:
            raise SessionError("no server is ready; run the same command again, which starts it")
        for each in bound:
            each.listen()
        forwarder = self.runtime.forwarder(address, bound)
        try:
            yield
        finally:
            forwarder.communicate()

    def settle(self) -> None:
        """Wait for the passes that are due at once."""
        self.engine.rests.wait(SETTLING_SECONDS)


@contextmanager
def session(
    folder: Path, desired: Body, given: Given, image: Callable[[str], Image], settings: Settings, runtime: Runtime
) -> Iterator[Session]:
    """Work on an object until the block ends; the same folder goes on where it ended.

    ``folder``: is `ours_alone`. Raises SessionError if what is there is of another object; OSError.
    """
    labels = given.gpus[0].labels if given.gpus else {}
    objects = _objects(folder / OBJECTS, desired, {settings.machine: labels})
    storage = Storage(_claims(folder / "claims", given.claims), _config_maps(objects, given), _secrets(given))
    pods = folder / "pods"
    # A process that was killed has removed nothing.
    for each in pods.iterdir() if pods.exists() else ():
        remove_memory(each.name)

    node = Node(settings.machine, pods, runtime, storage, image, partial(services, objects))
    engine = Engine(objects, Machine(node, objects, _turn()), settings)
    engine.start()
    try:
        engine.knows.wait(FIRST_SECONDS)
        yield Session(objects, engine, pods, runtime)
    finally:
        engine.stop()


@contextmanager
def ours_alone(folder: Path, register: Path) -> Iterator[None]:
    """Have a folder that this user's commands alone have written, and no other one works in until the block ends.

    What a folder holds says what runs and what has passed, and a stranger's model may come with one. ``register``:
    where this user's commands note the folders that they make. Raises SessionError, OSError.
    """
    mark = folder / MARK
    if not folder.exists() or (folder.stat().st_uid == os.geteuid() and not any(folder.iterdir())):
        folder.mkdir(parents=True, exist_ok=True)
        register.mkdir(parents=True, exist_ok=True, mode=0o700)
        noted = register.resolve() / uuid4().hex
        noted.touch()
        # Nobody else can tell its name, so nobody can make this link; and it is there whole, or not at all.
        mark.symlink_to(noted)
        (folder / ".gitignore").write_text("*\n", encoding="utf-8")
    noted = mark.readlink() if mark.is_symlink() else Path()
    if noted.parent != register.resolve() or not noted.exists():
        raise SessionError(
            f"{folder} holds what this command of yours has not written on this machine, so nothing of it was read;"
            " move it away, or name another folder by --folder"
        )
    turn = Turn(folder / "lock")
    if not turn.take():
        raise SessionError(f"another command works in {folder}; wait for it, or name another folder")
    try:
        yield
    finally:
        turn.give()


def _turn() -> Turn:
    try:
        return Turn(MEASURING)
    except OSError as error:
        raise SessionError(
            f"{MEASURING}, by which commands take turns to measure, cannot be read; have its owner remove it: {error}"
        ) from error


def _objects(file: Path, desired: Body, nodes: Mapping[str, Mapping[str, str]]) -> Objects:
    try:
        return Objects(file, desired, nodes, lambda _: None)
    except (ValueError, LookupError, TypeError) as error:
        raise SessionError(f"{file} is not what this command has written; move it away: {error}") from error


def _claims(own: Path, given: Mapping[str, Path]) -> Callable[[str], Path]:
    def claim(name: str) -> Path:
        place = given.get(name) or own / name
        place.mkdir(parents=True, exist_ok=True)
        return place

    return claim


def _config_maps(objects: Objects, given: Given) -> Callable[[str], Mapping[str, bytes]]:
    def config_map(name: str) -> Mapping[str, bytes]:
        own = objects.find("ConfigMap", name)
        if own is None and name not in given.config_maps:
            raise LookupError(f'configmap "{name}" not found')
        return given.config_maps[name] if own is None else {key: text.encode() for key, text in own["data"].items()}

    return config_map


def _secrets(given: Given) -> Callable[[str], Path]:
    def secret(name: str) -> Path:
        if name not in given.secrets:
            raise LookupError(f'secret "{name}" not found')
        return given.secrets[name]

    return secret
