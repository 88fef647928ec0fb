"""Tables for a terminal, from an object's status."""

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from triton_operator.api.searched import SearchStatus
from triton_operator.api.status import (
    AccuracyStatus,
    CandidateStatus,
    RowStatus,
)
from triton_plugin.columns import ALL, cell, cells, filled

WIDTH = 170
"""Characters: cut figures would be worse than wrapped lines."""


def table(title: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """A table without the columns that are empty in every row; figures to the right."""
    made = Table(title=title, title_justify="left", header_style="bold")
    kept = [number for number in range(len(headings)) if any(row[number] for row in rows)]
    for number in kept:
        is_figure = all(row[number].replace(".", "", 1).isdigit() for row in rows if row[number])
        made.add_column(headings[number], justify="right" if is_figure else "left")
    for row in rows:
        made.add_row(*(Text(row[number]) for number in kept))
    return made


def performance(scenario: str, rows: Sequence[RowStatus]) -> Table:
    """One sweep, with every column."""
    columns = filled(ALL, list(rows))
    headings = [column.heading for column in columns]
    return table(f"{scenario} (latencies in microseconds)", headings, [cells(row, columns) for row in rows])


def accuracy(rows: Sequence[AccuracyStatus]) -> Table:
    """Each metric of what serves, beside the framework's own."""
    lines = [
        [row.metric, row.framework, row.served, str(row.samples), row.threshold or "none", cell(row.passed)]
        for row in rows
    ]
    return table("Accuracy", ("Metric", "Framework", "Served", "Samples", "Threshold", "Passed"), lines)


def ranked(rows: Sequence[CandidateStatus]) -> list[CandidateStatus]:
    """By rank; those without one last, in the spec's order."""
    return sorted(rows, key=lambda row: (row.rank is None, row.rank or 0))


def candidates(rows: Sequence[CandidateStatus]) -> Table:
    """Each candidate in the order of rank, with what became of it and why."""
    lines = [
        [
            cell(row.rank),
            row.name,
            row.state,
            row.reason,
            row.throughput,
            cell(row.p99_latency_microseconds),
            row.load,
            margin(row),
            cell(row.pareto),
            row.max_absolute_error,
            row.message,
        ]
        for row in ranked(rows)
    ]
    headings = (
        *("Rank", "Candidate", "State", "Reason", "Inferences/s", "P99", "At"),
        *("Margin", "Pareto", "Max error", "Message"),
    )
    return table("Candidates", headings, lines)


def margin(row: CandidateStatus) -> str:
    """How far its best row is within the constraint that binds it, or beyond; empty: there is none."""
    if not row.binding_constraint:
        return ""
    beyond = row.margin_percent.startswith("-")
    how = "beyond" if beyond else "within"
    return f"{row.margin_percent.removeprefix('-')} % {how} {row.binding_constraint}"


def searches(rows: Sequence[SearchStatus]) -> Table:
    """Each search with the best configuration it found."""
    lines = [
        [
            row.candidate,
            row.ended or "goes on",
            f"{row.measurements} in {row.size or '?'} points",
            str(row.configuration or ""),
            row.throughput,
            cell(row.p99_latency_microseconds),
            row.load,
            row.message,
        ]
        for row in rows
    ]
    headings = ("Candidate", "Ended", "Measurements", "Best configuration", "Inferences/s", "P99", "At", "Message")
    return table("Searches", headings, lines)
