"""`kubectl triton init`."""

import argparse
import sys
from dataclasses import replace
from pathlib import Path

import yaml

from triton_plugin.command_line import WRITE
from triton_plugin.commands.arguments import model_folder, object_options
from triton_plugin.drafting.kserve.first import first_object_from
from triton_plugin.drafting.marks import remarks
from triton_plugin.drafting.run import valid_yaml
from triton_plugin.drafting.validation.validate import Loader
from triton_plugin.errors import FolderError
from triton_plugin.exits import Exit
from triton_plugin.reading import bounded_yaml
from triton_plugin.terminal import say

STDIN = Path("-")


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
