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
CLAIM = "models"
"""The claim that the folder is pushed to."""


def valid_yaml(folder: ModelFolder, options: ObjectOptions) -> str:
    """Return the YAML of a first object. Raises FolderError if it would be refused."""
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
            f"{file} exists; pass --force to write it anew. To keep it: push the folder, set spec.source.sha256 in the"
            " file to the new digest, and apply it"
        )
    file.write_text(complete_yaml(folder, replace(options, sha256=push())), encoding="utf-8")
    say(f"wrote {file}")
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
