"""Writes the report as one HTML file that loads no font, script or picture."""

import re
from hashlib import sha256

from markupsafe import Markup, escape

from triton_plugin.telling import columns
from triton_plugin.telling.mixed_shapes import sentences
from triton_plugin.telling.report import plots
from triton_plugin.telling.report.document import (
    CANDIDATE_HEADINGS,
    POINT_HEADINGS,
    CandidateReport,
    Report,
    environment_lines,
)
from triton_plugin.telling.report.page import render
from triton_plugin.telling.report.palette import as_variables
from triton_plugin.telling.saturation import sentence
from triton_plugin.telling.steps import MEANING


def as_html(report: Report) -> str:
    """Return the whole file. All values are escaped, and the page runs only its own script."""
    online = report.performance.online if report.performance else []
    return render(
        "report.html",
        report=report,
        load=columns.load_of_figures(report.serving, online) if report.serving else "",
        tradeoff=plots.tradeoff(report),
        saturation=plots.saturation(report),
        sentence=sentence,
        sentences=sentences,
        sweep_name=columns.SWEEPS[report.scenario],
        offline=plots.offline(report),
        online=plots.components(online, "online-latency", "Average latency against concurrency") if online else None,
        details=[(each, _online(each)) for each in report.candidates if each.measured],
        drawing=lambda plot: Markup(as_variables(plot.svg)),  # noqa: S704 - matplotlib escapes the names in it
        environment_lines=environment_lines,
        ALL=columns.ALL,
        CANDIDATE_HEADINGS=CANDIDATE_HEADINGS,
        POINT_HEADINGS=POINT_HEADINGS,
        STEPS=columns.STEPS,
        STEPS_MEANING=MEANING,
        steps=columns.steps,
        search_summary=columns.search_summary,
        heading=_heading,
        sweep=columns.sweep,
        accuracy=columns.accuracy,
    )


def _heading(text: str) -> Markup:
    """Return a heading with places to break: a table has 18 columns."""
    return Markup(re.sub(r"([/+])", r"\1<wbr>", str(escape(text))))  # noqa: S704 - escaped


def _online(candidate: CandidateReport) -> plots.Plot | None:
    if candidate.measured is None or not candidate.measured.online:
        return None
    name = candidate.status.name
    # The name is in ids of the page, and the user's.
    stem = "candidate-" + sha256(name.encode()).hexdigest()[:8]
    return plots.components(candidate.measured.online, stem, f"{name}: average latency against concurrency")
