"""Writes every measurement and every metric, with the column names of NVIDIA's tables."""

import csv
import io
from collections.abc import Collection, Iterable, Iterator

from triton_converters.contract.results import SCENARIOS
from triton_plugin.telling.columns import ALL, cells
from triton_plugin.telling.report.document import Measured, Report

KEYS = ("Candidate", "Measured on", "Scenario", "Configuration")
"""The columns before the figures. Measured on: ``profile`` or ``search`` (the candidate's own server) or
``service``. Configuration: empty for the spec's."""
FORMULA = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")
"""How a spreadsheet's formula begins; the last four are =, +, - and @ in full width. No figure begins so."""


def as_csv(report: Report, scenarios: Collection[str] = tuple(SCENARIOS)) -> str:
    """Return one line for each measurement of these scenarios; latencies in milliseconds.

    The active revision's measurements through its Service are last.
    """
    heading = [*KEYS, *(column.heading for column in ALL)]
    return _text([heading, *(line for line in _measurements(report) if line[KEYS.index("Scenario")] in scenarios)])


def metrics_csv(report: Report) -> str:
    """Return a line for the framework and two for each candidate, with a column for each metric; empty: there are none.

    A candidate's first line is of its converted file outside Triton, if it ran there.
    """
    known = [each for each in report.candidates if each.accuracy]
    names = list(dict.fromkeys(row.metric for each in known for row in each.accuracy))
    if not names:
        return ""
    framework = {row.metric: row.framework for each in known for row in each.accuracy}
    lines = [["framework", str(known[0].accuracy[0].samples), *(framework[name] for name in names)]]
    for each in known:
        samples = str(each.accuracy[0].samples)
        converted = {row.metric: row.converted for row in each.accuracy}
        served = {row.metric: row.served for row in each.accuracy}
        for what, values in ((f"{each.status.name}, outside Triton", converted), (each.status.name, served)):
            if any(values.values()):
                lines.append([what, samples, *(values.get(name, "") for name in names)])
    return _text([["Outputs of", "Samples", *names], *lines])


def _text(lines: Iterable[Iterable[str]]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(map(_inert, lines))
    return out.getvalue()


def _measurements(report: Report) -> Iterator[list[str]]:
    """Yield the cells of each measurement, under KEYS and ALL."""
    for each in report.candidates:
        if each.measured is not None:
            found = str(each.status.config or "")
            yield from _lines(each.status.name, "profile", each.measured, tuple(SCENARIOS), found)
    for search in report.searches:
        for point in search.points:
            if point.row is not None:
                where = [search.status.candidate, "search", report.scenario, str(point.config)]
                yield [*where, *cells(point.row, ALL)]
    if report.performance is not None and report.serving is not None:
        # Its other rows are its candidate's own.
        name = report.serving.candidate
        serving = next((each for each in report.candidates if each.status.name == name), None)
        found = str(serving.status.config or "") if serving else ""
        if serving is None or serving.measured is None:
            yield from _lines(name, "profile", report.performance, ("Offline", "RequestRate"), found)
        yield from _lines(name, "service", report.performance, ("Online",), found)


def _lines(
    name: str, place: str, measured: Measured, scenarios: tuple[str, ...], configuration: str
) -> list[list[str]]:
    return [
        [name, place, scenario, configuration, *cells(row, ALL)]
        for scenario in scenarios
        for row in measured.rows(scenario)
    ]


def _inert(line: Iterable[str]) -> list[str]:
    """Return cells that no spreadsheet runs: one that begins as a formula does gets a quote, as OWASP advises."""
    return [f"'{cell}" if cell.startswith(FORMULA) else cell for cell in line]
