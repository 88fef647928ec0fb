"""`kubectl triton init`."""

import argparse
import sys
from dataclasses import replace
from pathlib import Path

import yaml

from triton_plugin import bounded_yaml
from triton_plugin.arguments import add_model, model_folder, object_options
from triton_plugin.errors import FolderError
from triton_plugin.exits import Exit
from triton_plugin.kserve.first import first_object_from
from triton_plugin.location import add_location
from triton_plugin.marks import remarks
from triton_plugin.run import valid_yaml
from triton_plugin.terminal import say
from triton_plugin.triton_repository.packages import WRITE
from triton_plugin.validation.validate import Loader

STDIN = Path("-")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the folder or the other object, and what neither shows."""
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument(
        "folder", type=Path, nargs="?", metavar="FOLDER|FILE", help="folder with the model, or the model's file"
    )
    group.add_argument(
        "--from",
        type=Path,
        dest="other",
        metavar="FILE|-",
        help="file with a KServe InferenceService, or standard input",
    )
    add_model(parser)
    parser.add_argument("--source", default="", metavar="URI", help="where the cluster finds the folder's files")
    add_location(parser)


def run(options: argparse.Namespace) -> Exit:
    """Print the object. Raises FolderError and OSError."""
    wanted = replace(object_options(options), source=options.source)
    if options.other is None:
        text = valid_yaml(model_folder(options, options.folder), wanted)
    elif options.write_requirements:
        raise FolderError(f"{WRITE} is for a folder, and --from reads none")
    else:
        try:
            documents = list(bounded_yaml.documents(_text(options.other), Loader))
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            raise FolderError(f"{options.other} is not valid YAML: {error}") from error
        text = first_object_from(documents, wanted, options.model, options.format)
    for each in remarks(text):
        say(each, sys.stderr)
    sys.stdout.write(text)
    return Exit.OK


def _text(file: Path) -> str:
    """Return what the file or standard input holds. Raises OSError, UnicodeDecodeError, and YAMLError."""
    if file == STDIN:
        return bounded_yaml.text_of(sys.stdin)
    with file.open(encoding="utf-8") as opened:
        return bounded_yaml.text_of(opened)
