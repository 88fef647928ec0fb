"""One TritonDeployment in a folder of this machine, from the start of its engine to the end of its last process."""

import fcntl
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from triton_local.engine import Engine, Machine
from triton_local.kubelet import Node
from triton_local.objects import Objects
from triton_local.runtime import Image, Runtime
from triton_local.turn import MEASURING, Turn
from triton_local.volumes import Storage
from triton_operator import names
from triton_operator.names import Body
from triton_operator.settings import Settings

OBJECTS = "objects.json"
"""The TritonDeployment and its children, in the folder of a session."""
SETTLING_SECONDS = 10.0
"""How long the last passes may take once the outcome is known: they write the results of the last Job."""


class SessionError(Exception):
    """The folder cannot be worked in; the message says why."""


@dataclass(frozen=True)
class Given:
    """What lies on this machine of all that the object names."""

    claims: dict[str, Path] = field(default_factory=dict)
    """A folder for each PersistentVolumeClaim that exists already."""
    config_maps: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    secrets: Mapping[str, Path] = field(default_factory=dict)
    """A folder for each Secret, with a file for each key."""
    images: Mapping[str, str] = field(default_factory=dict)
    """The name with a digest of each image that the object names."""


@dataclass(frozen=True)
class Session:
    """The engine at work, and what can be asked of it."""

    objects: Objects
    machine: Machine
    engine: Engine
    pods: Path

    def body(self) -> Body:
        """The TritonDeployment as it is now. Raises RuntimeError if the engine has ended by a fault of its own."""
        if self.engine.failure is not None:
            raise RuntimeError("the engine failed") from self.engine.failure
        return self.objects.owner_body()

    def log(self, pod: Body) -> str:
        """What the container of a pod that is to be shown has printed; empty: nothing yet."""
        labels = pod["metadata"]["labels"]
        container = pod["metadata"].get("annotations", {}).get(names.LOGGED_CONTAINER, labels[names.STAGE_LABEL])
        file = self.pods / pod["metadata"]["name"] / f"{container}.log"
        return file.read_text(encoding="utf-8", errors="replace") if file.exists() else ""

    def server_address(self) -> str | None:
        """The address of the server that the object's Service leads to now; None: none is ready."""
        return self.machine.services().get(self.objects.key.name)

    def settle(self) -> None:
        """Wait for the passes that are due at once."""
        self.engine.rests.wait(SETTLING_SECONDS)


@contextmanager
def session(
    folder: Path, desired: Body, given: Given, image: Callable[[str], Image], settings: Settings, runtime: Runtime
) -> Iterator[Session]:
    """Work on an object until the block ends; the same folder goes on where it ended.

    Raises SessionError if another engine works in the folder, or what is there is of another object; OSError.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with _alone(folder):
        objects = _objects(folder / OBJECTS, desired, settings.machine)
        storage = Storage(_claims(folder / "claims", given.claims), _config_maps(objects, given), _secrets(given))
        pods = folder / "pods"

        def hosts() -> Mapping[str, str]:
            return machine.services()

        node = Node(settings.machine, pods, runtime, storage, image, hosts)
        machine = Machine(node, objects, Turn(MEASURING))
        engine = Engine(objects, machine, settings)
        engine.start()
        try:
            yield Session(objects, machine, engine, pods)
        finally:
            engine.stop()


def _objects(file: Path, desired: Body, machine: str) -> Objects:
    try:
        return Objects(file, desired, {machine: {}}, lambda _: None)
    except (ValueError, LookupError, TypeError) as error:
        raise SessionError(f"{file} is not what this command has written; move it away: {error}") from error


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keep other engines out of a folder. Raises SessionError, OSError."""
    with (folder / "lock").open("w") as opened:
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise SessionError(f"another command works in {folder}; wait for it, or name another folder") from error
        yield


def _claims(own: Path, given: Mapping[str, Path]) -> Callable[[str], Path]:
    def claim(name: str) -> Path:
        place = given.get(name) or own / name
        place.mkdir(parents=True, exist_ok=True)
        return place

    return claim


def _config_maps(objects: Objects, given: Given) -> Callable[[str], Mapping[str, str]]:
    def config_map(name: str) -> Mapping[str, str]:
        own = objects.find("ConfigMap", name)
        if own is None and name not in given.config_maps:
            raise LookupError(f'configmap "{name}" not found')
        return dict(own["data"]) if own is not None else given.config_maps[name]

    return config_map


def _secrets(given: Given) -> Callable[[str], Path]:
    def secret(name: str) -> Path:
        if name not in given.secrets:
            raise LookupError(f'secret "{name}" not found')
        return given.secrets[name]

    return secret
