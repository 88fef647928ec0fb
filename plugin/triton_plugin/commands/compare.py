"""`kubectl triton compare`."""

import argparse

from triton_plugin.commands.arguments import subject
from triton_plugin.exits import Exit
from triton_plugin.telling import tables
from triton_plugin.telling.compare import Comparison, compare
from triton_plugin.telling.report.document import report
from triton_plugin.terminal import console


def run(options: argparse.Namespace) -> Exit:
    """Print the comparison. Raises CommandError."""
    left, right = (report(subject(options, name)) for name in (options.a, options.b))
    _print(left.name, right.name, compare(left, right))
    return Exit.OK


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
