"""The absolute paths in a step's code that a server can have: ``mountPath`` and ``scratchPaths`` of its entry. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from triton_converters.contract.text import quoted
from triton_operator.api.fixed_paths import is_free
from triton_plugin.python_files import Modules
from triton_plugin.triton_repository.files import ModelFiles
from triton_plugin.triton_repository.told import Words

MOST_SCRATCH = 4
"""The most paths that the CRD takes in ``scratchPaths``."""
MOUNT, SCRATCH = "mountPath", "scratchPaths"


@dataclass(frozen=True)
class FixedPaths:
    """The absolute paths of a step's code that a server can have."""

    mount: str = ""
    """Where the code finds the folder of its file; empty: at no path of its own."""
    scratch: tuple[str, ...] = ()
    """The directories that the code makes."""
    there: frozenset[str] = frozenset()
    """The paths in the code that are of files in the folder."""

    def has(self, place: str) -> bool:
        """Whether an absolute path in the code is there on a server."""
        return place in self.there or any(_lies_in(place, each) for each in self.scratch)


def fixed_paths(model: ModelFiles, file: str, own: Iterable[str], modules: Modules) -> FixedPaths:
    """Return the paths that the CRD takes.

    ``file``: path of the step's file below the source; ``own``: that and the files next to it that it imports.
    """
    found = [modules[each] for each in own]
    mounts = {place: _mount(model, file, place) for each in found for place in each.places}
    mount = min(filter(None, mounts.values()), default="")
    there = frozenset(place for place, each in mounts.items() if mount and each == mount)
    made = sorted({path for each in found for path in each.makes if is_free(path)})
    apart = [path for path in _outermost(made) if not mount or not _overlap(path, mount)]
    return FixedPaths(mount, tuple(apart[:MOST_SCRATCH]), there)


def keep_apart(entries: Sequence[dict[str, Any]]) -> Words:
    """Leave the paths that the CRD takes of all steps together, and return what is said of those that are left out.

    A folder is mounted once. Of directories that lie in each other, each step names the outermost.
    """
    mounts, said = _mounted_apart(entries)
    return said + _written_apart(entries, mounts)


def _mounted_apart(entries: Sequence[dict[str, Any]]) -> tuple[list[str], Words]:
    """Leave each folder to the first step that names it; return the mounts, and what is said of those left out."""
    mounts: list[str] = []
    said: Words = []
    for entry in (each for each in entries if MOUNT in each):
        near = [each for each in mounts if _overlap(entry[MOUNT], each)]
        if not near:
            mounts.append(entry[MOUNT])
            continue
        if entry[MOUNT] not in near:
            said.append((entry["name"], _left_out(entry[MOUNT], near[0])))
        del entry[MOUNT]
    return mounts, said


def _written_apart(entries: Sequence[dict[str, Any]], mounts: Sequence[str]) -> Words:
    """Have each step name the outermost of its directories, and return what is said of those that lie in a mount."""
    said: Words = []
    made = list(_outermost(sorted({path for entry in entries for path in entry.get(SCRATCH, ())})))
    for entry in entries:
        own = entry.pop(SCRATCH, ())
        outermost = sorted({each for each in made for path in own if _lies_in(path, each)})
        near = {path: mount for path in outermost for mount in mounts if _overlap(path, mount)}
        said += [(entry["name"], _left_out(path, mount)) for path, mount in near.items()]
        if left := [path for path in outermost if path not in near]:
            entry[SCRATCH] = left
    return said


def _left_out(path: str, mount: str) -> str:
    return (
        f"it names {quoted(path)}, which a server cannot have, because the folder of another step is at"
        f" {quoted(mount)}: name another path in the code"
    )


def _mount(model: ModelFiles, file: str, place: str) -> str:
    """Return where a server has the folder of the file if the path is there; empty: it is that of another file."""
    version = PurePosixPath(file).parent.name
    parts = PurePosixPath(place).parts
    for end in range(len(parts), 2, -1):
        within = "/".join((version, *parts[end:]))
        if parts[end - 2 : end] == (model.name, version) and within in (model.files or ()):
            mount = str(PurePosixPath(*parts[:end]))
            return mount if is_free(mount) else ""
    return ""


def _outermost(paths: Iterable[str]) -> Iterator[str]:
    """Yield the paths that lie in no other; ``paths``: sorted."""
    taken: list[str] = []
    for path in paths:
        if not any(_lies_in(path, each) for each in taken):
            taken.append(path)
            yield path


def _lies_in(path: str, other: str) -> bool:
    """Whether a path is another one, or lies in it."""
    return PurePosixPath(path).is_relative_to(other)


def _overlap(path: str, other: str) -> bool:
    """Whether one of two paths is the other, or lies in it."""
    return _lies_in(path, other) or _lies_in(other, path)
