"""Every measured row, with the source documents' column names."""

import csv
import io

from triton_plugin.columns import ALL, cells
from triton_plugin.report.document import Measured, Report

KEYS = ("Candidate", "Measured on", "Scenario")
"""What a row is of, before its figures. Measured on: ``profile`` (the candidate's own server) or ``service``."""


def as_csv(report: Report) -> str:
    """One line a row; latencies in microseconds. What serves comes last, as measured through its Service."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*KEYS, *(column.heading for column in ALL)])
    for each in report.candidates:
        if each.measured is not None:
            writer.writerows(_lines(each.status.name, "profile", each.measured, ("Offline", "Online")))
    if report.performance is not None and report.serving is not None:
        # Its offline rows are its candidate's own.
        recorded = any(each.measured and each.status.name == report.serving.candidate for each in report.candidates)
        if not recorded:
            writer.writerows(_lines(report.serving.candidate, "profile", report.performance, ("Offline",)))
        writer.writerows(_lines(report.serving.candidate, "service", report.performance, ("Online",)))
    return out.getvalue()


def _lines(name: str, place: str, measured: Measured, scenarios: tuple[str, ...]) -> list[list[str]]:
    found = {"Offline": measured.offline, "Online": measured.online}
    return [[name, place, scenario, *cells(row, ALL)] for scenario in scenarios for row in found[scenario]]
