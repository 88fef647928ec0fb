"""The arguments that several commands share, and what they stand for."""

import argparse
import math
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from shlex import quote

from triton_plugin.first_object import ObjectOptions
from triton_plugin.found_models import FORMATS
from triton_plugin.location import add_location
from triton_plugin.model_folder import ModelFolder, read
from triton_plugin.push.command import Options
from triton_plugin.source import Cluster, is_file, read_file
from triton_plugin.subject import Subject
from triton_plugin.terminal import say
from triton_plugin.triton_repository.packages import WRITE
from triton_plugin.triton_repository.told import Made


def add_name(parser: argparse.ArgumentParser) -> None:
    """Add the one TritonDeployment that a command asks the cluster for."""
    parser.add_argument("name", metavar="NAME", help="name of the TritonDeployment")
    add_location(parser)


NAME_OR_FILE = "name of a TritonDeployment, or a saved file: a name with a dot or a slash is one"


def add_names_or_files(parser: argparse.ArgumentParser, *metavars: str) -> None:
    """Add TritonDeployments that may also be saved files. ``metavars``: one for each; none: NAME alone."""
    for metavar in metavars or ("NAME",):
        parser.add_argument(metavar.lower(), metavar=metavar, help=NAME_OR_FILE)
    add_location(parser)


def subject(options: argparse.Namespace, name: str) -> Subject:
    """Return the object of that name, or of that file. Raises SubjectError."""
    return read_file(name) if is_file(name) else cluster(options).subject(name)


def cluster(options: argparse.Namespace) -> Cluster:
    """Return where the objects are. Raises SubjectError if no cluster is configured."""
    return Cluster(options.context, options.namespace, options.kubeconfig)


def after_a_patch(name: str) -> str:
    """Return what to do once a command has changed an object's spec."""
    return (
        "If a GitOps tool applies this object, make the same change in Git: the tool may take this one back. To follow"
        f" it: kubectl triton watch {quote(name)}"
    )


def moment() -> str:
    """Return the present time, by which one request to the operator differs from the next (RFC 3339)."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def add_model(parser: argparse.ArgumentParser) -> None:
    """Add what the files of a model do not show."""
    parser.add_argument(
        "--model", default="", metavar="PATH", help="path of the model below the folder, if there are several"
    )
    parser.add_argument(
        "--format", choices=FORMATS, default="", help="format of the model, if its file does not show it"
    )
    parser.add_argument(
        "--dataset", default="", metavar="URI", help="where the cluster finds the data that the dataloader reads"
    )
    parser.add_argument("--gpu", default="", metavar="PRODUCT", help="product of the nodes' GPUs; default: run on CPU")
    parser.add_argument(
        "--max-batch-size", type=int, metavar="N", help="largest batch; 0: the model has no batch dimension"
    )
    parser.add_argument(
        "--p99-latency", default="", metavar="TIME", help="budget of the 99th percentile of latency, such as 20ms"
    )
    parser.add_argument(
        "--threshold",
        action="append",
        default=[],
        type=threshold,
        metavar="METRIC=MIN",
        help="least value of a metric that the served model must reach, such as accuracy=0.9; may be given again",
    )
    parser.add_argument(
        WRITE, action="store_true", help="write the requirements.txt that Python steps of a Triton repository lack"
    )


def model_folder(options: argparse.Namespace, path: Path) -> ModelFolder:
    """Return what the folder, or the file, shows by the options of ``add_model``, once what they say is written.

    Raises FolderError, and OSError if a file cannot be written; none that exists is changed.
    """
    folder = read(path, options.model, options.format)
    if not options.write_requirements or folder.pipeline is None:
        return folder
    write(path, folder.pipeline.made)
    for made in folder.pipeline.made:
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


def write(folder: Path, missing: Iterable[Made]) -> None:
    """Write the requirements files that a folder lacks. Raises OSError, such as FileExistsError for a link."""
    for made in missing:
        with (folder / made.path).open("x", encoding="utf-8") as file:
            file.write(made.text)


def threshold(text: str) -> tuple[str, float]:
    """Return a metric's name and its least value, of METRIC=MIN; raises ArgumentTypeError for anything else."""
    metric, _, value = text.rpartition("=")
    try:
        least = float(value)
    except ValueError:
        least = math.nan
    if not metric or not math.isfinite(least):
        raise argparse.ArgumentTypeError(f"{text!r} is no threshold such as accuracy=0.9")
    return metric, least


def object_options(options: argparse.Namespace) -> ObjectOptions:
    """Return what the options of ``add_model`` say of an object."""
    return ObjectOptions(
        dataset=options.dataset,
        gpu=options.gpu,
        max_batch_size=options.max_batch_size,
        p99_latency=options.p99_latency,
        thresholds=tuple(options.threshold),
    )


def add_claim(parser: argparse.ArgumentParser) -> None:
    """Add what a claim is made with, if it does not exist yet."""
    size = Options.size
    parser.add_argument("--size", default=size, help=f"size of the claim, if it does not exist yet; default: {size}")
    parser.add_argument(
        "--storage-class", default="", metavar="NAME", help="StorageClass of such a claim; default: the cluster's"
    )
    parser.add_argument("--image", default="", help="image of the pod that takes the files; default: the converter's")
