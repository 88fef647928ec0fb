"""What Python steps load from the Hugging Face hub: the folders next to their files, as one folder for the process."""

import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from triton_converters.contract.conversion_requests import ModelCode
from triton_converters.contract.failure import StageError
from triton_converters.contract.formats import TRITON_PYTHON
from triton_converters.contract.reasons import Reason
from triton_converters.contract.text import quoted
from triton_converters.python_backend.user_step import HUB, HUB_PLACES, OFFLINE, read_hub

REFS = "refs"
"""Folder of a model with the commit of each branch."""


@contextmanager
def offered(source: Path, models: Iterable[ModelCode]) -> Iterator[None]:
    """Let the hub's libraries read what the Python steps among the models have of it; without a step, change nothing.

    A server sets the same for each step. Libraries look for it once, as they are imported, so here it is set before
    anything is loaded. ``models``: an ensemble counts as its models. Raises StageError(ConversionUnsupported) if
    two steps have a model of the hub at different commits.
    """
    steps = [each for model in models for each in model.parts if each.format == TRITON_PYTHON]
    folders = sorted({(source / each.entrypoint.path).parent / HUB for each in steps})
    folders = [each for each in folders if each.is_dir()]
    before = {name: os.environ.get(name) for name in (*HUB_PLACES, *OFFLINE)}
    with tempfile.TemporaryDirectory() as place:
        try:
            if steps:
                read_hub(_joined(folders, Path(place), source))
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value


def _joined(folders: Sequence[Path], place: Path, source: Path) -> Path:
    """Return one folder with the files of all, made below ``place`` if they are several; none need be there."""
    if len(folders) == 1:
        return folders[0]
    place = place / HUB
    for folder in folders:
        for file in folder.rglob("*"):
            if not file.is_file():
                continue
            name = file.relative_to(folder)
            target = place / name
            if not target.is_symlink():
                target.parent.mkdir(parents=True, exist_ok=True)
                target.symlink_to(file)
            elif name.parts[1:2] == (REFS,) and target.read_bytes() != file.read_bytes():
                where = " and ".join(quoted(str(each.relative_to(source))) for each in (target.readlink(), file))
                message = f"{where} name different commits, but the reference of all steps is one process: keep one"
                raise StageError(Reason.CONVERSION_UNSUPPORTED, message)
    return place
