"""`kubectl triton init`."""

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from triton_plugin.arguments import add_model, object_options
from triton_plugin.exits import Exit
from triton_plugin.model_folder import read
from triton_plugin.run import valid_yaml


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the folder, and what its files do not show."""
    parser.add_argument("folder", type=Path, metavar="FOLDER|FILE", help="folder with the model, or the model's file")
    add_model(parser)
    parser.add_argument("--source", default="", metavar="URI", help="where the cluster finds the folder's files")


def run(options: argparse.Namespace) -> Exit:
    """Print the object. Raises CommandError."""
    folder = read(options.folder, options.model, options.format)
    sys.stdout.write(valid_yaml(folder, replace(object_options(options), source=options.source)))
    return Exit.OK
