"""Tables for a terminal, from an object's status."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from triton_operator.api.search_status import SearchStatus
from triton_operator.api.status import (
    AccuracyStatus,
    CandidateStatus,
    RowStatus,
)
from triton_plugin.columns import ALL, cell, cells, filled

WIDTH = 180
"""Characters, where no terminal says otherwise."""
WORDS = 20
"""Characters of a column of words: a narrower one is hard to read."""
HEADINGS = (20, 8, 5)
"""Characters of a column's heading, the first that the console has room for; the rest of a word goes below it."""
FIGURE = re.compile(r"[+-]?[0-9.]+( %)?")


@dataclass(frozen=True)
class Grid:
    """Cells under headings, without the columns that are empty in every row.

    A table where the console is wide enough for it, else one row after the other: nothing is ever cut off.
    """

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Rendered by Console.print."""
        kept = [number for number in range(len(self.headings)) if any(row[number] for row in self.rows)]
        for heading in HEADINGS:
            widths = [self._width(number, heading) for number in kept]
            # Two spaces and a line for each column.
            if sum(widths) + 3 * len(widths) + 1 <= options.max_width:
                yield self._table(kept, widths)
                return
        yield from self._records(kept)

    def _width(self, number: int, heading: int) -> int:
        """What a column needs for its whole figures, or to read its words in, and for `heading` letters above."""
        longest = max(len(row[number]) for row in self.rows)
        word = max(map(len, self.headings[number].split()))
        return max(longest if self._is_figure(number) else min(longest, WORDS), min(word, heading))

    def _is_figure(self, number: int) -> bool:
        return all(FIGURE.fullmatch(row[number]) for row in self.rows if row[number])

    def _table(self, kept: Sequence[int], widths: Sequence[int]) -> Table:
        made = Table(title=self.title, title_justify="left", header_style="bold")
        for number, width in zip(kept, widths, strict=True):
            if self._is_figure(number):
                made.add_column(self.headings[number], justify="right", width=width, overflow="fold")
            else:
                made.add_column(self.headings[number], overflow="fold")
        for row in self.rows:
            made.add_row(*(Text(row[number]) for number in kept))
        return made

    def _records(self, kept: Sequence[int]) -> RenderResult:
        yield Text(f"\n{self.title}", "italic")
        for row in self.rows:
            yield Rule(style="dim")
            record = Table(box=None, show_header=False, pad_edge=False)
            record.add_column(style="bold", width=max(len(self.headings[number]) for number in kept))
            record.add_column(overflow="fold")
            for number in kept:
                if row[number]:
                    record.add_row(self.headings[number], Text(row[number]))
            yield record


def performance(scenario: str, rows: Sequence[RowStatus]) -> Grid:
    """One sweep, with every column."""
    columns = filled(ALL, list(rows))
    headings = [column.heading for column in columns]
    return Grid(f"{scenario} (latencies in microseconds)", headings, [cells(row, columns) for row in rows])


def accuracy(rows: Sequence[AccuracyStatus]) -> Grid:
    """Each metric of what serves, beside the framework's own."""
    lines = [
        [row.metric, row.framework, row.served, str(row.samples), row.threshold or "none", cell(row.passed)]
        for row in rows
    ]
    return Grid("Accuracy", ("Metric", "Framework", "Served", "Samples", "Threshold", "Passed"), lines)


def ranked(rows: Sequence[CandidateStatus]) -> list[CandidateStatus]:
    """By rank; those without one last, in the spec's order."""
    return sorted(rows, key=lambda row: (row.rank is None, row.rank or 0))


def candidates(rows: Sequence[CandidateStatus]) -> Grid:
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
    return Grid("Candidates", headings, lines)


def margin(row: CandidateStatus) -> str:
    """How far its best row is within the constraint that binds it, or beyond; empty: there is none."""
    if not row.binding_constraint:
        return ""
    beyond = row.margin_percent.startswith("-")
    how = "beyond" if beyond else "within"
    return f"{row.margin_percent.removeprefix('-')} % {how} {row.binding_constraint}"


def searches(rows: Sequence[SearchStatus]) -> Grid:
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
    return Grid("Searches", headings, lines)
