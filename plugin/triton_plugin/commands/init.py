"""`kubectl triton init`."""

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import yaml

from triton_plugin.argument_groups import WRITE
from triton_plugin.commands.arguments import model_folder, object_options
from triton_plugin.drafting.first_object import ObjectOptions
from triton_plugin.drafting.kserve.drafts import STATES, Draft, Request, drafts
from triton_plugin.drafting.kserve.listing import files
from triton_plugin.drafting.marks import remarks
from triton_plugin.drafting.run import valid_yaml
from triton_plugin.drafting.validation.validate import Loader
from triton_plugin.errors import FolderError
from triton_plugin.exits import Exit
from triton_plugin.reading import bounded_yaml
from triton_plugin.reading.python_files import paths_below
from triton_plugin.telling.tables import Grid
from triton_plugin.terminal import console, say

STDIN = Path("-")


def run(options: argparse.Namespace) -> Exit:
    """Print the object, or those of another tool's objects. Raises FolderError and OSError."""
    if options.other is not None:
        return _from_kserve(options)
    if options.listing is not None:
        raise FolderError("--listing is for --from: a folder shows its files itself")
    text = valid_yaml(model_folder(options, options.folder), _wanted(options))
    for each in remarks(text):
        say(each, sys.stderr)
    sys.stdout.write(text)
    return Exit.OK


def _from_kserve(options: argparse.Namespace) -> Exit:
    if options.write_requirements:
        raise FolderError(f"{WRITE} is for a folder, and --from reads none")
    listing = _listing(options.listing) if options.listing is not None else ()
    request = Request(_wanted(options), options.model, options.format, listing)
    try:
        documents = list(bounded_yaml.documents(_text(options.other), Loader))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise FolderError(f"{options.other} is not valid YAML: {error}") from error
    drafted = drafts(documents, request)
    sys.stdout.write("---\n".join(each.text for draft in drafted for each in draft.objects))
    sys.stdout.flush()
    console(stderr=True).print(_table(drafted))
    return Exit.OK if all(each.objects for each in drafted) else Exit.FAILED


def _wanted(options: argparse.Namespace) -> ObjectOptions:
    return replace(object_options(options), source=options.source)


def _listing(path: Path) -> Sequence[str]:
    """Return the files that a listing names, or the paths below a folder. Raises OSError and FolderError."""
    if path.is_dir():
        return [str(name) for _, name in paths_below(path)]
    try:
        return files(_text(path).splitlines())
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise FolderError(f"{path} is no listing: {error}") from error


def _text(file: Path) -> str:
    """Return what the file or standard input holds. Raises OSError, UnicodeDecodeError, and YAMLError."""
    if file == STDIN:
        return bounded_yaml.text_of(sys.stdin)
    with file.open(encoding="utf-8") as opened:
        return bounded_yaml.text_of(opened)


def _table(drafted: Sequence[Draft]) -> Grid:
    """Return a row for each InferenceService; the title counts them."""
    states = Counter(each.state for each in drafted)
    title = ", ".join(f"{state}: {states[state]}" for state in STATES)
    rows = [
        (each.service, each.state, ", ".join(one.name for one in each.objects), "; ".join(each.reasons))
        for each in drafted
    ]
    return Grid(
        f"InferenceServices: {len(drafted)} ({title})",
        ("InferenceService", "State", "TritonDeployment", "What to do, or why"),
        rows,
    )
