"""Tables for a terminal, from an object's status."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from triton_converters.contract.scoring import THROUGHPUT
from triton_operator.api.measured_status import AccuracyStatus, RowStatus, StepStatus
from triton_operator.api.metrics import NAMES
from triton_operator.api.search_status import SearchStatus
from triton_operator.api.status import CandidateStatus, SignatureStatus
from triton_plugin.telling import columns
from triton_plugin.telling.columns import (
    COMPONENT_LATENCIES,
    LATENCIES,
    LOAD,
    Column,
    cell,
    cells,
    columns_with_values,
    max_error,
    milliseconds,
)

LEAST_TEXT_WIDTH = 12
"""Characters of a column of words: a narrower one is hard to read."""
LONGEST_WORD = 30
"""Characters of a word in a cell; a longer one, such as a digest, may go on in the next line."""
FIGURE = re.compile(r"[+-]?[0-9.]+(e[+-][0-9]+)?( %|[KMG]i)?")


@dataclass(frozen=True)
class Grid:
    """Cells under headings, without the columns that are empty in every row.

    A table if the console is wide enough for it, else one row after the other: nothing is ever cut off.
    """

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]

    def __post_init__(self) -> None:
        """Make each cell one line: by a line end in it, a text could show a row of its own."""
        lines = [[" ".join(cell.split()) for cell in row] for row in self.rows]
        object.__setattr__(self, "rows", lines)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Rendered by Console.print."""
        filled = [number for number in range(len(self.headings)) if any(row[number] for row in self.rows)]
        yield Text(f"\n{self.title}", "italic")
        for gap in (2, 1):
            width = options.max_width - gap * (len(filled) - 1)
            if sum(map(self._least_width, filled)) <= width:
                yield self._table(self._widths(filled, width), gap)
                return
        yield from self._records(filled)

    def _least_width(self, number: int) -> int:
        """The width that a column needs for its figures and its heading's words, or to read its own words in."""
        heading = _longest_word(self.headings[number])
        if self._is_figure(number):
            return max(heading, self._longest_cell(number))
        word = min(LONGEST_WORD, max(_longest_word(row[number]) for row in self.rows))
        return max(heading, word, min(self._longest_cell(number), LEAST_TEXT_WIDTH))

    def _longest_cell(self, number: int) -> int:
        return max(len(row[number]) for row in self.rows)

    def _is_figure(self, number: int) -> bool:
        return all(FIGURE.fullmatch(row[number]) for row in self.rows if row[number])

    def _widths(self, filled: Sequence[int], width_of_cells: int) -> dict[int, int]:
        """Width by column: what each needs, then room for whole cells, first for the filled that lack least."""
        widths = {number: self._least_width(number) for number in filled}
        missing = {number: max(0, self._longest_cell(number) - width) for number, width in widths.items()}
        for number in sorted(filled, key=lambda number: missing[number]):
            widths[number] += min(missing[number], width_of_cells - sum(widths.values()))
        return widths

    def _table(self, widths: dict[int, int], gap: int) -> Table:
        table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, gap - 1, 0, 0), header_style="bold")
        for number, width in widths.items():
            justify: Literal["left", "right"] = "right" if self._is_figure(number) else "left"
            table.add_column(Text(self.headings[number]), justify=justify, width=width, overflow="fold")
        for row in self.rows:
            table.add_row(*(Text(row[number]) for number in widths))
        return table

    def _records(self, filled: Sequence[int]) -> RenderResult:
        for row in self.rows:
            yield Rule(style="dim")
            record = Table(box=None, show_header=False, pad_edge=False)
            record.add_column(style="bold", width=max(len(self.headings[number]) for number in filled))
            record.add_column(overflow="fold")
            for number in filled:
                if row[number]:
                    record.add_row(Text(self.headings[number]), Text(row[number]))
            yield record


def _longest_word(text: str) -> int:
    return max(map(len, text.split()), default=0)


def performance(scenario: str, rows: Sequence[RowStatus]) -> RenderableType:
    """One sweep: throughput and latency of each measurement, then the components of its average latency.

    What all measurements have in common is in the first title.
    """
    load = columns_with_values(LOAD, list(rows))
    common = [each for each in load if len({getattr(row, each.field) for row in rows}) == 1]
    varied = tuple(each for each in load if each not in common)
    conditions = ", ".join(f"{each.short.lower()} {cell(getattr(rows[0], each.field))}" for each in common)
    title = f"{scenario}: {conditions}" if conditions else scenario
    return Group(
        _measurements(f"{title} (latencies in ms)", (*varied, *LATENCIES), rows),
        _measurements(f"{scenario}: average latency by component (ms)", (*varied, *COMPONENT_LATENCIES), rows),
    )


def _measurements(title: str, shown: tuple[Column, ...], rows: Sequence[RowStatus]) -> Grid:
    return Grid(title, [column.short for column in shown], [cells(row, shown) for row in rows])


def steps(rows: Sequence[StepStatus]) -> Grid:
    """Where the time of a request to an ensemble goes, by model."""
    return Grid("Average latency by step of the ensemble", *columns.steps(rows))


def accuracy(rows: Sequence[AccuracyStatus]) -> Grid:
    """Each metric of what serves, beside the framework's own."""
    return Grid("Accuracy", *columns.accuracy(rows))


def by_rank(rows: Sequence[CandidateStatus]) -> list[CandidateStatus]:
    """Sort by rank; those without a rank come last, in the spec's order."""
    return sorted(rows, key=lambda row: (row.rank is None, row.rank or 0))


def candidates(rows: Sequence[CandidateStatus], signature: SignatureStatus | None) -> Grid:
    """Each candidate in the order of rank, with its best measurement; ``reasons`` says why."""
    lines = [
        [
            cell(row.rank),
            row.name,
            row.state,
            row.throughput,
            milliseconds(row.p99_latency),
            f"{row.load} (unstable)" if row.stable is False else row.load,
            cell(row.pareto),
            max_error(row, signature),
        ]
        for row in by_rank(rows)
    ]
    headings = ("Rank", "Candidate", "State", "Inf/s", "P99 (ms)", "At", "Pareto", "Max error")
    return Grid("Candidates", headings, lines)


def reasons(rows: Sequence[CandidateStatus]) -> RenderableType:
    """Each candidate's reason and message, and its distance from a constraint, in the order of rank."""
    return Group(
        *(
            Text(f"{row.name}: {'; '.join(filter(None, (row.reason, row.message, margin(row), int8(row))))}")
            for row in by_rank(rows)
            if row.reason
        )
    )


def int8(row: CandidateStatus) -> str:
    """What the candidate's INT8 graph is like; empty: it has none."""
    return row.quantization.sentence() if row.quantization else ""


def margin(row: CandidateStatus) -> str:
    """The distance of the candidate's best row from the constraint that binds it; empty: there is no constraint."""
    if not row.binding_constraint:
        return ""
    metric, _, bound = row.binding_constraint.partition(" ")
    if not row.margin_percent:
        return f"{metric} was not measured, so it does not meet its constraint, {bound}"
    is_met = not row.margin_percent.startswith("-")
    side = "below" if is_met == (metric != NAMES[THROUGHPUT]) else "above"
    met = "" if is_met else ", and misses it"
    return f"{metric} is {row.margin_percent.removeprefix('-')} % {side} its constraint, {bound}{met}"


def searches(rows: Sequence[SearchStatus]) -> Grid:
    """Each search with the best configuration it found."""
    lines = [
        [
            row.candidate,
            row.ended or "goes on",
            f"{row.measurements} in {row.size or '?'} points",
            str(row.config or ""),
            row.throughput,
            milliseconds(row.p99_latency),
            row.load,
            row.message,
        ]
        for row in rows
    ]
    headings = ("Candidate", "Ended", "Measured", "Best configuration", "Inf/s", "P99 (ms)", "At", "Message")
    return Grid("Searches", headings, lines)
