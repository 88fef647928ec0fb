"""`kubectl triton run`: from a folder or a URI to an applied object, which is then watched."""

import re
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from triton_converters.contract.uris import SEGMENT
from triton_plugin.errors import FolderError, SubjectError
from triton_plugin.first_object import ObjectOptions, first_object
from triton_plugin.marks import marks
from triton_plugin.model_folder import ModelFolder
from triton_plugin.validation.validate import check, deployments

PATH = re.compile(rf"({SEGMENT}/)*{SEGMENT}")
"""Matches what spec.models[].path takes; an entrypoint ends with .py, as what is found does."""
DIGEST = re.compile(r"(\bsha256: [\"']?)[0-9a-f]{64}\b")
"""The digest of the source in an object's file."""
CLAIM = "models"
"""The claim that the folder is pushed to."""


def valid_yaml(folder: ModelFolder, options: ObjectOptions) -> str:
    """Return the YAML of a first object. Raises FolderError if it would be refused."""
    if options.thresholds and not folder.metrics:
        raise FolderError(
            "a threshold needs a Python file that defines MetricsCalculator, and the folder has none"
            " (docs/user-files.md); add it, or leave out --threshold"
        )
    found = [*folder.dataloaders[:1], *folder.metrics[:1]]
    models = folder.pipeline.models if folder.pipeline else ()
    of_models = (each[name] for each in models for name in ("path", "entrypoint", "requirements") if name in each)
    for path in (folder.model.path, *of_models, *(each.path for each in found)):
        if not PATH.fullmatch(path):
            message = f"the name {path!r} cannot stand in a TritonDeployment: rename the file, or a folder on its way"
            raise FolderError(f"{message}, with letters of ASCII, digits, '.', '_' and '-', the first no '.' or '-'")
    text = first_object(folder, options)
    (body,) = deployments(text)
    if faults := check(body):
        raise FolderError(f"a TritonDeployment for this folder would be invalid: {'; '.join(map(str, faults))}")
    return text


def complete_yaml(folder: ModelFolder, options: ObjectOptions) -> str:
    """Return the YAML of a first object that runs as it is. Raises FolderError if something has to be filled in."""
    text = valid_yaml(folder, options)
    if missing := [each.text for each in marks(text) if each.is_needed]:
        lines = "\n  ".join(missing)
        raise FolderError(
            f"the object cannot run before this is filled in:\n  {lines}\nAdd it to the folder or to the options;"
            " or use push and init, edit what init writes, and apply it (docs/tutorial.md)"
        )
    return text


def start(
    folder: ModelFolder,
    options: ObjectOptions,
    file: Path,
    push: Callable[[], str],
    apply: Callable[[Path], str],
    say: Callable[[str], None],
    overwrite: bool = False,
) -> None:
    """Push the files, write the object with the digest that ``push`` returns to the file, and apply it.

    ``push`` returns an empty text if the cluster finds the files by itself. Raises FolderError before anything is sent:
    the object would not be complete, or the file exists.
    """
    complete_yaml(folder, options)
    if file.exists() and not overwrite:
        raise FolderError(
            f"{file} exists; pass --update to serve the folder's present files by it, or --force to write it anew"
        )
    file.write_text(complete_yaml(folder, replace(options, sha256=push())), encoding="utf-8")
    say(f"wrote {file}")
    say(apply(file))


def update(file: Path, push: Callable[[], str], apply: Callable[[Path], str], say: Callable[[str], None]) -> None:
    """Push the files again, write their digest into the object's file, which otherwise stays, and apply it.

    Raises FolderError before anything is sent: there is no such file, or it has not one digest.
    """
    text = file.read_text(encoding="utf-8") if file.is_file() else ""
    if len(DIGEST.findall(text)) != 1:
        raise FolderError(
            f"{file} is no object that `kubectl triton run` has written, with one sha256; leave out --update"
        )
    digest = push()
    file.write_text(DIGEST.sub(rf"\g<1>{digest}", text), encoding="utf-8")
    say(f"wrote the new digest into {file}")
    say(apply(file))


def apply(kubectl: Callable[..., Sequence[str]], file: Path) -> str:
    """Apply the file, and return what kubectl said. Raises SubjectError with its words if it failed."""
    try:
        process = subprocess.run(
            kubectl("apply", "--filename", str(file)), capture_output=True, text=True, errors="replace", check=False
        )
    except FileNotFoundError as error:
        raise SubjectError(f"kubectl is not on the PATH; install it, and apply {file}") from error
    if process.returncode:
        raise SubjectError(f"{file} was not applied: {process.stderr.strip()}")
    return process.stdout.strip()
