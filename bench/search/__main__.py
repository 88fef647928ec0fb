"""`python3 -m bench.search`: compare the quick search with Model Analyzer's on one server image, model and constraint.

Both start with the default configuration: one instance, no batching. The constraint is a p99 budget that this default
misses at the heaviest load of the sweep. The result of a search is its configuration with the most throughput within
the budget, or else the one closest to it, by its own measurements. In the end both results are measured again on one
server, in turns.
"""

import json
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from math import ceil
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.machine import cpu_model
from bench.search import analyzer
from bench.search.candidate import BASE, MAX_BATCH_SIZE, Candidate, answer, prepare
from hack.imagebuild.pod import ROOT, Pod, explicit, serving
from triton_converters.contract.measurement_requests import Constraint, Measurement, MeasureRequest, Sweep
from triton_converters.contract.results import MeasureResult, Row, SearchPoint, Tuning
from triton_converters.contract.scoring import best_point, distance
from triton_converters.measuring.server import Server
from triton_converters.model_config.model import retuned
from triton_converters.search.space import MAXIMUM_INSTANCES
from triton_converters.stages.search.produce import describe

KIND = "table"
ONLINE = Sweep((1,), (8, 16, 32), False)
MEASUREMENT = Measurement("CountWindows", 50, 5000, 10)
"""The operator's defaults, which are also perf_analyzer's and Model Analyzer's."""
AGAIN = Measurement("CountWindows", 1000, 5000, 10)
TURNS = 2
BUDGET_OF_BASE = 0.7
"""The latency budget as a share of the default configuration's p99 at the heaviest load.

At 0.6 of the lightest load's p99 it lay within the noise of the best configuration. It is rounded up to whole
milliseconds, as Model Analyzer requires.
"""
MEASUREMENTS, SECONDS = 40, 1800
RESULTS = ROOT / "bench/results"


@dataclass(frozen=True)
class Outcome:
    """The result of one search."""

    name: str
    measurements: int
    seconds: float
    meets: bool
    """Whether it keeps the budget; otherwise it is the closest."""
    tuning: Tuning
    concurrency: int
    throughput: float
    p99_microseconds: float


def main() -> int:
    """Run both, print a table and write the raw figures; return the exit status."""
    console = Console(highlight=False, width=140)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "claim")
        root.mkdir()
        candidate = prepare(root, KIND)
        with serving(root, KIND, explicit(KIND)) as pod:
            base, budget, ours, points = _search(candidate, pod)
        theirs = analyzer.search(candidate, MEASUREMENT, ONLINE, budget // 1000, Path(folder, "analyzer"))
        with serving(root, KIND, explicit(KIND)) as pod:
            outcomes = (
                ours,
                Outcome(
                    "Model Analyzer", theirs.measurements, theirs.seconds, theirs.meets, theirs.tuning,
                    theirs.concurrency, theirs.throughput, theirs.p99_microseconds,
                ),
            )  # fmt: skip
            loads = [("default", BASE, max(ONLINE.concurrencies))]
            loads += [(each.name, each.tuning, each.concurrency) for each in outcomes]
            again: dict[str, list[Row]] = {name: [] for name, _, _ in loads}
            for turn in range(TURNS):
                for name, tuning, load in loads:
                    again[name].append(_measure(candidate, pod, f"again-{turn}-{len(name)}", tuning, load))
    console.print(table(outcomes, again, budget))
    document = {
        "measuredAt": datetime.now(UTC).isoformat(timespec="seconds"),
        "cpu": cpu_model(),
        "model": KIND,
        "constraint": f"p99 at most {budget} us",
        "default": [asdict(row) for row in base],
        "outcomes": [asdict(outcome) for outcome in outcomes],
        "points": [asdict(point) for point in points],
        "modelAnalyzer": analyzer.as_record(theirs),
        "again": {name: [asdict(row) for row in rows] for name, rows in again.items()},
    }
    file = RESULTS / f"search-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.json"
    file.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    console.print(f"raw figures: {file.relative_to(ROOT)}")
    return 0


def table(outcomes: tuple[Outcome, ...], again: dict[str, list[Row]], budget: int) -> Table:
    """Return a table with one line for the default and one for each search."""
    shown = Table(title=f"{KIND}: most throughput with p99 of at most {budget / 1000:g} ms", title_justify="left")
    words = ("", "found", "configuration", "again")
    figures = ("measurements", "seconds", "concurrency", "inferences/s", "p99 ms")
    for heading in ("", *figures[:2], *words[1:3], *figures[2:], words[3]):
        shown.add_column(heading, justify="right" if heading in figures else "left")
    load = str(max(ONLINE.concurrencies))
    shown.add_row("default", "", "", "", describe(BASE), load, "", "", _again(again["default"], budget))
    for each in outcomes:
        shown.add_row(
            each.name,
            str(each.measurements),
            f"{each.seconds:.0f}",
            "meets it" if each.meets else "nothing that meets it; the closest",
            describe(each.tuning),
            str(each.concurrency),
            f"{each.throughput:.0f}",
            f"{each.p99_microseconds / 1000:.1f}",
            _again(again[each.name], budget),
        )
    return shown


def _again(rows: list[Row], budget: int) -> str:
    return "; ".join(f"{row.throughput:.0f}/s, {row.p99 / 1000:.1f} ms{' (over)' * (row.p99 > budget)}" for row in rows)


def _search(candidate: Candidate, pod: Pod) -> tuple[tuple[Row, ...], int, Outcome, list[SearchPoint]]:
    """Return the base's measurements, the budget in microseconds, the quick search's result and its points.

    Its measurements are those of the base, of the search and the two repeats; its time is that of both stages.
    """
    started = time.monotonic()
    base = candidate.profile(pod, MEASUREMENT, ONLINE).online
    budget = ceil(BUDGET_OF_BASE * max(row.p99 for row in base) / 1000) * 1000
    constraints = (Constraint("P99LatencyMicroseconds", None, float(budget)),)
    results = candidate.search(
        pod, MEASUREMENT, ONLINE, mode="Quick", maximum_instances=MAXIMUM_INSTANCES, objectives=(),
        constraints=constraints, measurements=MEASUREMENTS, seconds=SECONDS,
    )  # fmt: skip
    seconds = time.monotonic() - started
    points = [point for part in results for point in part.points]
    repeats = list(results[-1].repeats)
    best = best_point(points, repeats, (), constraints)
    assert best is not None, "nothing was measured"
    assert best.row is not None
    row = best.row
    count = len(base) + len(points) + len(repeats)
    meets = distance(row, constraints) == 0.0
    outcome = Outcome(
        "triton-operator, Quick", count, seconds, meets, best.tuning, row.concurrency, row.throughput, row.p99
    )
    return base, budget, outcome, points + repeats


def _measure(candidate: Candidate, pod: Pod, key: str, tuning: Tuning, concurrency: int) -> Row:
    """Return a configuration's measurement with long windows."""
    kind, load = candidate.kind, pod.load(AGAIN)
    server = Server(load, kind)
    refusal = server.reload(retuned((candidate.repository / kind / "config.pbtxt").read_text(encoding="utf-8"), tuning))
    assert not refusal, refusal
    server.wait_ready()
    online = Sweep((1,), (concurrency,), False)
    request = MeasureRequest(key, kind, kind, kind, tuning.max_batch_size, load, online)
    result = answer(pod.start_stage("measure", request))
    assert isinstance(result, MeasureResult)
    return result.online[0]


if __name__ == "__main__":
    assert BASE.max_batch_size == MAX_BATCH_SIZE
    sys.exit(main())
