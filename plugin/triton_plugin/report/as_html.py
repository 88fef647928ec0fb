"""Writes the report as one HTML file that loads no font, script or picture."""

import re
from base64 import b64encode
from hashlib import sha256
from importlib.resources import files

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup, escape

from triton_plugin import columns
from triton_plugin.report import plots
from triton_plugin.report.document import CandidateReport, Report, environment_lines
from triton_plugin.report.palette import as_variables, variables
from triton_plugin.saturation import sentence
from triton_plugin.tables import margin


def as_html(report: Report) -> str:
    """Return the whole file. All values are escaped, and the page runs only its own script."""
    online = report.performance.online if report.performance else []
    script = _read("report.js")
    # The page says by hash which script may run, so the text between the tags must be these very characters.
    script_hash = "sha256-" + b64encode(sha256(script.encode()).digest()).decode()
    # The dependency's default is not to escape; every value here may be a user's.
    template = Environment(autoescape=True, undefined=StrictUndefined).from_string(_read("report.html"))
    return template.render(
        report=report,
        tradeoff=plots.tradeoff(report),
        saturation=plots.saturation(report),
        sentence=sentence,
        sweep_name=columns.SWEEPS[report.scenario],
        offline=plots.offline(report),
        online=plots.components(online, "online-latency", "Average latency against concurrency") if online else None,
        details=[(each, _online(each)) for each in report.candidates if each.measured],
        drawing=lambda plot: Markup(as_variables(plot.svg)),  # noqa: S704 - matplotlib escapes the names in it
        environment_lines=environment_lines,
        ALL=columns.ALL,
        STEPS=columns.STEPS,
        heading=_heading,
        cell=columns.cell,
        milliseconds=columns.milliseconds,
        margin=margin,
        cells=columns.cells,
        filled=columns.columns_with_values,
        light=Markup(variables(dark=False)),  # noqa: S704 - constants of this program
        dark=Markup(variables(dark=True)),  # noqa: S704 - constants of this program
        style=Markup(_read("report.css")),  # noqa: S704 - a file of this package
        script=Markup(script),  # noqa: S704 - a file of this package
        script_hash=script_hash,
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


def _read(name: str) -> str:
    return files("triton_plugin.report").joinpath(name).read_text(encoding="utf-8")
