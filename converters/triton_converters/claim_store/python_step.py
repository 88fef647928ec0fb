"""The files of a Python step as a server loads them: our program as ``model.py``, and the folder of the user's file."""

import json
import shutil
from pathlib import Path

from triton_converters.claim_store.publish import link_or_copy, write_file
from triton_converters.contract import layout
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.python_backend import wrapper

MODEL = "model.py"
"""The file that Triton's Python backend loads."""
MOST_FILES = 10_000
"""Files of a step's folder: a tokenizer's are some ten, and a server digests them before it starts."""


def write(source: Path, file: str, directory: Path) -> tuple[str, ...]:
    """Write a version's directory, and return the paths of its files below it, ``model.py`` first.

    ``source``: directory of the published source, which holds regular files alone. ``file``: path below it of the file
    with TritonPythonModel; what lies in its folder is linked, at the same path, and so are the files next to
    a folder whose name is a number. Raises StageError: EntrypointMissing; EntrypointInvalid if it is not published;
    SourceInvalid if the folder holds too many files; OSError.
    """
    if not (source / file).is_file():
        raise StageError(Reason.ENTRYPOINT_MISSING, f"the source has no file {file!r}")
    folder = (source / file).parent
    # The folder of a version: what lies next to it, such as labels, is in args["model_repository"], as in a repository.
    near = folder.parent.glob("*") if folder.name.isdigit() and folder != source else ()
    found = sorted(path for path in (*folder.rglob("*"), *near) if path.is_file() and not path.is_symlink())
    below = [path.relative_to(source) for path in found]
    taken = [path for path in below if layout.UNPUBLISHED not in path.parts]
    if Path(file) not in taken:
        message = f"{file} is a link, or in a folder {layout.UNPUBLISHED}, and so not published: move the file"
        raise StageError(Reason.ENTRYPOINT_INVALID, message)
    if len(taken) > MOST_FILES:
        message = f"the folder of {file} has {len(taken)} files, but a Python step at most {MOST_FILES}"
        raise StageError(Reason.SOURCE_INVALID, f"{message}: move the file into a folder with what it needs")
    own = Path(wrapper.__file__)
    shutil.copyfile(own, directory / MODEL)
    shutil.copyfile(own.with_name(wrapper.GUARD), directory / wrapper.GUARD)
    for path in taken:
        target = directory / wrapper.SOURCE / path
        target.parent.mkdir(parents=True, exist_ok=True)
        link_or_copy(source / path, target)
    return (MODEL, wrapper.GUARD, *(f"{wrapper.SOURCE}/{path.as_posix()}" for path in taken))


def write_settings(directory: Path, file: str, threads: int) -> None:
    """Write what the program reads first, next to it. ``threads``: those of an instance's libraries; 0: no bound."""
    write_file(directory / wrapper.STEP, json.dumps({"file": file, "threads": threads}).encode())
