"""A table of the figures next to KServe's."""

from statistics import median
from typing import Any

from rich.table import Table

from bench.scale.scenarios import Figures

KSERVE = {
    ("paced", 50): "34-39 / 70-105 ms",
    ("burst", 100): "4.8-5.6 s",
    ("burst", 1000): "59-68 s",
    ("resident", 1000): "155-160 MiB",
    ("restart", 1000): "0 to 1,003 / 1,003",
    ("quiet", 1000): "15-22 s",
}
"""KServe v0.20.0's controller (Go), measured in the same way on two cores: docs/benchmarks.md."""


def table(figures: dict[str, list[Figures]]) -> Table:
    """Return one row for each measure, with the lowest and the highest figure of several runs."""
    rows = Table(title="The operator with many objects", title_justify="left")
    for heading in ("measure", "objects", "triton-operator", "KServe's controller"):
        rows.add_column(heading, justify="left" if heading == "measure" else "right")

    def add(measure: str, kind: str, objects: int, value: str) -> None:
        rows.add_row(measure, f"{objects:,}", value, KSERVE.get((kind, objects), ""))

    for objects, runs in _by_objects(figures["paced"]).items():
        p50 = _span(runs, "job", "milliseconds", "p50")
        add("created to first Job, one every 200 ms, p50 / p99", "paced", objects,
            f"{p50} / {_span(runs, 'job', 'milliseconds', 'p99')} ms")  # fmt: skip
    for objects, runs in _by_objects(figures["burst"]).items():
        add("burst: until each has its first Job", "burst", objects, f"{_span(runs, 'job', 'allSeconds', digits=1)} s")
        add("burst: until nothing more is written", "settled", objects, f"{_span(runs, 'settledSeconds', digits=1)} s")
        add("resident at rest", "resident", objects, f"{_span(runs, 'rest', 'residentMib')} MiB")
        cost = _span(runs, "pass", "cpuMillisecondsOfAnEdit", digits=1)
        add("CPU time of an edit that changes nothing, its pass included", "pass", objects, f"{cost} ms")
        shares = [100 * run["rest"]["cpuShareOfOneCore"] for run in runs]
        writes = max(sum(run["rest"]["writes"].values()) for run in runs)
        add("at rest: CPU of one core / writes in a minute", "rest", objects, f"{median(shares):.2f} % / {writes}")
    for objects, runs in _by_objects(figures["floor"]).items():
        operators = [run for run in figures["burst"] if run["objects"] == objects]
        for measure, path in (
            ("each has its first Job", ("job", "allSeconds")),
            ("nothing more is written", ("settledSeconds",)),
        ):
            add(f"floor of a burst: until {measure}", "floor", objects, f"{_span(runs, *path, digits=1)} s")
            ratio = median(_at(run, path) for run in operators) / median(_at(run, path) for run in runs)
            add("the operator's time as a multiple of it", "floor", objects, f"{ratio:.2f}")
    for objects, runs in _by_objects(figures["restart"]).items():
        writes, dry = (max(sum(run[kind].values()) for run in runs) for kind in ("writes", "dryRuns"))
        add("restart: writes / dry runs", "restart", objects, f"{writes} / {dry}")
        add("restart: quiet after", "quiet", objects, f"{_span(runs, 'quietAfterSeconds', digits=1)} s")
    return rows


def _by_objects(runs: list[Figures]) -> dict[int, list[Figures]]:
    return {
        objects: [run for run in runs if run["objects"] == objects] for objects in {r["objects"]: None for r in runs}
    }


def _span(runs: list[Figures], *path: str, digits: int = 0) -> str:
    """Return the lowest and the highest value of a figure."""
    values = sorted(_at(run, path) for run in runs)
    low, high = f"{values[0]:.{digits}f}", f"{values[-1]:.{digits}f}"
    return low if low == high else f"{low}-{high}"


def _at(run: Any, path: tuple[str, ...]) -> float:
    for step in path:
        run = run[step]
    return float(run)
