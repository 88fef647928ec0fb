"""The models that the names of a source's files show, as KServe's servers find them. Pure."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import NamedTuple

from triton_converters.contract.formats import FORMATS, SOURCE_FORMATS
from triton_converters.contract.model_repository import CONFIG, VERSION
from triton_converters.contract.repository_config import OTHER_BACKENDS
from triton_converters.found.repository import BACKENDS
from triton_plugin.errors import FolderError

FILES: Mapping[str, tuple[str, ...]] = {
    "onnx": (".onnx",),
    "xgboost": (".bst", ".json", ".ubj"),
    "lightgbm": (".bst", ".txt"),
}
"""How the names of files end that are a whole model, by KServe's name of the format."""
SINGLE_FILES = tuple(suffix for suffixes in FILES.values() for suffix in suffixes)
SAVED_MODEL = PurePosixPath(FORMATS["tf-savedmodel"].file).suffix
MARKER = SOURCE_FORMATS["tf-savedmodel"].marker
SUFFIXES = frozenset(PurePosixPath(each).suffix for each in BACKENDS.values())
"""How the names of files end that are a model of a Triton repository."""
OTHERS = {FORMATS["trt"].file: OTHER_BACKENDS["tensorrt"], FORMATS["triton-python"].file: OTHER_BACKENDS["python"]}
"""Why a model of a Triton repository is left out, by the name of its file."""
DEFAULTS = frozenset((*BACKENDS.values(), *OTHERS))
"""The files by which Triton knows a model without a config.pbtxt."""
NO_MODEL = (
    "no file of it is a model that is taken; an ensemble and its models become one object by `kubectl triton init"
    " FOLDER`, and other backends are not served"
)
NUMBER = re.compile(r"[0-9]{1,18}")
"""The name of a version's folder, as TensorFlow Serving finds it."""
NAMED = 5
"""The most files that a reason names."""


class Listed(NamedTuple):
    """A model of a source."""

    path: str
    """Path below the source."""
    name: str = ""
    """The name by which clients of its Triton repository know it; empty: that of the InferenceService."""
    is_saved_model: bool = False
    """Whether the path is a folder of a Triton repository with a SavedModel."""


class Models(NamedTuple):
    """What a listing shows."""

    taken: tuple[Listed, ...]
    left_out: tuple[str, ...] = ()
    """The other models of a Triton repository, each with the reason."""


def files(lines: Iterable[str]) -> list[str]:
    """Return the lines that name a file: `gcloud storage ls` prints empty ones and folders too."""
    return [name for line in lines if (name := line.strip()) and not name.endswith(("/", ":"))]


def below(files: Iterable[str], uri: str) -> list[str]:
    """Return the paths of the files below a URI. One without a scheme is such a path itself."""
    above = f"{uri.rstrip('/')}/"
    paths = (PurePosixPath(each.removeprefix(above)) for each in files if each.startswith(above) or "://" not in each)
    return [str(each) for each in paths if each.name]


def models(paths: Collection[str], form: str) -> Models:
    """Return the models among the files of a source, of KServe's format ``form``.

    A SavedModel that is the source itself has the path ``.``. Raises FolderError if there is none, or if several files
    may be the one model.
    """
    if found := _repository(paths):
        taken = tuple(each for each in found.values() if isinstance(each, Listed))
        left_out = tuple(f"{name}: {each}" for name, each in found.items() if isinstance(each, str))
        if not taken:
            raise FolderError("; ".join(left_out))
        return Models(taken, left_out)
    whole = sorted(_saved_models(paths) if form == "tensorflow" else _files(paths, FILES.get(form, ())))
    if len(whole) == 1:
        return Models((Listed(whole[0]),))
    if whole:
        several = ", ".join(whole[:NAMED])
        raise FolderError(
            f"several of its files may be the model: {several}; pass a file with it alone, and choose one: --model PATH"
        )
    listed = ", ".join(sorted(paths)[:NAMED])
    raise FolderError(f"no file below its URI is a model of format {form} that is taken; there are {listed}")


def _repository(paths: Iterable[str]) -> dict[str, Listed | str]:
    """Return the models of a Triton repository by their folders' names, or why one is left out; empty: it is none."""
    versions: dict[str, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
    configured = set()
    for folder, *rest in (PurePosixPath(each).parts for each in paths):
        if rest == [CONFIG]:
            configured.add(folder)
        elif len(rest) > 1 and VERSION.fullmatch(rest[0]):
            versions[folder][int(rest[0])].add(rest[1])
    shown = {folder for folder, each in versions.items() if any(DEFAULTS & names for names in each.values())}
    return {name: _of_repository(name, versions[name], name in configured) for name in sorted(configured | shown)}


def _of_repository(name: str, versions: Mapping[int, Collection[str]], is_configured: bool) -> Listed | str:
    newest = max(versions, default=0)
    names = sorted(versions.get(newest, ()))
    if other := next((why for file, why in OTHERS.items() if file in names), ""):
        return other
    file = next((each for each in names if PurePosixPath(each).suffix in SUFFIXES), "")
    if not file:
        return NO_MODEL
    if not is_configured:
        return Listed(f"{name}/{newest}/{file}", name)
    return Listed(name, name, file.endswith(SAVED_MODEL))


def _saved_models(paths: Iterable[str]) -> Iterator[str]:
    """Yield the SavedModels; of versions, which are folders with numbers, the newest."""
    newest: dict[PurePosixPath, PurePosixPath] = {}
    for folder in (path.parent for path in map(PurePosixPath, paths) if path.name == MARKER):
        place = folder.parent if _version(folder) else folder
        newest[place] = max(folder, newest.get(place, folder), key=_version)
    return map(str, newest.values())


def _version(folder: PurePosixPath) -> int:
    return int(folder.name) if NUMBER.fullmatch(folder.name) else 0


def _files(paths: Iterable[str], suffixes: tuple[str, ...]) -> Iterator[str]:
    return (each for each in paths if each.endswith(suffixes))
