"""Reads the parts of a TritonDeployment's source from a model folder without running any of its code."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path, PurePosixPath

from triton_converters.contract.formats import CONVERTER_TENSORFLOW, ENSEMBLE, REPOSITORY, SHOWN, SOURCE_FORMATS
from triton_converters.found.formats import described, refusal
from triton_converters.found.kinds import FileKind, kind_of
from triton_plugin.drafting import several_graphs
from triton_plugin.drafting.triton_repository import files
from triton_plugin.drafting.triton_repository.code import CLASS, needs_packages
from triton_plugin.drafting.triton_repository.pipeline import Pipeline, pipeline
from triton_plugin.errors import FolderError
from triton_plugin.reading.found_models import Model, models
from triton_plugin.reading.python_files import Entrypoint, Module, Modules, entrypoints, parse, paths_below

REQUIREMENTS = "requirements.txt"
CHECKPOINTS = (".safetensors", ".pt", ".pth", ".pth.tar", ".ckpt", ".bin")
TENSORFLOW_CHECKPOINTS = (".safetensors", ".h5", ".keras")
"""Suffixes in the order of preference: only the first cannot contain code."""
NO_MODELS = (FileKind.EMPTY, FileKind.DATA, FileKind.JSON, FileKind.PYTHON)
"""Kinds of files that lie next to any model."""
MOST_STEPS = 4
"""The most Python steps that a message names."""


@dataclass(frozen=True)
class ModelFolder:
    """The parts of a TritonDeployment's source."""

    name: str
    model: Model
    """The model, whose format is known."""
    dataloaders: tuple[Entrypoint, ...]
    metrics: tuple[Entrypoint, ...]
    checkpoints: tuple[str, ...]
    """Relative to the folder, the likeliest first."""
    suffixes: tuple[str, ...]
    """The suffixes of checkpoints that were searched for."""
    requirements: str = ""
    """The requirements file of the user's Python files; empty: there is none in its root, or none is needed."""
    pipeline: Pipeline | None = None
    """The models and the ensemble of a Triton repository, if the object is made of one; ``model`` is the ensemble."""
    steps: tuple[str, ...] = ()
    """Python steps of the folder that are no part of the object."""
    words: frozenset[str] = frozenset()
    """The words among the texts of all Python files."""
    metric_words: frozenset[str] = frozenset()
    """The words among the texts of the first file of metrics."""


def read(folder: Path, path: str = "", form: str = "") -> ModelFolder:
    """Find the one model (at ``path``, of format ``form``, if these are not empty) and the user's files.

    ``folder`` may be a single file too. Raises FolderError if there is none or several, or its format is unknown; the
    message names the option.
    """
    if not folder.exists():
        raise FolderError(f"{folder} does not exist; pass the folder that contains the model, or the model's file")
    modules = parse(folder)
    wanted = path and PurePosixPath(path).as_posix()
    found, repository = models(folder, modules), files.read(folder, modules)
    for each in repository.models.values():
        if each.fault and wanted in ("", each.path):
            raise FolderError(f"{folder / each.path}/{each.fault}; correct it")
    whole = _whole(repository, found, wanted) if form in ("", REPOSITORY) else ""
    if whole:
        model = Model(whole, ENSEMBLE, (ENSEMBLE,))
    else:
        inside = repository.members | repository.called
        others = [each for each in found if each.path not in inside] if not wanted else found
        model = _only_model(folder, others or found, wanted, form, modules)
    tensorflow = SOURCE_FORMATS[model.format].image == CONVERTER_TENSORFLOW
    dataloaders, metrics = (
        tuple(entrypoints(modules, "get_dataloader_fn")),
        tuple(entrypoints(modules, "MetricsCalculator")),
    )
    name = folder.resolve().name if folder.is_dir() else folder.stem
    codes = [each.path for each in (*dataloaders[:1], *metrics[:1])]
    is_needed = needs_packages(modules, codes) if whole else _runs_code(model, codes)
    suffixes = TENSORFLOW_CHECKPOINTS if tensorflow else CHECKPOINTS
    return ModelFolder(
        name=PurePosixPath(whole).name if whole else name,
        model=model,
        dataloaders=dataloaders,
        metrics=metrics,
        checkpoints=tuple(_checkpoints(folder, suffixes)),
        suffixes=suffixes,
        requirements=REQUIREMENTS if is_needed and (folder / REQUIREMENTS).is_file() else "",
        pipeline=pipeline(repository, whole) if whole else None,
        steps=() if whole else _steps(modules),
        words=_words(modules.values()),
        metric_words=_metric_words(modules, metrics),
    )


def _runs_code(model: Model, codes: list[str]) -> bool:
    return bool(codes or not SOURCE_FORMATS[model.format].is_file)


def _whole(repository: files.Repository, found: list[Model], path: str) -> str:
    """Return the path of the ensemble, or of the Python model, that becomes an object with all its models.

    Empty: ``path`` names another model, or nothing tells which one is meant.
    """
    if path:
        named = repository.models.get(path)
        return path if named is not None and named.backend in (files.ENSEMBLE, files.PYTHON) else ""
    if any(not SOURCE_FORMATS[each].is_file for each in {model.format for model in found} if each):
        return ""
    if len(repository.ensembles) == 1:
        return repository.ensembles[0]
    others = [each for each in found if each.path not in repository.called]
    return repository.steps[0] if len(repository.steps) == len(others) == 1 and not repository.ensembles else ""


def _words(modules: Iterable[Module]) -> frozenset[str]:
    return frozenset().union(*(each.words for each in modules))


def _metric_words(modules: Modules, metrics: Iterable[Entrypoint]) -> frozenset[str]:
    return _words(modules[each.path] for each in islice(metrics, 1))


def _steps(modules: Modules) -> tuple[str, ...]:
    return tuple(each.path for each in entrypoints(modules, CLASS))


def _only_model(folder: Path, models_of_folder: list[Model], path: str, form: str, modules: Modules) -> Model:
    if not models_of_folder and (steps := _steps(modules)):
        raise FolderError(
            f"{folder} contains no model but Python steps ({', '.join(steps[:MOST_STEPS])}), and nothing that tells"
            " their inputs and outputs; put each into a folder of a Triton repository, such as NAME/1/model.py with"
            " NAME/config.pbtxt, or write spec.models with format triton-python, and spec.ensemble"
            " (docs/python-steps.md)"
        )
    if not models_of_folder:
        raise _no_model(folder)
    matches = [each for each in models_of_folder if path in ("", each.path) and (not form or form in each.possible)]
    listing = ", ".join(map(str, models_of_folder))
    if not matches:
        description = " ".join([*([path] if path else []), *([f"of format {form}"] if form else [])])
        raise FolderError(f"{folder} contains no model {description}; it contains {listing}")
    if len(matches) > 1:
        found = f"{folder} contains several models: {', '.join(map(str, matches))}; choose one: --model PATH"
        raise FolderError(found + several_graphs.advice(folder, [each.path for each in matches]))
    model = replace(matches[0], format=form or matches[0].format)
    _check_content(folder / model.path if folder.is_dir() else folder, model)
    if not model.format:
        choices = " or ".join(f"--format {each}" for each in model.possible)
        raise FolderError(
            f"{model.path} imports both PyTorch and TensorFlow or neither, so its format is unknown;"
            f" choose {choices} (embedding tables are part of an ensemble: docs/ensembles.md)"
        )
    return model


def _no_model(folder: Path) -> FolderError:
    """Return the error for a folder, or a file, in which nothing is a model: what it has, and what to do."""
    kind = kind_of(folder)
    if kind is not None and not kind.is_weights:
        return FolderError(f"{folder} is {refusal(folder, kind)}")
    if kind is None and folder.is_dir() and (only := _only_known(folder)) is not None:
        return FolderError(f"{folder} contains no model; {only.name} is {refusal(only, kind_of(only))}")
    there = kind.words if kind else ", ".join(described(folder)) if folder.is_dir() else "nothing that is known"
    kinds = (
        "a Python file that defines get_model, a SavedModel's directory, an ONNX graph, a TorchScript file, a file of"
        " XGBoost, LightGBM or skops, or a folder with the config.pbtxt of a Triton repository"
    )
    return FolderError(
        f"{folder} contains no model; it has: {there}. A model is {kinds} (docs/files.md). A checkpoint alone is"
        " not enough: get_model builds the model that it belongs to (docs/user-files.md)"
    )


def _only_known(folder: Path) -> Path | None:
    """Return the only file that is a model of a kind that cannot be served; None: there are none, or several."""
    files = [path for path, _ in paths_below(folder) if path.is_file()]
    kinds = {path: kind_of(path) for path in files}
    found = [path for path, kind in kinds.items() if kind is not None and kind.advice and kind not in NO_MODELS]
    return found[0] if len(found) == 1 else None


def _check_content(path: Path, model: Model) -> None:
    """Raise FolderError for a file whose content shows that it is none of its format, before it is pushed."""
    kind = kind_of(path) if path.is_file() and model.format in SHOWN else None
    if kind is not None and not kind.format:
        raise FolderError(f"{path} is {refusal(path, kind)}")


def _checkpoints(folder: Path, suffixes: tuple[str, ...]) -> list[str]:
    """Return the checkpoints: the safest kind first, then the largest."""
    files = [
        (suffixes.index(suffix), -path.stat().st_size, name)
        for path, name in paths_below(folder)
        for suffix in suffixes
        if path.is_file() and path.name.endswith(suffix)
    ]
    return [str(name) for *_, name in sorted(files)]
