"""Finds the TritonDeployments of files, folders and standard input, and says what is wrong with each."""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from triton_operator.names import KIND
from triton_plugin.drafting.marks import marks
from triton_plugin.drafting.validation.hints import hint
from triton_plugin.drafting.validation.validate import check, deployments, schema
from triton_plugin.reading import bounded_yaml

STDIN = Path("-")
SUFFIXES = {".yaml", ".yml", ".json"}
"""Endings of the files that kubectl reads of a folder."""


def validate(paths: Iterable[Path], say: Callable[[str], None]) -> bool:
    """Say of each object whether it is valid; returns whether all are, and there is one.

    ``paths``: files, folders, which are searched with all folders below but hidden ones, or `-` for standard input.
    What has no TritonDeployment is named and skipped, because it lies beside them in a repository.
    """
    found, is_valid = 0, True
    for path in paths:
        for file in _files(path):
            try:
                text = _text(file)
                # A template of other objects is no YAML, and nobody's business.
                bodies = list(deployments(text)) if KIND in text else []
            except (yaml.YAMLError, UnicodeDecodeError) as error:
                say(f"{file}: not valid YAML: {error}")
                is_valid = False
                continue
            except OSError as error:
                say(f"{file}: {error.strerror}")
                is_valid = False
                continue
            if not bodies:
                say(f"{file}: skipped: contains no {KIND}")
            found += len(bodies)
            found_marks = list(marks(text)) if bodies else []
            is_open = any(mark.is_needed for mark in found_marks)
            for mark in found_marks:
                if mark.is_needed:
                    say(f"{file}:{mark.line}: is to be filled in: {mark.text}")
            for body in bodies:
                is_valid &= _is_valid(f"{file}: {_name(body)}", body, say, is_open=is_open) and not is_open
            for mark in found_marks:
                if not mark.is_needed:
                    say(f"{file}:{mark.line}: is marked, which is no fault: {mark.text}")
    if not found and is_valid:
        say(f"Nothing was checked: no {KIND} is in what you named.")
    return is_valid and found > 0


def _files(path: Path) -> Iterator[Path]:
    if path == STDIN or not path.is_dir():
        yield path
        return
    for each in sorted(path.rglob("*")):
        hidden = any(part.startswith(".") for part in each.relative_to(path).parts)
        if each.suffix in SUFFIXES and each.is_file() and not hidden:
            yield each


def _text(file: Path) -> str:
    if file == STDIN:
        return bounded_yaml.text_of(sys.stdin)
    with file.open(encoding="utf-8") as opened:
        return bounded_yaml.text_of(opened)


def _name(body: Mapping[str, Any]) -> str:
    """The object's name, with its namespace if it has one: two of a repository may have the same name."""
    metadata = body.get("metadata")
    fields = metadata if isinstance(metadata, dict) else {}
    name = str(fields.get("name", "(no name)"))
    return f"{fields['namespace']}/{name}" if fields.get("namespace") else name


def _is_valid(place: str, body: Mapping[str, Any], say: Callable[[str], None], *, is_open: bool) -> bool:
    faults = list(faults_in_words(body))
    for fault in faults:
        say(f"{place}: {fault}")
    if not faults:
        say(f"{place}: valid{' apart from what is to be filled in' if is_open else ''}")
    return not faults


def faults_in_words(body: Mapping[str, Any]) -> Iterator[str]:
    """Yield the faults of an object, each with what helps with it."""
    for fault in check(body):
        words = hint(fault, schema())
        yield f"{fault}{'. ' if words else ''}{words}"
