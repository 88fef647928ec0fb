"""Finds the models of a folder and their source formats without running any of its code."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from triton_converters.contract.formats import REPOSITORY, SHOWN, SOURCE_FORMATS
from triton_converters.contract.model_repository import CONFIG
from triton_converters.found.formats import MOST_FILES
from triton_converters.found.kinds import kind_of
from triton_plugin.argument_groups import FORMATS
from triton_plugin.errors import FolderError
from triton_plugin.reading.python_files import (
    Entrypoint,
    Modules,
    entrypoints,
    imported_packages,
    is_hidden,
    paths_below,
    used_names,
)

CODE = tuple(name for name in FORMATS if not SOURCE_FORMATS[name].is_file)
"""Formats whose entrypoint is a Python file."""
TORCH = {"torch", "torchvision", "torchaudio", "timm", "diffusers", "sentence_transformers"}
TENSORFLOW = {"tensorflow", "keras", "tf_keras"}
TRANSFORMERS = "transformers"
"""The package that has models of both; the names of those of TensorFlow begin with TF."""
RECEIVER = "get_serving_input_receiver_fn"
MARKERS = {source.marker: name for name, source in SOURCE_FORMATS.items() if source.marker}
"""The format of a directory, by the name of the file that makes it such a model."""
SUFFIXES = {suffix: name for name in SHOWN for suffix in SOURCE_FORMATS[name].suffixes}
"""The format of a file, by how its name ends."""
STAGE_ARGUMENTS = frozenset({"batch_size", "precision", "output_format"})
"""Arguments that the operator passes to a function that asks for them."""


@dataclass(frozen=True)
class Model:
    """A model of the folder."""

    path: str
    """Path of the file or directory below the folder."""
    format: str
    """A key of ``formats.SOURCE_FORMATS``; empty: a Python file that does not show it."""
    possible: tuple[str, ...]
    """Formats that the model may have; the user can choose one."""
    arguments: tuple[str, ...] = ()
    """Arguments of a Python file that only the user knows."""
    has_argparser: bool = False
    """Whether the model's file has an update_argparser, as in Entrypoint."""

    def __str__(self) -> str:
        """Path and format."""
        return f"{self.path} ({self.format or ' or '.join(self.possible)})"


def models(folder: Path, modules: Modules) -> list[Model]:
    """Return all models of a folder; files with other names than such models have count only if there is no other.

    Raises FolderError if the folder is itself a model.
    """
    code_models = [_of_code(modules, each) for each in entrypoints(modules, "get_model")]
    return [*code_models, *_files(folder)] or list(_of_any_name(folder))


def required_arguments(entrypoint: Entrypoint) -> tuple[str, ...]:
    """Return the arguments that the spec must give."""
    return tuple(each for each in entrypoint.required if each not in STAGE_ARGUMENTS)


def _of_code(modules: Modules, entrypoint: Entrypoint) -> Model:
    module, arguments = modules[entrypoint.path], required_arguments(entrypoint)
    packages = imported_packages(modules, entrypoint.path)
    if TRANSFORMERS in packages and not packages & (TORCH | TENSORFLOW):
        packages |= TENSORFLOW if any(each.startswith("TF") for each in used_names(module)) else TORCH
    receiver = next(iter(entrypoints({entrypoint.path: module}, RECEIVER)), None)
    if receiver is not None:
        # It is not offered a batch size: that of what is served varies.
        arguments += tuple(each for each in receiver.required if each not in {*arguments, "precision", "output_format"})
    form = ""
    if receiver is not None or (packages & TENSORFLOW and {"estimator", "Estimator"} & used_names(module)):
        form = "tf-estimator"
    elif bool(packages & TORCH) != bool(packages & TENSORFLOW):
        form = "pyt" if packages & TORCH else "tf-keras"
    return Model(entrypoint.path, form, CODE, arguments, entrypoint.has_argparser)


def _files(folder: Path) -> Iterator[Model]:
    files = [(path, name) for path, name in paths_below(folder) if not is_hidden(name) and path.is_file()]
    repositories = {name.parent for _, name in files if name.name == CONFIG}
    for path, name in files:
        form = MARKERS.get(name.name) if folder.is_dir() else None
        if form != REPOSITORY and repositories & set(name.parents):
            # It belongs to the model of the repository.
            continue
        if form is not None:
            if len(name.parts) == 1:
                raise FolderError(f"{folder} is itself {SOURCE_FORMATS[form].alone}")
            yield Model(str(name.parent), form, (form,))
        elif path.suffix in SUFFIXES and _is_what_it_is_called(path):
            suffix_format, suffixes = SUFFIXES[path.suffix], SOURCE_FORMATS[SUFFIXES[path.suffix]].suffixes
            others = (
                each for each, source in SOURCE_FORMATS.items() if source.suffixes == suffixes and each != suffix_format
            )
            yield Model(str(name), suffix_format, (suffix_format, *others))
        elif path == folder and (kind := kind_of(path)) and kind.format:
            yield Model(str(name), kind.format, (kind.format,))


def _of_any_name(folder: Path) -> Iterator[Model]:
    """Yield the files that are models by their content, as the source Job finds them."""
    for path, name in islice(paths_below(folder), MOST_FILES):
        if not is_hidden(name) and path.is_file() and (kind := kind_of(path)) and kind.format:
            yield Model(str(name), kind.format, (kind.format,))


def _is_what_it_is_called(path: Path) -> bool:
    """Whether a file's content is that of its name's format, or shows none where no other file has such a name."""
    kind, form = kind_of(path), SUFFIXES[path.suffix]
    return kind.format == form if kind else form == "onnx"
