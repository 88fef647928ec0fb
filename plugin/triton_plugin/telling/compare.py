"""Compares two objects; their figures are compared only if they were measured alike. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from triton_operator.api.duration import seconds
from triton_operator.api.measured_status import RowStatus
from triton_operator.candidates.environments import differences
from triton_plugin.telling.report.document import Report

MEASURING = ("Protocol", "Shared memory", "Measurement")
"""Parameters of the measurement rather than of what is measured."""
FIGURES = (
    ("Inferences/s", "throughput"),
    ("P50", "p50_latency"),
    ("P99", "p99_latency"),
    ("Average", "average_latency"),
)
"""Headings and fields of a row."""


@dataclass(frozen=True)
class Comparison:
    """What two reports have in common and where they differ."""

    parameters: list[tuple[str, str, str]]
    """Name and both values of each parameter that differs."""
    accuracy: list[tuple[str, str, str]]
    """Metric and both served values; empty text: not computed."""
    obstacles: list[str]
    """Why figures are not compared; empty: they are."""
    rows: list[list[str]]
    """Scenario, load, and one of FIGURES: its heading, both values and the change in percent."""
    unmatched_loads: int
    """Number of loads that only one of the two was measured at."""


def compare(left: Report, right: Report) -> Comparison:
    """Compare the active revisions of both reports."""
    obstacles = list(_obstacles(left, right))
    rows, unmatched = ([], 0) if obstacles else _rows(left, right)
    return Comparison(_parameters(left, right), _accuracy(left, right), obstacles, rows, unmatched)


def _obstacles(left: Report, right: Report) -> Iterator[str]:
    for each in (left, right):
        if each.performance is None or each.performance.environment is None:
            yield f"{each.name} has no active revision that was measured"
            return
    assert left.performance is not None
    assert right.performance is not None
    assert left.performance.environment is not None
    assert right.performance.environment is not None
    yield from differences(left.performance.environment, right.performance.environment)
    if left.performance.mixed_shapes != right.performance.mixed_shapes:
        yield "the samples' shapes differ"
    ours, theirs = ({each.name: each.value for each in report.parameters} for report in (left, right))
    for name in MEASURING:
        if ours.get(name) != theirs.get(name):
            yield f"{name.lower()} differs: {ours.get(name)} and {theirs.get(name)}"


def _parameters(left: Report, right: Report) -> list[tuple[str, str, str]]:
    ours, theirs = ({each.name: each.value for each in report.parameters} for report in (left, right))
    ours |= _identity(left)
    theirs |= _identity(right)
    union = dict.fromkeys([*_identity(left), *ours, *theirs])
    return [(name, ours.get(name, ""), theirs.get(name, "")) for name in union if ours.get(name) != theirs.get(name)]


def _identity(report: Report) -> dict[str, str]:
    return {
        "Model": report.model,
        "Candidate": report.serving.candidate if report.serving else "",
        "Revision": report.serving.revision if report.serving else "",
        "Source": report.source.digest if report.source else "",
    }


def _accuracy(left: Report, right: Report) -> list[tuple[str, str, str]]:
    ours, theirs = ({each.metric: each.served for each in report.accuracy} for report in (left, right))
    return [(name, ours.get(name, ""), theirs.get(name, "")) for name in dict.fromkeys([*ours, *theirs])]


def _rows(left: Report, right: Report) -> tuple[list[list[str]], int]:
    assert left.performance is not None
    assert right.performance is not None
    lines, unmatched = [], 0
    for scenario in ("Offline", "Online"):
        ours, theirs = (_by_load(getattr(each.performance, scenario.lower())) for each in (left, right))
        unmatched += len(ours.keys() ^ theirs.keys())
        lines += [(scenario, load, ours[load], theirs[load]) for load in ours.keys() & theirs.keys()]
    lines.sort(key=lambda line: line[:2])
    rows = [
        [scenario, _load(load), *figure] for scenario, load, ours, theirs in lines for figure in _figures(ours, theirs)
    ]
    return rows, unmatched


def _by_load(rows: Sequence[RowStatus]) -> dict[tuple[int, int, str], RowStatus]:
    return {(row.batch_size, row.concurrency or 0, row.input_shape): row for row in rows}


def _load(load: tuple[int, int, str]) -> str:
    batch, concurrency, shape = load
    return f"batch {batch}, concurrency {concurrency}" + (f", {shape}" if shape else "")


def _figures(left: RowStatus, right: RowStatus) -> Iterator[tuple[str, str, str, str]]:
    for heading, field in FIGURES:
        ours, theirs = getattr(left, field), getattr(right, field)
        before, after = (float(each) if field == "throughput" else seconds(each) for each in (ours, theirs))
        yield heading, ours, theirs, f"{(after / before - 1) * 100:+.0f} %" if before else ""
