"""The absolute paths in a step's code that a server can have: ``mountPath`` and ``scratchPaths`` of its entry. Pure."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from triton_converters.contract.model_repository import VERSION
from triton_converters.contract.text import quoted
from triton_operator.api.fixed_paths import is_free
from triton_plugin.drafting.triton_repository.files import ModelFiles
from triton_plugin.drafting.triton_repository.notes import Words
from triton_plugin.reading.python_files import Modules

MOST_SCRATCH = 4
"""The most paths that the CRD takes in ``scratchPaths``."""
DEEPEST = 8
"""The most folders that the CRD takes in ``mountPath``."""
MOUNT, SCRATCH, FILE = "mountPath", "scratchPaths", "entrypoint"


@dataclass(frozen=True)
class FixedPaths:
    """The absolute paths of a step's code that a server can have."""

    mount: str = ""
    """Where the code finds the folder of its file; empty: at no path of its own."""
    scratch: tuple[str, ...] = ()
    """The directories that the code makes."""
    inside: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The paths in the code that may be of files in the folder: where a server can have it then, if anywhere."""

    def has(self, place: str) -> bool:
        """Whether an absolute path in the code is there on a server."""
        is_mounted = self.mount != "" and self.mount in (place, *self.inside.get(place, ()))
        return is_mounted or any(lies_in(place, each) for each in self.scratch)


def fixed_paths(
    model: ModelFiles, file: str, own: Iterable[str], modules: Modules, others: Iterable[str] = ()
) -> FixedPaths:
    """Return the paths that the CRD takes.

    ``file``: path of the step's file below the source; ``own``: that and the files next to it that it imports.
    ``others``: the names of the other models.

    The folder is mounted where a path names the model and its version, and else where all files that it may have are
    then at their paths, if that is one place.
    """
    found = [modules[each] for each in own]
    version = PurePosixPath(file).parent.name
    made = sorted({path for each in found for path in each.makes if is_free(path)})
    places = {place for module in found for place in module.places}
    mount, inside = _mountable(model, version, places, made, frozenset(others))
    apart = [path for path in _outermost(made) if not mount or not _overlap(path, mount)]
    return FixedPaths(mount, tuple(apart[:MOST_SCRATCH]), inside)


def _mountable(
    model: ModelFiles, version: str, places: Iterable[str], made: Sequence[str], others: frozenset[str]
) -> tuple[str, dict[str, tuple[str, ...]]]:
    """Return ``mount`` and ``inside`` of FixedPaths; ``made``: the directories that the code makes."""
    there = {place: mounts for place in places if (mounts := set(_mounts(model, version, place)))}
    named = {each for mounts in there.values() for each in mounts if is_free(each) and _names(each, model, version)}
    free = {place: _apart(mounts, made) for place, mounts in there.items()}
    own = {
        place: {each for each in mounts if not _is_anothers(each, place, model, version, others)}
        for place, mounts in free.items()
    }
    likely = [own[place] for place, mounts in free.items() if mounts]
    common = set.intersection(*likely) if likely else set()
    mount = min(named or common) if named or len(common) == 1 else ""
    return mount, {place: tuple(sorted(mounts & named | own[place])) for place, mounts in there.items()}


def _apart(mounts: Iterable[str], made: Sequence[str]) -> set[str]:
    """Return the mounts that the CRD takes next to the directories that the code makes."""
    return {each for each in mounts if is_free(each) and not any(_overlap(each, path) for path in made)}


def keep_apart(entries: Sequence[dict[str, Any]]) -> Words:
    """Leave the paths that the CRD takes of all steps together, and return what is said of those that are left out.

    A folder is mounted once. Of directories that lie in each other, each step names the outermost.
    """
    mounts, said = _mounted_apart(entries)
    return said + _written_apart(entries, mounts)


def _mounted_apart(entries: Sequence[dict[str, Any]]) -> tuple[Collection[str], Words]:
    """Leave each folder to the first step that names it; return the mounts, and what is said of those left out."""
    mounts: dict[str, str] = {}
    said: Words = []
    for entry in (each for each in entries if MOUNT in each):
        near = [each for each in mounts if _overlap(entry[MOUNT], each)]
        if not near:
            mounts[entry[MOUNT]] = entry[FILE]
            continue
        mount = entry.pop(MOUNT)
        # A model that two steps use is served twice, from one folder.
        if mounts.get(mount) != entry[FILE]:
            said.append((entry["name"], _left_out(mount, near[0])))
    return mounts, said


def _written_apart(entries: Sequence[dict[str, Any]], mounts: Collection[str]) -> Words:
    """Have each step name the outermost of its directories, and return what is said of those that lie in a mount."""
    said: Words = []
    made = list(_outermost(sorted({path for entry in entries for path in entry.get(SCRATCH, ())})))
    for entry in entries:
        own = entry.pop(SCRATCH, ())
        outermost = sorted({each for each in made for path in own if lies_in(path, each)})
        hidden = {path: mount for path in outermost for mount in mounts if _overlap(path, mount)}
        said += [(entry["name"], _left_out(path, mount)) for path, mount in hidden.items()]
        if left := [path for path in outermost if path not in hidden]:
            entry[SCRATCH] = left
    return said


def _left_out(path: str, mount: str) -> str:
    return (
        f"it names {quoted(path)}, which a server cannot have, because the folder of another step is at"
        f" {quoted(mount)}: name another path in the code"
    )


def _mounts(model: ModelFiles, version: str, place: str) -> Iterator[str]:
    """Yield where the folder of the file would have to be so that a path is that of a file in it."""
    parts = PurePosixPath(place).parts
    for end in range(2, min(len(parts), DEEPEST + 1) + 1):
        mount = str(PurePosixPath(*parts[:end]))
        is_file = "/".join((version, *parts[end:])) in (model.files or ())
        if is_file and (end < len(parts) or _names(mount, model, version)):
            yield mount


def _names(mount: str, model: ModelFiles, version: str) -> bool:
    """Whether the path of a folder ends with a model and its version."""
    return PurePosixPath(mount).parts[-2:] == (model.name, version)


def _is_anothers(mount: str, place: str, model: ModelFiles, version: str, others: frozenset[str]) -> bool:
    """Whether a path may be that of a file in the folder of another model, of another version, or above the version."""
    parts = PurePosixPath(mount).parts
    above = model.name in parts and str(PurePosixPath(place).relative_to(mount)) in (model.files or ())
    return above or not others.isdisjoint(parts) or (parts[-1] != version and VERSION.fullmatch(parts[-1]) is not None)


def _outermost(paths: Iterable[str]) -> Iterator[str]:
    """Yield the paths that lie in no other; ``paths``: sorted."""
    taken: list[str] = []
    for path in paths:
        if not any(lies_in(path, each) for each in taken):
            taken.append(path)
            yield path


def lies_in(path: str, other: str) -> bool:
    """Whether a path is another one, or lies in it."""
    return PurePosixPath(path).is_relative_to(other)


def _overlap(path: str, other: str) -> bool:
    """Whether one of two paths is the other, or lies in it."""
    return lies_in(path, other) or lies_in(other, path)
