"""Writes every measurement, with the column names of NVIDIA's tables."""

import csv
import io
from collections.abc import Iterable

from triton_converters.contract.results import SCENARIOS
from triton_plugin.telling.columns import ALL, cells
from triton_plugin.telling.report.document import Measured, Report

KEYS = ("Candidate", "Measured on", "Scenario", "Configuration")
"""The columns before the figures. Measured on: ``profile`` or ``search`` (the candidate's own server) or
``service``. Configuration: empty for the spec's."""
FORMULA = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")
"""How a spreadsheet's formula begins; the last four are =, +, - and @ in full width. No figure begins so."""


def as_csv(report: Report) -> str:
    """Return one line for each measurement; latencies in milliseconds.

    The active revision's measurements through its Service are last.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*KEYS, *(column.heading for column in ALL)])
    for each in report.candidates:
        if each.measured is not None:
            found = str(each.status.config or "")
            writer.writerows(_lines(each.status.name, "profile", each.measured, tuple(SCENARIOS), found))
    for search in report.searches:
        for point in search.points:
            if point.row is not None:
                where = [search.status.candidate, "search", report.scenario, str(point.config)]
                writer.writerow(_inert([*where, *cells(point.row, ALL)]))
    if report.performance is not None and report.serving is not None:
        # Its other rows are its candidate's own.
        name = report.serving.candidate
        serving = next((each for each in report.candidates if each.status.name == name), None)
        found = str(serving.status.config or "") if serving else ""
        if serving is None or serving.measured is None:
            writer.writerows(_lines(name, "profile", report.performance, ("Offline", "RequestRate"), found))
        writer.writerows(_lines(name, "service", report.performance, ("Online",), found))
    return out.getvalue()


def _lines(
    name: str, place: str, measured: Measured, scenarios: tuple[str, ...], configuration: str
) -> list[list[str]]:
    return [
        _inert([name, place, scenario, configuration, *cells(row, ALL)])
        for scenario in scenarios
        for row in measured.rows(scenario)
    ]


def _inert(line: Iterable[str]) -> list[str]:
    """Return cells that no spreadsheet runs: one that begins as a formula does gets a quote, as OWASP advises."""
    return [f"'{cell}" if cell.startswith(FORMULA) else cell for cell in line]
