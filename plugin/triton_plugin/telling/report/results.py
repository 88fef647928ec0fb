"""The results of several reports, as NVIDIA's READMEs have them: a section for each scenario, device and candidate."""

from collections.abc import Iterator, Sequence

from triton_plugin.telling.columns import OFFLINE, OFFLINE_COMPONENTS, ONLINE, REQUEST_RATE, Column
from triton_plugin.telling.mixed_shapes import sentences
from triton_plugin.telling.report.as_markdown import full_table, table, text
from triton_plugin.telling.report.document import Measured, Report
from triton_plugin.telling.report.parameters import heading

SCENARIOS: Sequence[tuple[str, str, tuple[Column, ...]]] = (
    ("Offline", "Offline", OFFLINE),
    ("Online", "Online", ONLINE),
    ("RequestRate", "Open loop", REQUEST_RATE),
)
"""Each scenario of the API, its name in the text, and its columns."""
OF_DEVICE = ("GPU", "Device Kind")
"""The parameters that name the device of the active revision."""


def results(reports: Sequence[Report]) -> str:
    """Return the document, with a section for each sweep of each candidate; empty: there are none."""
    parts: list[str] = []
    for scenario, name, columns in SCENARIOS:
        found = [each for report in reports for each in _sections(report, scenario, name, columns)]
        parts += [f"## {name} scenario", *found] if found else []
    first = "# Performance", "Latencies are in milliseconds; each candidate's server was measured in its own pod."
    return "\n\n".join([*first, *parts]) + "\n" if parts else ""


def _sections(report: Report, scenario: str, name: str, columns: tuple[Column, ...]) -> Iterator[str]:
    for each in report.candidates:
        if each.measured is None or not (rows := each.measured.rows(scenario)):
            continue
        kind, device = _device(each.measured)
        yield f"### {name}: {text(f'{report.model} on {device}, {heading(each.parameters)}')}"
        yield "These results are of the following configuration:"
        given = [(line.name, line.value) for line in each.parameters if line.name not in OF_DEVICE]
        lines = [(kind, device), ("Candidate", each.status.name), *given]
        yield table(["Parameter Name", "Parameter Value"], [[*map(text, line)] for line in lines])
        if each.measured.mixed_shapes is not None:
            yield text(sentences(each.measured.mixed_shapes))
        yield full_table(columns, rows)
        if scenario == "Offline":
            yield full_table(OFFLINE_COMPONENTS, rows, "Components of the latency")


def _device(measured: Measured) -> tuple[str, str]:
    where = measured.environment
    if where is not None and where.device == "gpu":
        return "GPU", where.gpu_product or "unknown GPU"
    return "CPU", (where.cpu if where else "") or "unknown CPU"
