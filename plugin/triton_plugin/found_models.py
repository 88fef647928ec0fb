"""Finds the models of a folder and their source formats without running any of its code."""

import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from triton_converters.contract.formats import ENSEMBLE, HPS, REPOSITORY, SOURCES
from triton_converters.contract.model_repository import CONFIG
from triton_plugin.python_files import Entrypoint, FolderError, Modules, below, defined, imports, is_hidden, names

CODE = tuple(name for name, source in SOURCES.items() if not source.is_file and name not in (HPS, ENSEMBLE))
"""Formats whose entrypoint is a Python file. Tables and ensembles take more than one folder."""
FORMATS = (*CODE, *(name for name, source in SOURCES.items() if source.is_file))
TORCH = {"torch", "torchvision", "torchaudio", "timm", "diffusers", "sentence_transformers"}
TENSORFLOW = {"tensorflow", "keras", "tf_keras"}
TRANSFORMERS = "transformers"
"""The package that has models of both; the names of those of TensorFlow begin with TF."""
RECEIVER = "get_serving_input_receiver_fn"
TORCHSCRIPT_SUFFIXES = (".pt", ".pth", ".ts", ".torchscript")
SAVED_MODEL = "saved_model.pb"
STAGE_ARGUMENTS = frozenset({"batch_size", "precision", "output_format"})
"""Arguments that the operator passes to a function that asks for them."""


@dataclass(frozen=True)
class Model:
    """A model of the folder."""

    path: str
    """Path of the file or directory below the folder."""
    format: str
    """A key of ``formats.SOURCES``; empty: a Python file that does not show it."""
    possible: tuple[str, ...]
    """Formats that it may have; the user can choose one."""
    asks: tuple[str, ...] = ()
    """Arguments of a Python file that only the user knows."""
    declares: bool = False
    """Whether its file has an update_argparser, as in Entrypoint."""

    def __str__(self) -> str:
        """Path and format."""
        return f"{self.path} ({self.format or ' or '.join(self.possible)})"


def models(folder: Path, modules: Modules) -> list[Model]:
    """Return all models of a folder. Raises FolderError if the folder itself is a SavedModel."""
    found = [_of_code(modules, each) for each in defined(modules, "get_model")]
    return [*found, *_files(folder)]


def asked_of(entrypoint: Entrypoint) -> tuple[str, ...]:
    """Return the arguments that the spec must give."""
    return tuple(each for each in entrypoint.required if each not in STAGE_ARGUMENTS)


def _of_code(modules: Modules, entrypoint: Entrypoint) -> Model:
    module, asks = modules[entrypoint.path], asked_of(entrypoint)
    packages = imports(modules, entrypoint.path)
    if TRANSFORMERS in packages and not packages & (TORCH | TENSORFLOW):
        packages |= TENSORFLOW if any(each.startswith("TF") for each in names(module)) else TORCH
    receiver = next(iter(defined({entrypoint.path: module}, RECEIVER)), None)
    if receiver is not None:
        # It is not offered a batch size: that of what is served varies.
        asks += tuple(each for each in receiver.required if each not in {*asks, "precision", "output_format"})
    told = ""
    if receiver is not None or (packages & TENSORFLOW and {"estimator", "Estimator"} & names(module)):
        told = "tf-estimator"
    elif bool(packages & TORCH) != bool(packages & TENSORFLOW):
        told = "pyt" if packages & TORCH else "tf-keras"
    return Model(entrypoint.path, told, CODE, asks, entrypoint.declares)


def _files(folder: Path) -> Iterator[Model]:
    files = [(path, name) for path, name in below(folder) if not is_hidden(name) and path.is_file()]
    served = {name.parent for _, name in files if name.name == CONFIG}
    for path, name in files:
        if name.name == CONFIG:
            if len(name.parts) == 1:
                message = f"{folder} is itself a model of a Triton repository, but spec.models[].path names a folder"
                raise FolderError(f"{message} below the source; pass the folder that contains it")
            yield Model(str(name.parent), REPOSITORY, (REPOSITORY,))
        elif served & set(name.parents):
            # It belongs to the model of the repository.
            continue
        elif path.name == SAVED_MODEL:
            if len(name.parts) == 1:
                message = f"{folder} is itself a SavedModel, but spec.models[].path names a directory below the source"
                raise FolderError(f"{message}; move it into another folder, next to a dataloader, and pass that folder")
            yield Model(str(name.parent), "tf-savedmodel", ("tf-savedmodel",))
        elif path.suffix == ".onnx":
            yield Model(str(name), "onnx", ("onnx",))
        elif path.suffix in TORCHSCRIPT_SUFFIXES and is_torchscript(path):
            # The file does not say which of the two made it, and the loader does not need to know.
            yield Model(str(name), "ts-script", ("ts-script", "ts-trace"))


def is_torchscript(path: Path) -> bool:
    """Whether a file contains code as well as weights; torch.save writes such an archive without code."""
    try:
        with zipfile.ZipFile(path) as archive:
            entries = [name.partition("/")[2] for name in archive.namelist()]
    except (zipfile.BadZipFile, OSError):
        return False
    return "constants.pkl" in entries and any(name.startswith("code/") for name in entries)
