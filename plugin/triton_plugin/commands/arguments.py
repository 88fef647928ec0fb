"""What the arguments that several commands share stand for."""

import argparse
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from triton_plugin.drafting.first_object import ObjectOptions
from triton_plugin.drafting.model_folder import ModelFolder, read
from triton_plugin.drafting.triton_repository.notes import RequirementsFile
from triton_plugin.reading.cluster import Cluster, is_file, read_file
from triton_plugin.reading.subject import Subject
from triton_plugin.terminal import say


def subject(options: argparse.Namespace, name: str) -> Subject:
    """Return the object of that name, or of that file. Raises SubjectError."""
    return read_file(name) if is_file(name) else cluster(options).subject(name)


def cluster(options: argparse.Namespace) -> Cluster:
    """Return where the objects are. Raises SubjectError if no cluster is configured."""
    return Cluster(options.context, options.namespace, options.kubeconfig)


def after_a_patch(subject: Subject) -> str:
    """Return what to do once a command has changed an object's spec."""
    return (
        "If a GitOps tool applies this object, make the same change in Git: the tool may take this one back. To follow"
        f" it: {subject.command('watch', subject.name)}"
    )


def moment() -> str:
    """Return the present time, by which one request to the operator differs from the next (RFC 3339)."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def model_folder(options: argparse.Namespace, path: Path) -> ModelFolder:
    """Return what the folder, or the file, shows by what was typed, once what that says is written.

    Raises FolderError, and OSError if a file cannot be written; none that exists is changed.
    """
    folder = read(path, options.model, options.format)
    if not options.write_requirements or folder.pipeline is None:
        return folder
    write(path, folder.pipeline.requirements_files)
    for made in folder.pipeline.requirements_files:
        say(
            f"wrote {path / made.path}: {', '.join(made.requirements) or 'nothing but what is to be filled in'}",
            sys.stderr,
        )
        if unpinned := [each for each in made.requirements if "==" not in each]:
            say(
                f"  Not pinned: {', '.join(unpinned)}. The newest that fits is installed; to pin one, write ==.",
                sys.stderr,
            )
    return read(path, options.model, options.format)


def write(folder: Path, missing: Iterable[RequirementsFile]) -> None:
    """Write the requirements files that a folder lacks. Raises OSError, such as FileExistsError for a link."""
    for made in missing:
        with (folder / made.path).open("x", encoding="utf-8") as file:
            file.write(made.text)


def object_options(options: argparse.Namespace) -> ObjectOptions:
    """Return what the options say of an object."""
    return ObjectOptions(
        dataset=options.dataset,
        gpu=options.gpu,
        max_batch_size=options.max_batch_size,
        p99_latency=options.p99_latency,
        thresholds=tuple(options.threshold),
    )
