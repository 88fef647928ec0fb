"""`kubectl triton run`: from a folder or a URI to an applied object, which is then watched."""

import json
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from triton_converters.contract.text import quoted
from triton_converters.contract.uris import SEGMENT
from triton_operator.names import KIND
from triton_plugin.drafting.first_object import ObjectOptions, first_object
from triton_plugin.drafting.marks import TODO, marks
from triton_plugin.drafting.model_folder import ModelFolder
from triton_plugin.drafting.triton_repository.pipeline import Pipeline
from triton_plugin.drafting.validation.files import faults_in_words
from triton_plugin.drafting.validation.validate import Loader, check, deployments
from triton_plugin.errors import FolderError, SubjectError
from triton_plugin.reading import bounded_yaml

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
    if missing := _missing(text):
        raise FolderError(
            f"the object cannot run before this is filled in:\n  {missing}\nAdd it to the folder or to the options;"
            " or use push and init, edit what init writes, and apply it (docs/tutorial.md)"
        )
    return text


def _missing(text: str) -> str:
    """Return the lines of an object that have to be filled in."""
    return "\n  ".join(each.text for each in marks(text) if each.is_needed)


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
    _check_no_link(file)
    if file.exists():
        if not overwrite:
            raise FolderError(
                f"{file} exists; pass --update to serve the folder's present files by it, or --force to write it anew"
            )
        _object(file, options.name)
    file.write_text(complete_yaml(folder, replace(options, sha256=push())), encoding="utf-8")
    say(f"wrote {file}")
    say(apply(file))


def update(
    options: ObjectOptions,
    file: Path,
    push: Callable[[], str],
    apply: Callable[[Path], str],
    say: Callable[[str], None],
    pipeline: Pipeline | None = None,
) -> None:
    """Push the files again, write their digest into the object's file, which otherwise stays, and apply it.

    ``options``: the object's name, and the source that ``push`` pushes to.
    ``pipeline``: what a Triton repository shows; None: the folder is none.

    Raises FolderError before anything is applied: there is no such file, it holds anything else than that object, which
    the cluster would get too, it keeps an earlier revision, its source has not one digest, or is another, it has to be
    filled in, it is invalid, or it names no requirements for what a step imports.
    """
    _check_no_link(file)
    if not file.exists():
        raise FolderError(
            f"{file}, by which --update serves, does not exist; type it without --update to write it, and with --force"
            " if the cluster has the object"
        )
    text, body = _object(file, options.name)
    given = body.get("spec")
    spec = given if isinstance(given, dict) else {}
    source, rollout = spec.get("source"), spec.get("rollout")
    if revision := isinstance(rollout, dict) and rollout.get("revision"):
        raise FolderError(
            f"{file} keeps revision {revision} by spec.rollout.revision, so what --update pushes would not be served;"
            " remove that line, and type the command with --update --to-latest: the revision serves until what is"
            " pushed has passed"
        )
    digests = [each[0].removeprefix(each[1]) for each in DIGEST.finditer(text)]
    if not isinstance(source, dict) or digests != [source.get("sha256")]:
        raise FolderError(
            f"{file} has not one sha256, that of spec.source, as `kubectl triton run` has written it; push the folder"
            " with `kubectl triton push`, write the digest into the file, and apply it"
        )
    if source.get("uri") != options.source:
        raise FolderError(
            f"spec.source.uri of {file} is not {options.source}, to which --update pushes; push the folder with"
            " `kubectl triton push`, write the digest into the file, and apply it"
        )
    if missing := _missing(text):
        raise FolderError(f"{file} cannot run before this is filled in:\n  {missing}\nNothing was pushed")
    if faults := list(faults_in_words(body)):
        lines = "\n  ".join(faults)
        raise FolderError(f"{file} is invalid:\n  {lines}\nNothing was pushed")
    if lacking := list(_uncovered(pipeline, spec)) if pipeline is not None else ():
        lines = "\n  ".join(lacking)
        raise FolderError(
            f"{file} cannot run with these files before this is filled in:\n  {lines}\nNothing was pushed. In"
            f" {file}, the model of such a step also needs `requirements`: the path of the file that lists its packages"
        )
    digest = push()
    file.write_text(DIGEST.sub(rf"\g<1>{digest}", text), encoding="utf-8")
    say(f"wrote the new digest into {file}")
    say(apply(file))


def _uncovered(pipeline: Pipeline, spec: Mapping[str, Any]) -> Iterator[str]:
    """Yield what steps of the repository import and the object's models of the same code name no requirements for."""
    models = spec.get("models")
    for step in pipeline.models:
        path = step.get("requirements")
        bare = [
            each
            for each in (models if isinstance(models, list) else ())
            if isinstance(each, dict)
            and each.get("entrypoint") == step.get("entrypoint")
            and not each.get("requirements")
        ]
        if path and bare:
            found = [f"{TODO}: {name}: {words}." for name, words in pipeline.missing if quoted(path) in words]
            yield from found or [f"{TODO}: {step['name']}: write `requirements: {json.dumps(path)}` into its model."]


def _check_no_link(file: Path) -> None:
    """Raise FolderError for a link: the folder above a downloaded one may be downloaded too, and lead anywhere."""
    if file.is_symlink():
        raise FolderError(f"{file} is a link, through which nothing is written; remove it, or choose another --name")


def _object(file: Path, name: str) -> tuple[str, dict[str, object]]:
    """Return the text of an object's file, and the object. Raises FolderError for a file that holds anything else."""
    try:
        if not file.is_file():
            raise ValueError("a pipe, which may never end")
        with file.open(encoding="utf-8") as opened:
            text = bounded_yaml.text_of(opened)
        (body,) = [each for each in bounded_yaml.documents(text, Loader) if each is not None]
    except (OSError, ValueError, yaml.YAMLError):
        body = None
    metadata = body.get("metadata") if isinstance(body, dict) and body.get("kind") == KIND else None
    if not isinstance(metadata, dict) or metadata.get("name") != name:
        raise FolderError(
            f"{file} is no file that holds the TritonDeployment {name} and nothing else; move it away, or choose"
            " another --name"
        )
    return text, body


def replacement(wanted: Mapping[str, Any], there: Mapping[str, Any]) -> dict[str, Any]:
    """Return the merge patch that makes a spec the wanted one: kubectl apply keeps what another tool has set."""
    change: dict[str, Any] = dict.fromkeys(there.keys() - wanted.keys())
    for name, value in wanted.items():
        known = there.get(name)
        change[name] = replacement(value, known) if isinstance(value, dict) and isinstance(known, dict) else value
    return change


def following(wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Return the merge patch that makes all changes of a file's spec, and names no earlier revision any more.

    It is one write: what the rollback left would serve as soon as the name is gone and the source is still the old one.
    """
    return {**wanted, "rollout": {**(wanted.get("rollout") or {}), "revision": None}}


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
