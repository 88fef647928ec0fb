"""Draws the report's plots with matplotlib, as SVG with the placeholder colours of palette.py."""

import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter, NullLocator

from triton_converters.contract.scoring import P99, THROUGHPUT
from triton_operator.api.duration import amount
from triton_operator.api.measured_status import RowStatus, SaturationStatus
from triton_plugin.telling.columns import COMPONENTS, SWEEPS
from triton_plugin.telling.report.document import CandidateReport, Report
from triton_plugin.telling.report.palette import colour, series
from triton_plugin.telling.report.pareto import Point, front

WIDTH_INCHES = 5.0
"""Width at 72 points an inch: text of 10 points stays readable on a screen of 400 pixels."""
AXES_INCHES = 3.0
LEGEND_LINE_INCHES = 0.2
LINEAR_RATIO = 20
"""Latencies that differ by more are drawn on a logarithmic axis."""
SHORT_CHARACTERS = 26
"""Labels of at most this length are set in two columns."""
MARKERS = "osD^vPXd"
HOLLOW = {"markerfacecolor": "none", "linestyle": "none"}
"""The style of a mark around a point."""
MARKED = {"Plateau": "saturated", "Constraint": "most within the constraints", "RangeEnd": "most that was measured"}
"""What the marked measurement of a replica is, by what limits it."""
STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "triton-operator",
    "text.parse_math": False,
    "font.size": 10,
    "text.color": colour("ink"),
    "axes.labelcolor": colour("ink"),
    "axes.edgecolor": colour("faint"),
    "axes.facecolor": "none",
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": colour("faint"),
    "grid.linewidth": 0.6,
    "xtick.color": colour("ink"),
    "ytick.color": colour("ink"),
    "legend.frameon": False,
    "legend.fontsize": 9,
}


@dataclass(frozen=True)
class Plot:
    """A drawing and its texts."""

    name: str
    """Stem of the file's name."""
    title: str
    text: str
    """What the drawing shows, for readers who do not see it."""
    draw: Callable[[Axes], None]

    @cached_property
    def svg(self) -> str:
        """The drawing. Made when it is first asked for: it takes long, and Markdown only refers to it."""
        with matplotlib.rc_context(STYLE):  # type: ignore[arg-type]  # its stubs list every setting
            figure = Figure(layout="constrained")
            self.draw(figure.subplots())
            out = io.StringIO()
            figure.savefig(out, format="svg", transparent=True, metadata={"Date": None})
        return _element(out.getvalue(), self.name)


@dataclass(frozen=True)
class Series:
    """The rows of one candidate."""

    name: str
    rows: Sequence[RowStatus]
    chosen: bool = False


def offline(report: Report) -> list[Plot]:
    """Return throughput and latency against batch size, one line for each candidate."""
    found = _candidates(report, "Offline")
    if not found:
        return []
    batches = sorted({row.batch_size for each in found for row in each.rows})

    def lines(value: Callable[[RowStatus], float], label: str, *, is_time: bool) -> Callable[[Axes], None]:
        def draw(axes: Axes) -> None:
            for number, each in enumerate(found):
                rows = sorted(each.rows, key=lambda row: row.batch_size)
                axes.plot([row.batch_size for row in rows], [value(row) for row in rows], **_line(number, each))
            axes.set_xscale("log", base=2)
            axes.set_xticks(batches, [str(batch) for batch in batches])
            axes.xaxis.set_minor_locator(NullLocator())
            if is_time and _wide([value(row) for each in found for row in each.rows]):
                axes.set_yscale("log")
            else:
                axes.set_ylim(bottom=0)
            _label(axes, "Client batch size (samples)", label)
            _legend(axes)

        return draw

    return [
        Plot(
            "offline-throughput",
            "Throughput against batch size",
            f"Inferences a second at batch sizes {_listed(batches)}, one line for each candidate.",
            lines(lambda row: float(row.throughput), "Throughput (inferences/s)", is_time=False),
        ),
        Plot(
            "offline-latency",
            "Latency against batch size",
            f"99th percentile of latency at batch sizes {_listed(batches)}, one line for each candidate.",
            lines(_p99, "P99 latency (ms)", is_time=True),
        ),
    ]


def components(rows: Sequence[RowStatus], name: str, title: str) -> Plot:
    """Return average latency against concurrency, stacked by its seven components. ``rows``: at least one."""
    ordered = sorted(rows, key=lambda row: (row.concurrency or 0, row.batch_size))
    loads = [str(row.concurrency) for row in ordered]

    def draw(axes: Axes) -> None:
        floor = [0.0] * len(ordered)
        for number, component in enumerate(COMPONENTS):
            heights = [_milliseconds(getattr(row, component.field)) for row in ordered]
            steps = f"step{'s' if len(component.steps) > 1 else ''} {', '.join(map(str, component.steps))}"
            axes.bar(loads, heights, 0.7, floor, color=series(number), label=f"{component.heading} ({steps})")
            floor = [low + height for low, height in zip(floor, heights, strict=True)]
        axes.grid(visible=False, axis="x")
        axes.margins(y=0.08)
        _label(axes, "Concurrent client requests", "Average latency (ms)")
        handles, labels = axes.get_legend_handles_labels()
        # In the order of the stack, top first.
        _legend(axes, handles[::-1], labels[::-1])

    text = f"Average latency at {len(ordered)} loads, each a bar of seven components; the tables contain the figures."
    return Plot(name, title, text, draw)


def tradeoff(report: Report) -> list[Plot]:
    """Return throughput against p99 latency: all candidates' measurements, the Pareto line and the constraints."""
    sweep = SWEEPS[report.scenario]
    found = _candidates(report, report.scenario)
    if not found:
        return []
    searched = [Series(each.status.candidate, each.rows) for each in report.searches if each.rows]
    points = [Point(_p99(row), float(row.throughput)) for each in (*found, *searched) for row in each.rows]

    def draw(axes: Axes) -> None:
        for number, each in enumerate(found):
            axes.plot(*_by_latency(each.rows), **_line(number, each) | {"linestyle": "none"})
        for number, each in enumerate(searched, start=len(found)):
            style: dict[str, Any] = {"color": series(number), "marker": ".", "markersize": 4, "linestyle": "none"}
            axes.plot(*_by_latency(each.rows), label=f"{each.name}: searched", zorder=2, **style)
        _pareto(axes, points)
        _reach(axes, [point.latency for point in points])
        axes.set_ylim(0, 1.08 * max(point.throughput for point in points))
        _constraints(axes, report)
        _label(axes, "P99 latency (ms)", "Throughput (inferences/s)", is_time=True)
        _legend(axes)

    text = (
        f"Inferences a second against the 99th percentile of latency for every measurement of the"
        f" {sweep} sweep{' and every point of the searches' if searched else ''}, with the Pareto line of those that"
        " no other one beats in both, and the constraints."
    )
    return [Plot("tradeoff", f"Throughput against P99 latency ({sweep} sweep)", text, draw)]


def _p99(row: RowStatus) -> float:
    return _milliseconds(row.p99_latency)


def _milliseconds(duration: str) -> float:
    return float(amount(duration, "ms"))


def _by_latency(rows: Sequence[RowStatus]) -> tuple[list[float], list[float]]:
    return [_p99(row) for row in rows], [float(row.throughput) for row in rows]


def _pareto(axes: Axes, points: Sequence[Point]) -> None:
    best = front(points)
    latencies, throughputs = [each.latency for each in best], [each.throughput for each in best]
    style: dict[str, Any] = {"linewidth": 1, "linestyle": "--", "color": colour("ink")}
    axes.plot(latencies, throughputs, label="Pareto line", zorder=1, **style)


def _reach(axes: Axes, latencies: Sequence[float]) -> None:
    """Show all latencies on the horizontal axis."""
    if _wide(latencies):
        axes.set_xscale("log")
    else:
        axes.set_xlim(0, 1.08 * max(latencies))


def saturation(report: Report) -> list[Plot]:
    """Return p99 latency against throughput of one replica: its concurrencies, its request rates and its saturation."""
    shown = next((each for each in _profiled(report) if each.measured and each.measured.online), None)
    if shown is None or shown.measured is None:
        return []
    measured, opened = shown.measured, shown.measured.request_rate
    rows = sorted(measured.online, key=lambda row: row.concurrency or 0)

    def draw(axes: Axes) -> None:
        _loads(axes, rows, opened)
        if measured.saturation is not None:
            _mark(axes, measured.saturation)
        latencies, throughputs = _by_latency([*rows, *opened])
        if _wide(latencies):
            axes.set_yscale("log")
        else:
            axes.set_ylim(0, 1.12 * max(latencies))
        axes.set_xlim(0, 1.1 * max(throughputs))
        _constraints(axes, report, upright=THROUGHPUT)
        _label(axes, "Throughput (inferences/s)", "P99 latency (ms)")
        _legend(axes)

    loads = f"{len(rows)} concurrencies" + (f" and {len(opened)} request rates" if opened else "")
    text = (
        f"99th percentile of latency against inferences a second of one replica of {shown.status.name}, at {loads},"
        " with the saturation marked."
    )
    return [Plot("saturation", "P99 latency against throughput of one replica", text, draw)]


def _loads(axes: Axes, rows: Sequence[RowStatus], opened: Sequence[RowStatus]) -> None:
    """Draw the concurrencies, with names at both ends, and the request rates."""
    latencies, throughputs = _by_latency(rows)
    style: dict[str, Any] = {"marker": "o", "markersize": 5, "linewidth": 1.6}
    axes.plot(throughputs, latencies, color=series(0), label="concurrency", zorder=2, **style)
    for row in (rows[0], rows[-1]):
        _name(axes, row, str(row.concurrency))
    if opened:
        latencies, throughputs = _by_latency(opened)
        style = {"marker": "D", "markersize": 6, **HOLLOW}
        axes.plot(throughputs, latencies, color=series(1), label="request rate (open loop)", zorder=3, **style)


def _mark(axes: Axes, found: SaturationStatus) -> None:
    """Draw a ring around the saturation, if its latency is known."""
    if found.p99_latency is None:
        return
    place = [float(found.throughput)], [_milliseconds(found.p99_latency)]
    words = MARKED["RangeEnd" if found.lower_bound else found.ended]
    style: dict[str, Any] = {"marker": "o", "markersize": 13, "markeredgewidth": 1.6, **HOLLOW}
    axes.plot(*place, color=colour("ink"), label=f"{words}: concurrency {found.concurrency}", zorder=4, **style)


def _profiled(report: Report) -> list[CandidateReport]:
    """The active candidate, or else the selected one, if its profile is recorded."""
    name = report.serving.candidate if report.serving else ""
    active = [each for each in report.candidates if each.status.name == name]
    return active or [each for each in report.candidates if each.status.state == "Selected"]


def _name(axes: Axes, row: RowStatus, text: str) -> None:
    """Write a measurement's load next to it."""
    place = float(row.throughput), _p99(row)
    axes.annotate(text, place, (0, 10), textcoords="offset points", ha="center", fontsize=9, color=colour("ink"))


def _candidates(report: Report, scenario: str) -> list[Series]:
    """Return the candidates' measurements; if their records are gone, those of the active revision."""
    found = [
        Series(each.status.name, each.measured.rows(scenario), each.status.state == "Selected")
        for each in report.candidates
        if each.measured and each.measured.rows(scenario)
    ]
    if found or report.performance is None or not report.performance.rows(scenario):
        return found
    name = report.serving.candidate if report.serving else report.name
    return [Series(name, report.performance.rows(scenario), chosen=True)]


def _constraints(axes: Axes, report: Report, upright: str = P99) -> None:
    """Draw the constraints on p99 latency and throughput; one outside the axes is named in the legend only.

    ``upright``: the metric of the horizontal axis.
    """
    for each in report.constraints.as_requests:
        value = each.minimum if each.maximum is None else each.maximum
        if value is None or each.metric not in (P99, THROUGHPUT):
            continue
        if each.metric == P99:
            value /= 1000
        words, stands = report.constraints.bound(each.metric), each.metric == upright
        style: dict[str, Any] = {"color": colour("alert"), "linewidth": 1.2, "linestyle": ":"}
        low, limit = axes.get_xlim() if stands else axes.get_ylim()
        if not low <= value <= limit:
            axes.plot([], [], label=f"{words} (outside)", **style)
        elif stands:
            axes.axvline(value, label=words, **style)
        else:
            axes.axhline(value, label=words, **style)


def _line(number: int, each: Series) -> dict[str, Any]:
    return {
        "label": f"{each.name} (selected)" if each.chosen else each.name,
        "color": series(number),
        "marker": MARKERS[number % len(MARKERS)],
        "markersize": 6 if each.chosen else 4,
        "linewidth": 2.4 if each.chosen else 1.2,
        "zorder": 3 if each.chosen else 2,
        "clip_on": False,
    }


def _wide(values: Sequence[float]) -> bool:
    """Whether the smallest value would vanish next to the largest: one slow candidate must not hide the good ones."""
    return 0 < LINEAR_RATIO * min(values) < max(values)


def _label(axes: Axes, x: str, y: str, *, is_time: bool = False) -> None:
    """Name the axes. ``is_time``: the horizontal one is of latencies."""
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    thousands = FuncFormatter(lambda value, _: f"{value:,g}")
    axes.yaxis.set_major_formatter(thousands)
    axes.yaxis.set_minor_formatter(NullFormatter())
    if is_time:
        axes.xaxis.set_major_formatter(thousands)
        axes.xaxis.set_minor_formatter(NullFormatter())
        if axes.get_xscale() == "linear":
            axes.xaxis.set_major_locator(MaxNLocator(5))


def _legend(axes: Axes, *handles_and_labels: object) -> None:
    """Draw the legend below the axes, which keep their size: names are the user's and may be many and long."""
    labels = axes.get_legend_handles_labels()[1]
    columns = 2 if max(map(len, labels)) <= SHORT_CHARACTERS else 1
    figure = axes.get_figure(root=True)
    assert figure is not None
    figure.set_size_inches(WIDTH_INCHES, AXES_INCHES + LEGEND_LINE_INCHES * ceil(len(labels) / columns))
    figure.legend(*handles_and_labels, loc="outside lower left", ncols=columns)


def _listed(values: Sequence[int]) -> str:
    return ", ".join(map(str, values))


def _element(document: str, name: str) -> str:
    """Return the svg element alone, its ids made unique to the plot: a page contains several plots."""
    svg = document[document.index("<svg") :]
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    svg = svg.replace("url(#", f"url(#{name}-").replace('xlink:href="#', f'xlink:href="#{name}-')
    return re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
