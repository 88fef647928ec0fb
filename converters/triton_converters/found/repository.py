"""A model's folder of a Triton model repository: its config.pbtxt, its version, and the model's file."""

from collections.abc import Collection
from pathlib import Path

from triton_converters.contract.failure import StageError
from triton_converters.contract.formats import FORMATS, SHOWN
from triton_converters.contract.model_repository import CONFIG, PYTHON_BACKEND, VERSION
from triton_converters.contract.reasons import Reason
from triton_converters.contract.text import quoted
from triton_converters.found.formats import refusal
from triton_converters.found.kinds import FileKind, kind_of

BACKENDS = {FORMATS[name].backend: FORMATS[name].file for name in sorted(SHOWN.keys() & FORMATS.keys())}
"""The default name of the model's file or directory, by backend."""
DEFAULTS = (*BACKENDS.values(), FORMATS["trt"].file)
"""The names that tell the backend; an engine is refused with a reason of its own."""
NAMED = 10
"""The most files or folders that a message names."""


def is_model(source: Path, path: str) -> bool:
    """Whether ``path`` below the source's directory is a model's folder: it has a config.pbtxt.

    Raises StageError(FormatNotFound) for a folder that holds such folders, or that lacks the config.pbtxt alone.
    """
    folder = source / path
    if not folder.is_dir() or not folder.resolve().is_relative_to(source.resolve()):
        return False
    if (folder / CONFIG).is_file():
        return True
    if kind_of(folder) is FileKind.SAVED_MODEL:
        # A SavedModel may have anything among its assets.
        return False
    if models := sorted(f"{path}/{each.parent.name}" for each in folder.glob(f"*/{CONFIG}")):
        message = f"{path} is a model repository: set path to the folder of one model, {', '.join(models[:NAMED])}"
        raise StageError(Reason.FORMAT_NOT_FOUND, message)
    if versions := _versions(folder):
        files = sorted(each.name for each in (folder / str(versions[-1])).iterdir())[:NAMED]
        message = f"{path} has no {CONFIG}: add it, or set path to the model's file, {path}/{versions[-1]}/{files[0]}"
        raise StageError(Reason.FORMAT_NOT_FOUND, message)
    return False


def model_file(source: Path, path: str, backend: str, name: str, allowed: Collection[int]) -> tuple[str, str]:
    """Return the path below the source of the file of the newest version, and its format.

    ``backend``: the one that config.pbtxt names; empty: none, so the file's name tells, as it tells Triton. ``name``:
    the file's name that it sets; empty: the backend's default. ``allowed``: the versions that may be served; empty:
    all. Raises StageError: ModelConfigRefused (no such version or file, or a file of another kind).
    """
    place = _place(source, path, backend, name, allowed)
    # A graph with weights in other files may come as a folder that bears its name.
    if place.is_dir() and (place / place.name).is_file():
        place /= place.name
    kind = kind_of(place)
    if kind is None or not kind.format:
        raise not_taken(path, f"{place.relative_to(source)} is {refusal(place, kind)}")
    form = kind.format
    if backend and FORMATS[form].backend != backend:
        raise not_taken(path, f"{place.relative_to(source)} is {kind.words}, but the backend is {backend}: correct one")
    return str(place.relative_to(source)), form


def _place(source: Path, path: str, backend: str, name: str, allowed: Collection[int]) -> Path:
    """Return the model's file or directory in the newest version."""
    names = [name] if name else [BACKENDS[backend]] if backend else DEFAULTS
    versions = [each for each in _versions(source / path) if not allowed or each in allowed]
    if not versions:
        wanted = f" of {', '.join(map(str, sorted(allowed)[:NAMED]))}" if allowed else ""
        raise not_taken(path, f"the folder has no version{wanted}: add a folder such as {path}/1 with the model's file")
    folder = source / path / str(versions[-1])
    place = next((folder / each for each in names if (folder / each).exists()), None)
    if place is None:
        there = ", ".join(map(quoted, sorted(each.name for each in folder.iterdir())[:NAMED]))
        message = f"version {versions[-1]} has no {' or '.join(names)}; it has: {there}"
        raise not_taken(
            path, f"{message}; {PYTHON_BACKEND}" if (folder / "model.py").exists() and not name else message
        )
    return place


def not_taken(path: str, why: str) -> StageError:
    """Return the error for a model's folder that is not taken."""
    return StageError(Reason.MODEL_CONFIG_REFUSED, f"{path}/{CONFIG}: {why}")


def _versions(folder: Path) -> list[int]:
    """Return the versions, the newest last."""
    return sorted(int(each.name) for each in folder.iterdir() if VERSION.fullmatch(each.name) and each.is_dir())
