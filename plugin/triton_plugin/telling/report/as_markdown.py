"""Writes the report with the sections and the columns of the READMEs in NVIDIA's DeepLearningExamples.

Latencies are in milliseconds, as in most of those READMEs.
"""

from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from triton_operator.api.measured_status import RowStatus
from triton_plugin.telling.columns import (
    COMPONENTS,
    OFFLINE,
    ONLINE,
    REQUEST_RATE,
    STEP_HEADINGS,
    STEPS,
    Column,
    cell,
    cells,
    columns_with_values,
    load_of_figures,
    max_error,
    milliseconds,
    step_rows,
)
from triton_plugin.telling.mixed_shapes import sentences
from triton_plugin.telling.report import plots
from triton_plugin.telling.report.document import CandidateReport, PointReport, Report, environment_lines
from triton_plugin.telling.report.palette import as_light
from triton_plugin.telling.saturation import sentence
from triton_plugin.telling.steps import MEANING
from triton_plugin.telling.tables import margin

FOLDER = "plots"
_ESCAPED = str.maketrans({c: "\\" + c for c in "\\`*_{}[]<>#|~$"} | {"&": "&amp;", "\n": " ", "\r": " ", "\t": " "})


def as_markdown(report: Report, with_plots: bool) -> str:
    """Return the whole text. ``with_plots``: it refers to the files of ``drawings``."""
    parts = [
        f"# Deploying the {text(report.name)} model on Triton Inference Server",
        _overview(report),
        *_advanced(report),
        *_performance(report, with_plots),
        *_accuracy(report),
        *_candidates(report),
        *_searches(report),
        *_environment(report),
    ]
    return "\n\n".join(parts) + "\n"


def drawings(report: Report) -> dict[Path, str]:
    """Return the plots that the text refers to, by their paths relative to it."""
    drawn = [*_offline_plots(report), *_online_plots(report), *_saturation_plots(report)]
    return {_path(report, plot): as_light(plot.svg) + "\n" for plot in drawn}


def text(value: str) -> str:
    """Return any text on one line, escaped for Markdown and HTML."""
    return value.translate(_ESCAPED)


def code(value: str) -> str:
    """Return a code span. A backtick would end it; no command line and no reason contains one."""
    return "`" + " ".join(value.replace("`", "'").split()) + "`"


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table; columns of figures are aligned right."""
    figures = [all(_is_figure(row[column]) for row in rows) for column in range(len(headings))]
    lines = [headings, ["---:" if right else ":---" for right in figures], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _is_figure(word: str) -> bool:
    return word.replace(".", "", 1).isdigit()


def _overview(report: Report) -> str:
    lines = ["## Solution overview", ""]
    ready = report.condition("Ready")
    if ready is not None:
        lines.append(f"**{'Ready' if ready.status == 'True' else text(ready.reason)}**: {text(ready.message)}.")
    newer = report.condition("UpToDate")
    if newer is not None and newer.status != "True" and ready is not None and ready.status == "True":
        lines += ["", f"**Not up to date**: {text(newer.reason)}: {text(newer.message)}."]
    if report.rehearsed:
        lines += ["", f"**Rehearsed**: {text(report.rehearsed)}."]
    if report.serving is not None:
        serving = report.serving
        name = code(f"{report.namespace}/{report.name}")
        lines += ["", f"TritonDeployment {name} serves model {code(report.model)}:", ""]
        lines += [f" * **Candidate:** {text(serving.candidate)}", f" * **Model format:** {text(serving.format)}"]
        lines.append(f" * **Precision:** {text(serving.precision.upper())}")
        if serving.throughput:
            lines.append(f" * **Inferences/second:** {text(serving.throughput)}")
            load = load_of_figures(serving, report.performance.online if report.performance else ())
            lines.append(f" * **P99 latency:** {text(serving.p99_latency or '')} at {load or 'that load'}")
    return "\n".join(lines)


def _advanced(report: Report) -> list[str]:
    rows = [[text(each.name), text(each.value)] for each in report.parameters]
    steps = "\n".join(f"{number}. {step}" for number, step in enumerate(STEPS, start=1))
    covered = "\n".join(
        f" * **{each.heading}:** step{'s' if len(each.steps) > 1 else ''} {', '.join(map(str, each.steps))}"
        for each in COMPONENTS
    )
    return [
        "## Advanced",
        "### Prepare configuration",
        table(["Parameter Name", "Parameter Value"], rows),
        "### Latency explanation",
        f"The steps of a request:\n\n{steps}",
        f"perf_analyzer measures seven components of a request; their sum is the average latency:\n\n{covered}",
    ]


def _performance(report: Report, with_plots: bool) -> list[str]:
    measured = report.performance
    if measured is None:
        return []
    where = measured.environment
    device = [where.gpu_product or where.cpu] if where else []
    title = text(", ".join([*device, report.configuration]))
    parts = ["## Performance", "Latencies are in milliseconds."]
    if measured.mixed_shapes is not None:
        parts.append(text(sentences(measured.mixed_shapes)))
    if measured.offline:
        pictures = _pictures(report, _offline_plots(report)) if with_plots else []
        parts += ["### Offline scenario", f"#### Offline: {title}", *pictures, _full(OFFLINE, measured.offline)]
    if measured.online:
        pictures = _pictures(report, _online_plots(report)) if with_plots else []
        parts += ["### Online scenario", f"#### Online: {title}", *pictures, _full(ONLINE, measured.online)]
    if measured.steps:
        rows = [[text(each) for each in row] for row in step_rows(measured.steps)]
        parts += ["### Latency by step", text(MEANING), table(STEP_HEADINGS, rows)]
    if measured.saturation is not None:
        drawn = _saturation_plots(report) if with_plots else []
        parts += [
            "### Saturation",
            text(sentence(measured.saturation)),
            *(_pictures(report, drawn) if drawn else []),
        ]
    if measured.request_rate:
        parts += ["### Request rates", f"#### Open loop: {title}", _full(REQUEST_RATE, measured.request_rate)]
    return parts


def _full(columns: tuple[Column, ...], rows: list[RowStatus]) -> str:
    kept = columns_with_values(columns, rows)
    lines = [[text(each) for each in cells(row, kept)] for row in rows]
    whole = table([column.heading for column in kept], lines)
    unstable = sum(not row.stable for row in rows)
    note = f"\n\n{unstable} of {len(rows)} measurements are unstable: no three windows agreed." if unstable else ""
    return f"<details>\n<summary>\nFull tabular data\n</summary>\n\n{whole}{note}\n\n</details>"


def _accuracy(report: Report) -> list[str]:
    said = [f"{text(report.verified)}."] if report.verified else []
    if not report.accuracy:
        return ["## Accuracy", *said] if said else []
    rows = [
        [
            *(text(row.metric), text(row.framework), text(row.served), str(row.samples)),
            *(text(row.threshold or "none"), cell(row.passed)),
        ]
        for row in report.accuracy
    ]
    return ["## Accuracy", *said, table(["Metric", "Framework", "Served", "Samples", "Threshold", "Passed"], rows)]


def _candidates(report: Report) -> list[str]:
    if not report.candidates:
        return []
    rows = [
        [
            cell(each.status.rank),
            text(each.status.name),
            each.status.state,
            text(each.status.throughput),
            milliseconds(each.status.p99_latency),
            text(each.status.load),
            text(margin(each.status)),
            cell(each.status.pareto),
            text(max_error(each.status, report.signature)),
            " ".join(filter(None, (code(each.status.reason or ""), *map(text, _words(each))))),
        ]
        for each in report.candidates
    ]
    headings = [
        *("Rank", "Candidate", "State", "Inferences/second", "P99 Latency", "At"),
        *("Margin", "Pareto", "Max error", "Reason"),
    ]
    return ["## Candidates", table(headings, rows)]


def _words(candidate: CandidateReport) -> tuple[str, str, str]:
    """Return what is said of a candidate: its message, what to do, and what an INT8 graph is like."""
    status = candidate.status
    return status.message, candidate.advice, f"{status.quantization.sentence()}." if status.quantization else ""


def _searches(report: Report) -> list[str]:
    parts = ["## Search"] if report.searches else []
    for each in report.searches:
        status = each.status
        how = status.ended or "running"
        words = f"{status.measurements} measurements in a space of {status.size or '?'} points; {how}"
        parts.append(f"### {text(status.candidate)}: {text(words)}")
        if status.config is not None:
            found = f"{status.throughput} inferences/second, P99 {status.p99_latency} at {status.load}"
            parts.append(f"Best: {text(str(status.config))}: {text(found)}.")
        if status.message:
            parts.append(text(status.message))
        rows = [[text(word) for word in (str(point.config), *_point(point))] for point in each.points]
        if rows:
            headings = ["Configuration", "At", "Inferences/second", "P99 Latency", "Spread (%)"]
            whole = table(headings, rows)
            parts.append(f"<details>\n<summary>\nAll points\n</summary>\n\n{whole}\n\n</details>")
    return parts


def _point(point: PointReport) -> tuple[str, str, str, str]:
    row = point.row
    if row is None:
        return f"not served: {point.refused}", "", "", ""
    where, p99 = f"batch {row.batch_size}, concurrency {row.concurrency}", milliseconds(row.p99_latency)
    return where, row.throughput, p99, row.spread_percent


def _environment(report: Report) -> list[str]:
    where = report.performance.environment if report.performance else None
    if where is None:
        return []
    lines = "\n".join(f" * **{name}:** {text(value)}" for name, value in environment_lines(where))
    commands = "\n".join(f"    {' '.join(line.split())}" for line in where.perf_analyzer)
    again = "These commands were run, one for each sweep (docs/measuring.md says how to run them again):"
    return ["## Environment", lines, f"{again}\n\n{commands}"]


def _offline_plots(report: Report) -> list[plots.Plot]:
    return [*plots.offline(report)] if report.performance and report.performance.offline else []


def _online_plots(report: Report) -> list[plots.Plot]:
    if report.performance is None or not report.performance.online:
        return []
    stacked = plots.components(report.performance.online, "online-latency", "Average latency against concurrency")
    return [stacked, *plots.tradeoff(report)]


def _saturation_plots(report: Report) -> list[plots.Plot]:
    return plots.saturation(report) if report.performance and report.performance.saturation else []


def _pictures(report: Report, found: Sequence[plots.Plot]) -> list[str]:
    return ["".join(f"|![{each.title}]({_path(report, each)})" for each in found) + "|\n" + "|---" * len(found) + "|"]


def _path(report: Report, plot: plots.Plot) -> Path:
    # A saved file may name the object "../../x".
    return Path(FOLDER, f"{quote(report.name, safe='')}-{plot.name}.svg")
