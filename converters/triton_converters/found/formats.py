"""The format of a model that the spec gives by its path alone."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.contract.text import quoted
from triton_converters.found.kinds import FileKind, kind_of

NAMED_FILES = 10
"""Files that a message lists: enough to see a typing error, few enough to be read."""
MOST_FILES = 1000
"""Files of a folder that are looked at for a model."""


def found_format(source: Path, path: str) -> str:
    """Return the format of ``path``, a file or directory that is below the source's directory.

    Raises StageError: FormatNotFound, SourceInvalid (unreadable).
    """
    place = source / path
    kind = kind_of(place)
    if kind is not None and kind.format:
        return kind.format
    if place.is_dir() and (models := models_below(place, source)):
        message = f"{path} is a folder: set path to the model in it, {' or '.join(models[:NAMED_FILES])}"
        raise StageError(Reason.FORMAT_NOT_FOUND, message)
    if kind is not None and kind.is_weights:
        raise StageError(Reason.FORMAT_NOT_FOUND, f"{path} is {kind.words}: {_model_file(kind, path)}")
    raise StageError(Reason.FORMAT_NOT_FOUND, f"{path} is {refusal(place, kind)}")


def refusal(place: Path, kind: FileKind | None) -> str:
    """Return in words what a file or folder is that cannot be served, and what to do. Raises OSError."""
    if kind is None:
        if place.is_dir():
            return f"a folder without a model: set path to one; it has: {', '.join(described(place)) or 'nothing'}"
        return "no model that can be recognized: correct it, or set spec.models[].format"
    if kind.is_weights:
        return f"{kind.words}: give the model as a TorchScript file or an ONNX graph"
    return f"{kind.words}, which cannot be served: {kind.advice}"


def models_below(folder: Path, source: Path) -> list[str]:
    """Return the models below a folder by their paths below the source, in order; none is looked for in a model.

    Raises OSError.
    """
    found: list[str] = []
    for each in sorted(islice(folder.rglob("*"), MOST_FILES)):
        path = str(each.relative_to(source))
        is_inside = any(path.startswith(f"{other}/") for other in found)
        if not is_inside and (each.is_dir() or each.is_file()) and (kind := kind_of(each)) and kind.format:
            found.append(path)
    return found


def described(folder: Path) -> Iterator[str]:
    """Yield some of a folder's entries, each with what it is. Raises OSError."""
    for each in sorted(folder.iterdir())[:NAMED_FILES]:
        kind = kind_of(each) if each.is_file() else None
        yield f"{quoted(each.name)} ({kind.words})" if kind else quoted(each.name)


def _model_file(kind: FileKind, path: str) -> str:
    """Return in words what is missing, and the shortest Python file that does."""
    load = "safetensors.torch.load_file(checkpoint)" if path.endswith(".safetensors") else "torch.load(checkpoint)"
    build = f"net = Net(); net.load_state_dict({load})"
    if kind is FileKind.HUB_FOLDER:
        build = "net = transformers.AutoModel.from_pretrained(checkpoint)"
    return (
        "add a Python file that builds the model, and set format: pyt, entrypoint: model.py and arguments:"
        f" {{checkpoint: {path}}} instead of path. For example, model.py: def get_model(checkpoint: str): {build};"
        " return net.eval(), {'inputs': ['INPUT__0'], 'outputs': ['OUTPUT__0']}"
    )
