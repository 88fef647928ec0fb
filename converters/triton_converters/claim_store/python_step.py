"""The files of a Python step as a server loads them: our program as ``model.py``, the user's folder, its packages."""

import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from triton_converters.claim_store.publish import link_or_copy, write_file
from triton_converters.contract import layout
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.python_backend import user_step

MODEL = "model.py"
"""The file that Triton's Python backend loads."""
HOME = Path(user_step.__file__).parent
PROGRAMS = {
    MODEL: HOME / "model.py",
    "guard.py": HOME / "guard.py",
    "_triton_step.py": HOME / "user_step.py",
}
"""What of ours a server runs, by the name that it has there."""
SERVER_PYTHON = (3, 10)
"""The oldest Python of a server's image in which these and ``tensorrt_check`` run: NVIDIA's images 24.01 to 24.10 have
it."""
MOST_FILES = 10_000
"""Files of a step's folder: a tokenizer's are some ten, and a server digests them before it starts."""
BLOBS = "blobs"
"""Where the libraries of the Hugging Face hub keep the content of a model's files, which its snapshots link to."""
MOST_PACKAGED = 50_000
"""Files of a step's packages: PyTorch has 13,000, without its libraries for GPUs, and transformers 5,000."""


def write(source: Path, file: str, directory: Path, packages: Path | None = None) -> tuple[str, ...]:
    """Write a version's directory, and return the paths of its files below it, ``model.py`` first.

    ``source``: directory of the published source, which holds regular files alone. ``file``: path below it of the file
    with TritonPythonModel; what lies in its folder is linked, at the same path, and so are the files next to
    a folder whose name is a number. ``packages``: directory of the published packages, which are linked too; None: the
    step has none. Raises StageError: EntrypointInvalid if the file is missing or not published; SourceInvalid
    if the folder or the packages hold too many files; OSError.
    """
    if not (source / file).is_file():
        raise StageError(Reason.ENTRYPOINT_INVALID, f"the source has no file {file!r}")
    folder = (source / file).parent
    # The folder of a version: what lies next to it, such as labels, is in args["model_repository"], as in a repository.
    near = folder.parent.glob("*") if folder.name.isdigit() and folder != source else ()
    found = _regular((*folder.rglob("*"), *near), source)
    taken = [path for path in found if not _is_doubled(source / path, folder / user_step.HUB)]
    if Path(file) not in taken:
        message = f"{file} is a link, or in a folder {layout.UNPUBLISHED}, and so not published: move the file"
        raise StageError(Reason.ENTRYPOINT_INVALID, message)
    if len(taken) > MOST_FILES:
        message = f"the folder of {file} has {len(taken)} files, but a Python step at most {MOST_FILES}"
        raise StageError(Reason.SOURCE_INVALID, f"{message}: move the file into a folder with what it needs")
    packaged = _regular(packages.rglob("*"), packages) if packages else []
    if len(packaged) > MOST_PACKAGED:
        message = f"the packages of {file} have {len(packaged)} files, but a Python step's at most {MOST_PACKAGED}"
        raise StageError(Reason.SOURCE_INVALID, f"{message}: require fewer packages, or smaller ones")
    for name, program in PROGRAMS.items():
        shutil.copyfile(program, directory / name)
    linked = {f"{user_step.SOURCE}/{path.as_posix()}": source / path for path in taken}
    if packages:
        linked |= {f"{user_step.PACKAGES}/{path.as_posix()}": packages / path for path in packaged}
    for name, path in linked.items():
        target = directory / name
        target.parent.mkdir(parents=True, exist_ok=True)
        link_or_copy(path, target)
    return (*PROGRAMS, *linked)


def _is_doubled(path: Path, hub: Path) -> bool:
    """Whether a file is one of those to which the snapshots of a hub's folder linked: published, these are files.

    They are in a folder of the model, or of all models.
    """
    return path.is_relative_to(hub) and BLOBS in path.relative_to(hub).parts[:2]


def _regular(paths: Iterable[Path], root: Path) -> list[Path]:
    """Return the regular files that are published, relative to ``root``, sorted."""
    found = (path.relative_to(root) for path in sorted(paths) if path.is_file() and not path.is_symlink())
    return [path for path in found if layout.UNPUBLISHED not in path.parts]


def write_settings(
    directory: Path,
    file: str,
    threads: int,
    declared: Mapping[str, Sequence[int]] = MappingProxyType({}),
    completes: bool = False,
) -> None:
    """Write what the program reads first, next to it.

    ``threads``: those of an instance's libraries; 0: no bound. ``declared``: the dimensions that the spec declares of
    the outputs that are served with others, by their names; the step's code is told these. ``completes``: the file
    declares its tensors itself, and its code is told those.
    """
    settings = {"file": file, "threads": threads} | ({user_step.DECLARED: dict(declared)} if declared else {})
    settings |= {user_step.COMPLETES: True} if completes else {}
    write_file(directory / user_step.STEP, json.dumps(settings).encode())
