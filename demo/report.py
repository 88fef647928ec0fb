"""The tables that the demonstration ends with, from the object's status."""

from collections.abc import Sequence

from rich.table import Table

from triton_operator.api.status import AccuracyStatus, CandidateStatus, RowStatus

ROW_COLUMNS = (
    ("Precision", "precision"),
    ("Accelerator", "accelerator"),
    ("Input shape", "input_shape"),
    ("Batch", "batch_size"),
    ("Concur-\nrency", "concurrency"),
    ("Inferences/s", "throughput"),
    ("Client\nsend", "client_send"),
    ("Network, server\nsend/receive", "network"),
    ("Server\nqueue", "queue"),
    ("Compute\ninput", "compute_input"),
    ("Compute\ninfer", "compute_infer"),
    ("Compute\noutput", "compute_output"),
    ("Client\nreceive", "client_receive"),
    ("P50", "p50"),
    ("P90", "p90"),
    ("P95", "p95"),
    ("P99", "p99"),
    ("Average", "average"),
    ("Stable", "stable"),
)
"""Headings of the five source documents' tables, and the fields of a row; latencies in microseconds."""


def _table(title: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """A table without the columns that are empty in every row; figures to the right."""
    table = Table(title=title, title_justify="left", header_style="bold")
    kept = [number for number in range(len(headings)) if any(row[number] for row in rows)]
    for number in kept:
        is_figure = all(row[number].replace(".", "", 1).isdigit() for row in rows if row[number])
        table.add_column(headings[number], justify="right" if is_figure else "left")
    for row in rows:
        table.add_row(*(row[number] for number in kept))
    return table


def _text(value: object) -> str:
    """A cell: nothing for nothing, yes or no for a truth value."""
    if value is None:
        return ""
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


def performance(scenario: str, rows: Sequence[RowStatus]) -> Table:
    """One sweep, with every column."""
    cells = [[_text(getattr(row, field)) for _, field in ROW_COLUMNS] for row in rows]
    return _table(f"{scenario} (latencies in microseconds)", [heading for heading, _ in ROW_COLUMNS], cells)


def accuracy(rows: Sequence[AccuracyStatus]) -> Table:
    """Each metric of what serves, beside the framework's own."""
    cells = [
        [row.metric, row.framework, row.served, str(row.samples), row.threshold or "none", _text(row.passed)]
        for row in rows
    ]
    return _table("Accuracy", ("Metric", "PyTorch", "Served", "Samples", "Threshold", "Passed"), cells)


def candidates(rows: Sequence[CandidateStatus]) -> Table:
    """Each candidate in the order of rank, with what became of it and why."""
    ranked = sorted(rows, key=lambda row: (row.rank is None, row.rank or 0))
    cells = [
        [
            _text(row.rank),
            row.name,
            row.state,
            row.reason,
            row.throughput,
            _text(row.p99_latency_microseconds),
            row.load,
            row.max_absolute_error,
            row.message,
        ]
        for row in ranked
    ]
    headings = ("Rank", "Candidate", "State", "Reason", "Inferences/s", "P99", "At", "Max error", "Message")
    return _table("Candidates", headings, cells)
