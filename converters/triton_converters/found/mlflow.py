"""The folder of an MLflow model: the file of the model that its MLmodel names."""

import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import RepositoryModel
from triton_converters.contract.uris import SEGMENT
from triton_converters.found.formats import MOST_FILES, models_below, refusal
from triton_converters.found.kinds import kind_of

LONGEST = 2**20
"""Bytes of an MLmodel that are read; a signature of many columns makes one long."""
_NAMED = re.compile(rf"    (?:data|model_data|saved_model_dir|pickled_model): (['\"]?)((?:{SEGMENT}/)*{SEGMENT})\1/? *")
"""The line of a flavor that names the model's file or folder, as MLflow writes YAML."""


def model_file(source: Path, path: str) -> tuple[str, str]:
    """Return the path below the source of the model's file or folder that an MLmodel names, and its format.

    ``path``: of the MLmodel, below the source. Raises StageError(FormatNotFound) unless it names one model that is
    served; OSError.
    """
    named = [place for each in _named(source / path) if (place := (source / path).parent / each).exists()]
    models = list(dict.fromkeys(each for place in named for each in _models(place, source)))
    if len(models) == 1 and (kind := kind_of(source / models[0])) is not None:
        return models[0], kind.format
    if models:
        message = f"{path} names several models: set path to one, {' or '.join(models)}"
    else:
        message = f"{path} names no model that can be served{next(_refusals(named, source), '')}"
    raise StageError(Reason.FORMAT_NOT_FOUND, message)


def repository_model(file: str) -> RepositoryModel:
    """Return what an MLmodel says of the model whose file it names: nothing else."""
    return RepositoryModel(
        file=file,
        max_batch_size=None,
        inputs=(),
        outputs=(),
        instances=None,
        dynamic_batching=False,
        preferred_batch_sizes=(),
        max_queue_delay_microseconds=0,
        cuda_graphs=False,
        parameters={},
        overrides="",
    )


def _named(mlmodel: Path) -> Iterator[str]:
    """Yield the paths that the flavors name, relative to the folder. Their parts do not begin with dots."""
    with mlmodel.open("rb") as file:
        lines = file.read(LONGEST).decode(errors="replace").splitlines()
    inside = False
    for line in lines:
        if line[:1] not in ("", " ", "-"):
            inside = line.rstrip() == "flavors:"
        elif inside and (found := _NAMED.fullmatch(line)):
            yield found[2]


def _models(place: Path, source: Path) -> list[str]:
    kind = kind_of(place)
    if kind is not None and kind.format:
        return [str(place.relative_to(source))]
    return models_below(place, source) if place.is_dir() else []


def _refusals(named: list[Path], source: Path) -> Iterator[str]:
    """Yield what the files that are named are, and what to do."""
    for place in named:
        for each in [place, *sorted(islice(place.rglob("*"), MOST_FILES))]:
            if (kind := kind_of(each)) is not None:
                yield f": {each.relative_to(source)} is {refusal(each, kind)}"
