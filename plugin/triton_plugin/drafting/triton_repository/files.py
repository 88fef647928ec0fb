"""The models of a folder's Triton repositories, as their files tell: the one part that reads the folder."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path, PurePosixPath

from triton_converters.contract.formats import FORMATS
from triton_converters.contract.model_repository import CONFIG, VERSION
from triton_converters.contract.repository_config import BACKENDS, LONGEST
from triton_converters.found.batches import has_batch_dimension
from triton_plugin.drafting.triton_repository import pbtxt, requirement_lines
from triton_plugin.drafting.triton_repository.pbtxt import Config
from triton_plugin.drafting.triton_repository.requested import requested_models
from triton_plugin.drafting.triton_repository.requirement_lines import RequirementLine
from triton_plugin.errors import FolderError
from triton_plugin.reading.python_files import Modules, is_hidden, paths_below

ENSEMBLE, PYTHON = "ensemble", "python"
DEFAULTS = {
    FORMATS[name].file: FORMATS[name].backend for name in ("onnx", "ts-script", "tf-savedmodel", "triton-python", "trt")
}
"""The backend of a model without a configuration, by the name of its file or directory, as Triton finds it."""
MOST_MODELS = 256
"""Models of a folder; more are no pipeline that a person wrote."""
MOST_NAMES = 1024
"""Names that are looked at in a version's folder."""
MOST_FILES = 10_000
"""Files of a model's folder whose names are kept."""
MOST_DOCKERFILES = 20
"""Dockerfiles of a folder that are read."""
REQUIREMENTS = "requirements.txt"
DOCKERFILE = re.compile(r"(.+\.)?[Dd]ockerfile(\..+)?")


@dataclass(frozen=True)
class ModelFiles:
    """One model's folder."""

    path: str
    """Relative to the source."""
    config: Config | None
    """None: the folder has no config.pbtxt."""
    fault: str = ""
    """Why a file of it cannot be read: a path below its folder, and what is wrong."""
    versions: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """The names in the folder of each version, sorted."""
    batched: frozenset[int] = frozenset()
    """The versions whose file is a graph with a batch dimension."""
    requirements: str = ""
    """Path of its own requirements file, relative to the source; empty: there is none."""
    above: tuple[str, ...] = ()
    """Paths of the requirements files in the folders above, the nearest first."""
    files: frozenset[str] | None = frozenset()
    """The paths of all files in its folder, and of the folders that hold any; None: there are too many."""

    @property
    def name(self) -> str:
        """The model's name, which is its folder's."""
        return PurePosixPath(self.path).name

    @property
    def fields(self) -> Config:
        """The configuration, without any field if there is none."""
        return pbtxt.read(b"") if self.config is None else self.config

    @property
    def file(self) -> str:
        """The path of the newest version's file of a Python model, relative to the source; empty: it has no version."""
        name = self.fields.default_model_filename or FORMATS["triton-python"].file
        return f"{self.path}/{max(self.versions)}/{name}" if self.versions else ""

    @property
    def values(self) -> frozenset[str]:
        """The values of its parameters, which code finds in its configuration."""
        return frozenset(each.string_value for each in self.fields.parameters.values())

    @property
    def backend(self) -> str:
        """The backend by the name that the operator has for it, or else by Triton's; empty: nothing tells."""
        fields = self.fields
        if fields.HasField("ensemble_scheduling"):
            return ENSEMBLE
        if backend := str(fields.backend or fields.platform):
            return BACKENDS.get(backend, backend)
        names = self.versions[max(self.versions)] if self.versions else ()
        return next((backend for file, backend in DEFAULTS.items() if file in names), "")


@dataclass(frozen=True)
class Repository:
    """All models of a folder."""

    models: Mapping[str, ModelFiles]
    """The models by their paths."""
    modules: Modules
    requirements: Mapping[str, tuple[RequirementLine, ...]] = field(default_factory=dict)
    """The lines of the models' requirements files, by their paths."""
    installed: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """The requirements that Dockerfiles of a Triton server install, each with what names it, by the package's name."""

    def sibling(self, path: str, name: str) -> ModelFiles | None:
        """Return the model of that name in the same repository as the one at ``path``."""
        return self.models.get(str(PurePosixPath(path).parent / name))

    @property
    def ensembles(self) -> tuple[str, ...]:
        """The paths of the ensembles that are no step of another; if each is one, the first, which is refused."""
        found = tuple(self._all(ENSEMBLE))
        return tuple(each for each in found if each not in self.members) or found[:1]

    @property
    def steps(self) -> tuple[str, ...]:
        """The paths of the Python models that are in no ensemble."""
        return tuple(each for each in self._all(PYTHON) if each not in self.members)

    @property
    def called(self) -> frozenset[str]:
        """The paths of the models that the code of a Python model asks by itself."""
        return frozenset(
            path
            for each in self._all(PYTHON)
            for name in self.names_asked(self.models[each], self.models[each].file)
            if (path := str(PurePosixPath(each).parent / name)) in self.models
        )

    def names_asked(self, model: ModelFiles, file: str) -> tuple[str, ...]:
        """Return the names of the models that the code of a Python model asks, sorted.

        ``file``: path of that code below the source. Where a name is not written in the request, all texts of the
        code and all values of parameters that are the name of another model of the repository count.
        """
        found, root = requested_models(file, self.modules), PurePosixPath(model.path).parent
        words = found.words | (model.values if found.is_computed else frozenset())
        others = {word for word in words if word not in ("", model.name) and str(root / word) in self.models}
        return tuple(sorted({*found.names, *others}))

    @property
    def members(self) -> frozenset[str]:
        """The paths of the models that an ensemble names."""
        return frozenset(
            str(PurePosixPath(path).parent / name)
            for path in self._all(ENSEMBLE)
            for name in step_names(self.models[path].fields)
        )

    def _all(self, backend: str) -> Iterator[str]:
        return (path for path, each in self.models.items() if each.backend == backend)


def step_names(config: Config) -> Iterator[str]:
    """Yield the models that an ensemble names."""
    return (step.model_name for step in config.ensemble_scheduling.step)


def read(folder: Path, modules: Modules) -> Repository:
    """Return the models of all repositories below a folder; none if it is a file. Raises FolderError, OSError."""
    if not folder.is_dir():
        return Repository({}, modules)
    top = folder.resolve()
    roots = {
        name.parent.parent
        for path, name in paths_below(folder)
        if name.name == CONFIG and len(name.parts) > 1 and not is_hidden(name) and _is_inside(path, top)
    }
    found: dict[str, ModelFiles] = {}
    for root in sorted(roots):
        for place in sorted((folder / root).iterdir()):
            path = root / place.name
            if is_hidden(path) or not place.is_dir() or place.is_symlink() or VERSION.fullmatch(place.name):
                continue
            if (model := _model(folder, str(path))) is not None:
                found[model.path] = model
            if len(found) > MOST_MODELS:
                raise FolderError(
                    f"{folder} has more than {MOST_MODELS} models of Triton repositories: pass one's folder"
                )
    paths = {path for each in found.values() for path in (each.requirements, *each.above) if path}
    texts = {path: tuple(requirement_lines.lines(_text(folder / path))) for path in sorted(paths)}
    return Repository(found, modules, texts, _installed(folder, top))


def _installed(folder: Path, top: Path) -> dict[str, tuple[str, str]]:
    """Return what the Dockerfiles of a Triton server below the folder install, as ``Repository.installed``."""
    found: dict[str, tuple[str, str]] = {}
    named = (
        name
        for path, name in paths_below(folder)
        if DOCKERFILE.fullmatch(name.name) and not is_hidden(name) and _is_inside(path, top)
    )
    for name in islice(named, MOST_DOCKERFILES):
        requirements, files = requirement_lines.of_dockerfile(_text(folder / name))
        for each in requirements:
            found.setdefault(requirement_lines.name_of(each), (each, str(name)))
        for file in files:
            # The build's context is either folder.
            places = (parent / PurePosixPath(file).name for parent in (name.parent, PurePosixPath()))
            for place in [each for each in places if _is_inside(folder / each, top)][:1]:
                for line in requirement_lines.lines(_text(folder / place)):
                    found.setdefault(line.name, (line.text, str(place)))
    found.pop("", None)
    return found


def _text(file: Path) -> str:
    """Return the beginning of a text that anybody may have written."""
    with file.open("rb") as opened:
        return opened.read(LONGEST).decode(errors="replace")


def _model(folder: Path, path: str) -> ModelFiles | None:
    """Return the model at ``path`` below the folder; None: it is none."""
    place, top = folder / path, folder.resolve()
    versions = {
        int(each.name): _names(each)
        for each in sorted(islice(place.iterdir(), MOST_NAMES))
        if VERSION.fullmatch(each.name) and each.is_dir() and not each.is_symlink()
    }
    config, fault = _config(place / CONFIG, top)
    named = config.default_model_filename if config is not None else ""
    expected = {named} if named else DEFAULTS.keys()
    if config is None and not fault and not any(DEFAULTS.keys() & set(names) for names in versions.values()):
        return None
    odd = (
        f"{version}/{file}"
        for version, names in versions.items()
        for file in sorted(expected & set(names))
        if not _is_whole(place / str(version) / file, top)
    )
    if (path_of_odd := next(odd, "")) and not fault:
        fault = f"{path_of_odd}: it is a link out of the folder, or neither a file nor a folder: copy the model there"
    batched = frozenset(
        version
        for version, names in versions.items()
        for file in sorted(expected & set(names))
        if not fault and has_batch_dimension(folder, f"{path}/{version}/{file}")
    )
    own = (*((f"{path}/{max(versions)}",) if versions else ()), path)
    above = map(str, PurePosixPath(path).parents)
    return ModelFiles(
        path,
        config,
        fault,
        versions,
        batched,
        next(_requirements(folder, own), ""),
        tuple(_requirements(folder, above)),
        _all_names(place),
    )


def _config(file: Path, top: Path) -> tuple[Config | None, str]:
    """Return the fields of config.pbtxt, if it is there, and else why they cannot be read; empty: it is not there."""
    if not _is_inside(file, top):
        return None, ""
    try:
        with file.open("rb") as opened:
            return pbtxt.read(opened.read(LONGEST + 1)), ""
    except pbtxt.PbtxtError as error:
        return None, f"{CONFIG}: {error}"


def _requirements(folder: Path, places: Iterable[str]) -> Iterator[str]:
    """Yield the requirements files of the places below the folder."""
    for each in places:
        path = PurePosixPath(each) / REQUIREMENTS
        if _is_inside(folder / path, folder.resolve()):
            yield str(path)


def _all_names(place: Path) -> frozenset[str] | None:
    """Return the paths of a model's files, and of the folders that hold any; None: they are too many."""
    found = [name for _, name in islice(paths_below(place), MOST_FILES + 1)]
    return (
        frozenset(str(each) for name in found for each in (name, *name.parents)) if len(found) <= MOST_FILES else None
    )


def _names(folder: Path) -> tuple[str, ...]:
    return tuple(sorted(each.name for each in islice(folder.iterdir(), MOST_NAMES)))


def _is_whole(place: Path, top: Path) -> bool:
    """Whether a path is a file or a folder below ``top``: a pipe would be read without an end."""
    return (place.is_file() or place.is_dir()) and place.resolve().is_relative_to(top)


def _is_inside(file: Path, top: Path) -> bool:
    """Whether a path is a regular file below ``top``, and no link out of that folder."""
    return file.is_file() and file.resolve().is_relative_to(top)
