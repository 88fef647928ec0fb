"""`kubectl triton compare`."""

import argparse
import sys
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from triton_plugin.commands.arguments import subject
from triton_plugin.errors import SubjectError
from triton_plugin.exits import Exit
from triton_plugin.reading import bounded_yaml
from triton_plugin.reading.subject import one_line
from triton_plugin.telling import tables
from triton_plugin.telling.compare import Comparison, compare
from triton_plugin.telling.report.document import Report, report
from triton_plugin.telling.report.results import results
from triton_plugin.terminal import console, say


def run(options: argparse.Namespace) -> Exit:
    """Print the comparison, or write the results of all. Raises SubjectError and OSError."""
    if options.file is None and len(options.names) != 2:
        raise SubjectError("name two objects, or pass --file FILE.md for the results of any number")
    reports = [_report(options, name) for name in options.names]
    if options.file is None:
        left, right = reports
        _print(left.name, right.name, compare(left, right))
        return Exit.OK
    if not (text := results(reports)):
        raise SubjectError(f"no candidate of {', '.join(each.name for each in reports)} was measured yet")
    options.file.write_text(text, encoding="utf-8")
    say(f"wrote {options.file}", sys.stderr)
    return Exit.OK


def _report(options: argparse.Namespace, name: str) -> Report:
    """Return the report of an object, or the one that was saved as JSON. Raises SubjectError, OSError."""
    saved = _document(Path(name)) if name.endswith(".json") else {}
    if "candidates" not in saved:
        return report(subject(options, name))
    try:
        return Report.model_validate(one_line(saved))
    except ValidationError as error:
        raise SubjectError(
            f"{name} is no report of this version of kubectl-triton: write it again by kubectl triton report"
        ) from error


def _document(file: Path) -> dict[str, Any]:
    """Return what a file of JSON holds, unless it is no object. Raises OSError."""
    try:
        with file.open(encoding="utf-8") as opened:
            found = next(bounded_yaml.documents(bounded_yaml.text_of(opened)), None)
    except (UnicodeDecodeError, yaml.YAMLError):
        return {}
    return found if isinstance(found, dict) else {}


def _print(left: str, right: str, comparison: Comparison) -> None:
    out = console()
    if left == right:
        left, right = f"{left} (A)", f"{right} (B)"
    out.print(tables.Grid("Differences", ("Parameter", left, right), comparison.parameters))
    out.print(tables.Grid("Served accuracy", ("Metric", left, right), comparison.accuracy))
    if comparison.obstacles:
        out.print("Figures are not compared, because they were not measured alike:", markup=False)
        for each in comparison.obstacles:
            out.print(f"  {each}", markup=False, soft_wrap=True)
        return
    headings = ("Scenario", "Load", "Figure", left, right, "Change")
    out.print(tables.Grid("Measured alike", headings, comparison.rows))
    if comparison.unmatched_loads:
        out.print(
            f"Left out: {comparison.unmatched_loads} loads that only one of the two was measured at", markup=False
        )
