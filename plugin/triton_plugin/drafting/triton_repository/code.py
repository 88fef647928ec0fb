"""What a Python step's file shows of what it needs, without running it. Pure.

What would certainly fail is a fault. What only may fail is left for the author to judge: a name says little about what
the code does with it.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from triton_converters.contract.text import quoted
from triton_operator.api.fixed_paths import is_free
from triton_plugin.drafting.triton_repository.downloads import downloads
from triton_plugin.drafting.triton_repository.files import ModelFiles, Repository
from triton_plugin.drafting.triton_repository.fixed_paths import FixedPaths, fixed_paths, lies_in
from triton_plugin.drafting.triton_repository.notes import NAMED, Notes, names, place
from triton_plugin.drafting.triton_repository.packages import is_foreign, packages
from triton_plugin.drafting.triton_repository.requested import below, imported
from triton_plugin.reading.python_files import Modules, imports, used_names

CLASS = "TritonPythonModel"
SERVERS = frozenset({"numpy", "triton_python_backend_utils", "c_python_backend_utils"})
"""What a step imports from the server."""
GPU_PACKAGES = frozenset({"cupy", "pycuda", "cudf", "cuml", "tensorrt", "nvidia"})
"""Packages that do nothing without a GPU."""
SYSTEM = frozenset({"dev", "etc", "proc", "sys", "tmp", "usr", "bin", "var"})
"""Folders of every system."""
ANYBODYS = frozenset({"dev", "proc", "sys", "tmp"})
"""Folders of every system that hold no files of a step."""
WRITABLE = ("/tmp", "/dev/shm")  # noqa: S108 - where a step's code makes directories, not where ours writes
"""The directories of every server in which a step may make others."""


@dataclass(frozen=True)
class Needs:
    """What a step's entry has to say, by its code."""

    requirements: str
    """Path of the requirements file with the packages that it needs, which may be one that is to be made; empty: it
    needs none."""
    paths: FixedPaths
    """The absolute paths in it that a server can have."""


def judge(model: ModelFiles, file: str, repository: Repository, notes: Notes) -> Needs:
    """Tell what is known of the file at ``file`` below the source, and of the files next to it that it imports."""
    modules = repository.modules
    if file not in modules:
        notes.faults.append(
            (model.name, f"{quoted(file)} is missing, or no Python that can be read: add or correct it")
        )
        return Needs("", FixedPaths())
    own = imported(file, modules)
    others = (each.name for each in repository.models.values() if each.path != model.path)
    paths = fixed_paths(model, file, own, modules, others)
    used = frozenset(name for each in own for name in used_names(modules[each]))
    if CLASS not in used and not any(name == CLASS for name, _ in modules[file].definitions):
        notes.faults.append((model.name, f"{quoted(file)} defines no class {CLASS}: add it"))
    if "get_response_sender" in used:
        message = "it sends responses by itself (get_response_sender): return one response for each request"
        notes.faults.append((model.name, message))
    notes.doubts += ((model.name, each) for each in downloads(model, file, own, modules))
    notes.doubts += ((model.name, each) for each in _doubts(own, used, paths, modules))
    notes.doubts += ((model.name, each) for each in _hashes(own, modules))
    notes.doubts += ((model.name, each) for each in _absent(model, own, modules))
    return Needs(_packages(model, file, repository, notes), paths)


def needs_packages(modules: Modules, files: Iterable[str]) -> bool:
    """Whether files that are no step's import what is neither Python's, nor NumPy, nor in the whole folder.

    If not, a requirements file of a public repository is left out: it is for its server and its clients, and asks for
    versions that no image here has.
    """
    local = {part.removesuffix(".py") for each in modules for part in PurePosixPath(each).parts}
    return any(is_foreign(each, SERVERS, local) for file in files for each in imports(modules, file))


def _packages(model: ModelFiles, file: str, repository: Repository, notes: Notes) -> str:
    """Tell what the step imports that neither the server nor its folder has; return the path of its requirements."""
    folder, modules = PurePosixPath(file).parent, repository.modules
    local = {PurePosixPath(each).relative_to(folder).parts[0].removesuffix(".py") for each in below(folder, modules)}
    foreign = [each for each in imports(modules, file) if is_foreign(each, SERVERS, local)]
    tops = {each.name.partition(".")[0] for each in foreign}
    needed = {each.name.partition(".")[0] for each in foreign if not each.is_guarded}
    if gpu := sorted(needed & GPU_PACKAGES):
        message = f"it imports {names(gpu)}, but a step runs on the CPU: write it with NumPy"
        notes.faults.append((model.name, message))
    elsewhere = {PurePosixPath(each).stem for each in modules}
    if outside := sorted((tops - GPU_PACKAGES) & elsewhere):
        message = f"it imports {names(outside)} from outside its folder: copy it into {quoted(str(folder))}"
        notes.missing.append((model.name, message))
    known = GPU_PACKAGES | elsewhere
    return packages(model, [each for each in foreign if each.name.partition(".")[0] not in known], repository, notes)


def _absent(model: ModelFiles, own: Iterable[str], modules: Modules) -> Iterator[str]:
    """Yield a sentence for each file that the step's code names and its folder lacks."""
    # Sorted from their ends, of which code and folder may have many thousand.
    ends = None if model.files is None else sorted(f"/{each}"[::-1] for each in model.files)
    for each in own:
        for path, line in modules[each].opened[:NAMED]:
            if not path.startswith("/"):
                yield (
                    f"it opens {quoted(path)} ({place(each, line)}) from the working directory, which is another on a"
                    " server: name it from Path(__file__).parent"
                )
        absent = [
            (path, line)
            for path, line in modules[each].joined
            if PurePosixPath(path).suffix and not path.startswith("/") and not _has(ends, path)
        ]
        for path, line in absent[:NAMED]:
            yield (
                f"it names {quoted(path)} ({place(each, line)}), which {quoted(model.path)} lacks: add the file, if the"
                " step reads it"
            )


def _has(ends: Sequence[str] | None, end: str) -> bool:
    """Whether the model's folder has a path with this end; true also if it has too many to tell."""
    end = f"/{end.removeprefix('./').removeprefix('../')}"[::-1]
    return ends is None or any(each.startswith(end) for each in ends[bisect_left(ends, end) :][:1])


def _doubts(own: Iterable[str], used: frozenset[str], paths: FixedPaths, modules: Modules) -> Iterator[str]:
    made = sorted({path for each in own for path in modules[each].makes if not paths.has(path)})
    if lost := [path for path in made if not any(lies_in(path, each) for each in WRITABLE)]:
        yield (
            f"it makes {names(lost)}, which no server may have: name a path in /tmp, or one that scratchPaths takes,"
            " such as '/cache' (at most four); or read it from a variable that pod.env of the spec sets"
        )
    yield from _misplaced({place for each in own for place in modules[each].places}, made, paths)
    if "cuda" in used:
        yield "it names cuda: a step runs on the CPU"


def _misplaced(places: Iterable[str], made: Sequence[str], paths: FixedPaths) -> Iterator[str]:
    """Yield sentences for absolute paths that no server has; ``made``: the directories that the code makes in vain."""
    named = sorted(
        place for place in places if not paths.has(place) and not any(lies_in(place, path) for path in made[:NAMED])
    )
    meant = [] if paths.mount else [place for place in named if paths.inside.get(place)]
    if meant:
        mounts = sorted({each for place in meant for each in paths.inside[place]})
        yield (
            f"it names {names(meant)}, which may be in the step's folder: write mountPath into its model, such as"
            f" {names(mounts)}, or name them from Path(__file__).parent"
        )
    if elsewhere := [place for place in named if place not in meant and _is_elsewhere(place, paths)]:
        or_mounted = ", or put the files there, and write mountPath into its model"
        is_mountable = not paths.mount and all(_is_mountable(place, paths) for place in elsewhere)
        yield (
            f"it names {names(elsewhere)}: on a server the step's files lie elsewhere; name them from"
            f" Path(__file__).parent{or_mounted if is_mountable else ''}"
        )


def _is_mountable(place: str, paths: FixedPaths) -> bool:
    """Whether a mount may be at the folder of a path: it is read-only, and holds no directory to write to."""
    folder = str(PurePosixPath(place).parent)
    return is_free(place) and not any(lies_in(each, folder) for each in paths.scratch)


def _hashes(own: Iterable[str], modules: Modules) -> Iterator[str]:
    for each in own:
        defined = any(name == "hash" for name, _ in modules[each].definitions)
        for line in () if defined else modules[each].hashed[:1]:
            yield (
                f"it calls hash ({place(each, line)}), which is another number for the same text in each process: take"
                " hashlib or zlib.crc32"
            )


def _is_elsewhere(place: str, paths: FixedPaths) -> bool:
    """Whether an absolute path is that of a file in somebody's container."""
    top = place.strip("/").partition("/")[0]
    return top not in SYSTEM or (place in paths.inside and top not in ANYBODYS)
