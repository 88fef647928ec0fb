"""Writes the report with the sections and the columns of the READMEs in NVIDIA's DeepLearningExamples.

Latencies are in milliseconds, as in most of those READMEs.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import quote

from triton_converters.contract.results import SCENARIOS
from triton_operator.api.measured_status import RowStatus
from triton_plugin.telling import columns
from triton_plugin.telling.columns import (
    COMPONENTS,
    OFFLINE,
    OFFLINE_COMPONENTS,
    ONLINE,
    REQUEST_RATE,
    STEPS,
    Cells,
    Column,
    load_of_figures,
)
from triton_plugin.telling.mixed_shapes import sentences
from triton_plugin.telling.report import plots
from triton_plugin.telling.report.document import CANDIDATE_HEADINGS, POINT_HEADINGS, Report, environment_lines
from triton_plugin.telling.report.palette import as_light
from triton_plugin.telling.report.parameters import heading
from triton_plugin.telling.saturation import sentence
from triton_plugin.telling.steps import MEANING

FOLDER = "plots"
THROUGH_SERVICE = "These are measured through the Service, as clients get them; each candidate, on its own server."
ENDED = {"Failed": "failed", "Skipped": "is skipped"}
"""The states of candidates that are known issues, in words."""
_ESCAPED = str.maketrans({c: "\\" + c for c in "\\`*_{}[]<>#|~$"} | {"&": "&amp;", "\n": " ", "\r": " ", "\t": " "})


def as_markdown(report: Report, with_plots: bool) -> str:
    """Return the whole text. ``with_plots``: it refers to the files of ``drawings``."""
    parts = [
        f"# Deploying the {text(report.name)} model on Triton Inference Server",
        _overview(report),
        *_setup(report),
        *_advanced(report),
        *_performance(report, with_plots),
        *_accuracy(report),
        *_candidates(report),
        *_searches(report),
        *_environment(report),
        *_release_notes(report),
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


def escaped_table(cells: Cells) -> str:
    """Return a table of cells that may have any text."""
    return table(cells.headings, [[text(each) for each in row] for row in cells.rows])


def _is_figure(word: str) -> bool:
    return word.replace(".", "", 1).isdigit()


def _overview(report: Report) -> str:
    lines = ["## Solution overview", ""]
    lines += "\n\n".join(f"**{text(each.title)}**: {text(each.text)}." for each in report.remarks).split("\n")
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


def _setup(report: Report) -> list[str]:
    lines = [f" * **{each.name}:** {text(each.value)}" for each in report.setup]
    return ["## Setup", "\n".join(lines)] if lines else []


def _release_notes(report: Report) -> list[str]:
    lines = [
        f" * {text(each.measured_at[:10])}: candidate {text(each.candidate)} of source {text(each.source)}, revision"
        f" {text(each.revision)}{text(''.join(f', {name} {value}' for name, value in each.metrics.items()))}"
        for each in report.releases
    ]
    changelog = ["### Changelog", "\n".join(lines)] if lines else []
    issues = "\n".join(f" * {text(each)}" for each in _known_issues(report))
    return ["## Release Notes", *changelog, "### Known issues", issues or "No issues are known."]


def _known_issues(report: Report) -> Iterator[str]:
    """Yield what is wrong with the object, its candidates, their figures and their conversions, in sentences."""
    ready = report.condition("Ready")
    if ready is None or ready.status != "True":
        yield f"The object is not ready: {ready.message if ready else 'the operator has not seen it yet'}."
    for status in (each.status for each in report.candidates):
        if status.state in ENDED:
            yield f"Candidate {status.name} {ENDED[status.state]}: {status.message}."
    for search in report.searches:
        if search.status.ended == "Failed":
            yield f"The search from candidate {search.status.candidate} failed: {search.status.message}."
    yield from _unstable_figures(report)
    for warning in dict.fromkeys(warning for each in report.candidates for warning in each.warnings):
        names = ", ".join(each.status.name for each in report.candidates if warning in each.warnings)
        yield f"The conversion warned ({names}): {warning}"


def _unstable_figures(report: Report) -> Iterator[str]:
    if unstable := [each.status.name for each in report.candidates if each.status.stable is False]:
        yield f"The figures of these candidates are unstable, since no three windows agreed: {', '.join(unstable)}."
    measured = report.performance
    rows = [row for scenario in SCENARIOS for row in measured.rows(scenario)] if measured else []
    if changing := sum(not row.stable for row in rows):
        yield f"{changing} of {len(rows)} measurements of the active revision are unstable."


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
    title = text(", ".join([*device, heading(report.parameters)]))
    parts = ["## Performance", "Latencies are in milliseconds."]
    if measured.mixed_shapes is not None:
        parts.append(text(sentences(measured.mixed_shapes)))
    if measured.offline:
        pictures = _pictures(report, _offline_plots(report)) if with_plots else []
        parts += ["### Offline scenario", f"#### Offline: {title}", *pictures, full_table(OFFLINE, measured.offline)]
        parts.append(full_table(OFFLINE_COMPONENTS, measured.offline, "Components of the latency"))
    if measured.online:
        pictures = _pictures(report, _online_plots(report)) if with_plots else []
        parts += ["### Online scenario", f"#### Online: {title}", THROUGH_SERVICE, *pictures]
        parts.append(full_table(ONLINE, measured.online))
    if measured.steps:
        parts += ["### Latency by step", text(MEANING), escaped_table(columns.steps(measured.steps))]
    if measured.saturation is not None:
        drawn = _saturation_plots(report) if with_plots else []
        parts += [
            "### Saturation",
            text(sentence(measured.saturation)),
            *(_pictures(report, drawn) if drawn else []),
        ]
    if measured.request_rate:
        parts += ["### Request rates", f"#### Open loop: {title}", full_table(REQUEST_RATE, measured.request_rate)]
    return parts


def full_table(shown: tuple[Column, ...], rows: list[RowStatus], summary: str = "Full tabular data") -> str:
    """Return a sweep's table below a summary that opens it, and how many measurements are unstable."""
    whole = escaped_table(columns.sweep(shown, rows))
    unstable = sum(not row.stable for row in rows)
    note = f"\n\n{unstable} of {len(rows)} measurements are unstable: no three windows agreed." if unstable else ""
    return f"<details>\n<summary>\n{summary}\n</summary>\n\n{whole}{note}\n\n</details>"


def _accuracy(report: Report) -> list[str]:
    said = [f"{text(report.verified)}."] if report.verified else []
    if not report.accuracy:
        return ["## Accuracy", *said] if said else []
    return ["## Accuracy", *said, escaped_table(columns.accuracy(report.accuracy))]


def _candidates(report: Report) -> list[str]:
    if not report.candidates:
        return []
    rows = [
        [*map(text, each.cells(report.signature)), " ".join([code(each.status.reason or ""), *map(text, each.words)])]
        for each in report.candidates
    ]
    return ["## Candidates", table(CANDIDATE_HEADINGS, rows)]


def _searches(report: Report) -> list[str]:
    parts = ["## Search"] if report.searches else []
    for each in report.searches:
        status = each.status
        parts.append(f"### {text(status.candidate)}: {text(columns.search_summary(status))}")
        if status.config is not None:
            found = f"{status.throughput} inferences/second, P99 {status.p99_latency} at {status.load}"
            parts.append(f"Best: {text(str(status.config))}: {text(found)}.")
        if status.message:
            parts.append(text(status.message))
        if each.points:
            whole = escaped_table(Cells(POINT_HEADINGS, [point.cells for point in each.points]))
            parts.append(f"<details>\n<summary>\nAll points\n</summary>\n\n{whole}\n\n</details>")
    return parts


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
