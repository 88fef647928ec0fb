"""A pod's volumes as folders of this machine."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from uuid import uuid4

from triton_local.runtime import Mount
from triton_operator.names import Body

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - folders there are made anew for each pod
"""Where volumes of medium Memory lie."""


@dataclass(frozen=True)
class Storage:
    """Where what a pod names lies; each raises LookupError if it is not there."""

    claim: Callable[[str], Path]
    """The folder of a PersistentVolumeClaim."""
    config_map: Callable[[str], Mapping[str, bytes]]
    """The data of a ConfigMap."""
    secret: Callable[[str], Path]
    """The folder with the files of a Secret."""


class Volumes:
    """The volumes of one pod."""

    def __init__(self, storage: Storage, folder: Path, volumes: list[Body]) -> None:
        """``folder``: the pod's own; its name is that of the pod. Raises LookupError, OSError."""
        self._storage = storage
        self._folder = folder / "volumes"
        self._memory = _memory(folder.name)
        self._places = {each["name"]: self._place(each) for each in volumes}
        self._read_only = {each["name"] for each in volumes if _is_read_only(each)}

    def mounts(self, container: Body) -> tuple[Mount, ...]:
        """Return what a container mounts, a folder before what lies in it.

        Raises LookupError if a path leads out of its volume.
        """
        mounted = sorted(container.get("volumeMounts", []), key=lambda each: PurePosixPath(each["mountPath"]).parts)
        return tuple(self._mount(each) for each in mounted)

    def remove(self) -> None:
        """Remove what lies in memory."""
        remove_memory(self._folder.parent.name)

    def _mount(self, mount: Body) -> Mount:
        name = mount["name"]
        place = self._places[name].resolve()
        source = (place / mount.get("subPath", "")).resolve()
        if not source.is_relative_to(place):
            raise LookupError(f"subPath {mount['subPath']!r} of volume {name} leads out of it by a link")
        below = source.relative_to(place)
        for each in (*reversed(below.parents), below):
            if not (place / each).exists():
                (place / each).mkdir()
                (place / each).chmod(place.stat().st_mode)
        return Mount(source, mount["mountPath"], mount.get("readOnly", False) or name in self._read_only)

    def _place(self, volume: Body) -> Path:
        name: str = volume["name"]
        if "persistentVolumeClaim" in volume:
            return self._storage.claim(volume["persistentVolumeClaim"]["claimName"])
        if "secret" in volume:
            return self._storage.secret(volume["secret"]["secretName"])
        in_memory = volume.get("emptyDir", {}).get("medium") == "Memory"
        above = self._memory if in_memory else self._folder
        above.mkdir(parents=True, exist_ok=True, mode=0o700)
        place = above / name
        place.mkdir()
        # As the kubelet makes it: containers of a pod may have other users.
        place.chmod(0o777)
        if "configMap" in volume:
            _write(place, self._storage.config_map(volume["configMap"]["name"]), volume["configMap"].get("items", []))
        elif "emptyDir" not in volume:
            raise LookupError(f"volume {name} is of a kind that needs a cluster: {', '.join(volume.keys() - {'name'})}")
        return place


def remove_memory(pod: str) -> None:
    """Remove what a pod has in memory, if it has."""
    with suppress(OSError):
        _remove(_memory(pod))


def _remove(folder: Path) -> None:
    """Remove a folder that a hostile program filled: of any depth and any mode. Raises OSError."""
    pending = [folder]
    while pending:
        above = pending.pop()
        for each in [*above.iterdir()]:
            if each.is_symlink() or not each.is_dir():
                each.unlink()
                continue
            each.chmod(0o700)
            # A path through all that is above would be too long.
            pending.append(each.rename(folder / uuid4().hex))
        if above != folder:
            above.rmdir()
    folder.rmdir()


def _memory(pod: str) -> Path:
    return SHARED_MEMORY / f"triton-local-{pod}"


def _is_read_only(volume: Body) -> bool:
    """Whether no container may write to it, whatever its mount says."""
    return "configMap" in volume or "secret" in volume or volume.get("persistentVolumeClaim", {}).get("readOnly", False)


def _write(place: Path, data: Mapping[str, bytes], items: list[Body]) -> None:
    """Write the keys of a ConfigMap, or those that the volume names, as files."""
    for key, path in {each["key"]: each["path"] for each in items}.items() or {key: key for key in data}.items():
        if key not in data:
            raise LookupError(f"the ConfigMap has no key {key}")
        if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
            raise LookupError(f"{path} leads out of the ConfigMap")
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_bytes(data[key])
