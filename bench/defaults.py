"""`python3 -m bench.defaults`: how much of a server's best throughput an object gets that says nothing of its load.

Three models are served by the real tritonserver, one after the other. The budget is a multiple of the p99 that the
untouched object's sweep shows with one request in flight. Every configuration of a grid is measured at every
concurrency, once. Then, five times in turns: the sweeps of the untouched object, and the grid's best configuration
within the budget. Needs the images, and no cluster; the machine should do nothing else.

Of a model's 400 seconds, the ten configurations take 20 each (six points of two seconds, and the stage's start), and
a round 40: 25 of the untouched object's sweeps, and three points. Three models take 20 minutes; a busy node, where
windows do not agree, three times as long.
"""

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from math import ceil
from pathlib import Path
from typing import Any

import numpy
import onnx
from rich.console import Console
from rich.table import Table

from bench import mixed
from bench.gates.claim import key_of, publish_model
from bench.machine import cpu_model
from bench.residual_network import SIDE, residual_network
from hack.deploy.command import ROOT
from hack.imagebuild.pod import Pod, explicit, serving
from triton_converters.claim_store.dump import Array
from triton_converters.contract import layout
from triton_converters.contract.document import Document
from triton_converters.contract.measurement_requests import (
    DEFAULT_TOLERANCES,
    Measurement,
    MeasureRequest,
    ProfileRequest,
    Sweep,
)
from triton_converters.contract.results import MeasureResult, ProfileResult, Row, Tuning
from triton_converters.measuring.server import Server
from triton_converters.model_config.model import retuned
from triton_converters.stages.search.produce import describe
from triton_operator.api.duration import amount
from triton_operator.api.performance import ConcurrencyRange, MeasurementOptions
from triton_operator.jobs.profile import FAST_MILLISECONDS, SWEEPS_SECONDS
from triton_operator.planning.resolving import DEFAULT_MAX_BATCH_SIZE

ROUNDS = 5
SEED = 7
SAMPLES = 64
BUDGET = 4
"""The latency budget, as a multiple of the p99 with one request in flight."""
REVISION, MODEL = "def0a1750def0a17", "subject"
KEY = key_of(MODEL)
UNTOUCHED = Tuning(DEFAULT_MAX_BATCH_SIZE, 1, True, (), 0, False)
"""What the operator makes of an ONNX file with a batch dimension whose object says nothing else."""
LARGEST_BATCH = 32
GRID = tuple(
    Tuning(batch, instances, True, (), delay, False)
    for instances in (1, 2)
    for batch in (1, 4, 8, LARGEST_BATCH)
    for delay in (0, 1000)
    if not delay or (batch > 4 and instances == 1)
)
"""One request at a time, and batches of up to 4, 8 and 32; a wait for more requests where one instance gathers many."""
CONCURRENCIES = (1, 2, 4, 8, 16, 32)
SHORT = Measurement("TimeWindows", 20, FAST_MILLISECONDS, 50)
"""The windows of the grid, and of its best configuration in each round."""
STAGE_SECONDS = 900


@dataclass(frozen=True)
class Subject:
    """A model and what it is sent."""

    name: str
    make: Callable[[], Any]
    """Returns the graph."""
    samples: Callable[[], list[dict[str, Array]]]


@dataclass(frozen=True)
class Bench:
    """What can be asked of a served model; both return measurements."""

    untouched: Callable[[], Sequence[Row]]
    """Runs the sweeps of an untouched object."""
    tuned: Callable[[Tuning, Sequence[int]], Sequence[Row]]
    """Measures a configuration at some concurrencies."""


@dataclass(frozen=True)
class Compared:
    """What was found for one model."""

    name: str
    budget_microseconds: int
    best: Tuning
    """The configuration of the grid with the most throughput within the budget."""
    best_concurrency: int
    points: tuple[tuple[Tuning, Row], ...]
    """All that was measured of the grid, once each."""
    ours: tuple[Row | None, ...]
    """The best row of the untouched object within the budget, of each round; None: no row meets it."""
    theirs: tuple[Row | None, ...]
    """The same of the grid's best configuration."""

    @property
    def share(self) -> float | None:
        """The median of the rounds' shares: what the untouched object got of what the best configuration did.

        None: in no round did the best configuration meet the budget again.
        """
        shares = [
            (ours.throughput if ours else 0.0) / theirs.throughput
            for ours, theirs in zip(self.ours, self.theirs, strict=True)
            if theirs
        ]
        return statistics.median(shares) if shares else None


def main() -> int:
    """Measure, print one table and write the raw figures; return the exit status."""
    parser = argparse.ArgumentParser(prog="python3 -m bench.defaults", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"a model of {', '.join(SUBJECTS)}; default: all")
    parser.add_argument("--output", type=Path, metavar="FILE", help="where the raw figures go; default: bench/results")
    parser.add_argument("--rounds", type=int, default=ROUNDS, metavar="N", help=f"default: {ROUNDS}")
    options = parser.parse_args()
    if unknown := set(options.names) - set(SUBJECTS):
        parser.error(f"there is no model {', '.join(sorted(unknown))}: choose of {', '.join(SUBJECTS)}")
    output = options.output or ROOT / f"bench/results/defaults-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.json"
    compared: list[Compared] = []
    for name in options.names or SUBJECTS:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            subject = SUBJECTS[name]
            publish_model(root, REVISION, MODEL, subject.make(), LARGEST_BATCH, subject.samples())
            with serving(root, REVISION, explicit(MODEL)) as pod:
                compared.append(compare(name, bench_of(root, pod), options.rounds))
        # After each model: a run that is interrupted leaves those that it has.
        document = {
            "cpu": cpu_model(),
            "budget": BUDGET,
            "compared": [{"share": each.share, **asdict(each)} for each in compared],
        }
        output.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    Console(highlight=False, width=140).print(table(compared))
    print(f"raw figures: {output}")
    return 0


def compare(name: str, bench: Bench, rounds: int = ROUNDS, grid: Sequence[Tuning] = GRID) -> Compared:
    """Find the best of the grid within the budget, and compare the untouched object with it.

    Raises LookupError if nothing of the grid meets the budget.
    """
    first = bench.untouched()
    budget = BUDGET * min(first, key=lambda row: row.concurrency).p99
    print(f"{name}: the budget is {budget / 1000:.1f} ms", flush=True)
    points: list[tuple[Tuning, Row]] = []
    for number, tuning in enumerate(grid, start=1):
        points += ((tuning, row) for row in bench.tuned(tuning, CONCURRENCIES))
        print(
            f"{name}: {number} of {len(grid)}: {describe(tuning)}: {throughputs(points[-len(CONCURRENCIES) :])}",
            flush=True,
        )
    meeting = [(tuning, row) for tuning, row in points if row.p99 <= budget]
    if not meeting:
        raise LookupError(f"no configuration of {name} meets {budget} us")
    tuning, best = max(meeting, key=lambda point: point[1].throughput)
    ours: list[Row | None] = []
    theirs: list[Row | None] = []
    for number in range(1, rounds + 1):
        ours.append(within(bench.untouched(), budget))
        theirs.append(within(bench.tuned(tuning, around(best.concurrency)), budget))
        print(f"{name}: round {number}: untouched {figures(ours[-1])}, best {figures(theirs[-1])}", flush=True)
    return Compared(name, budget, tuning, best.concurrency, tuple(points), tuple(ours), tuple(theirs))


def within(rows: Sequence[Row], budget: int) -> Row | None:
    """Return the row with the most throughput whose p99 is at most ``budget`` microseconds; None: there is none."""
    return max((row for row in rows if row.p99 <= budget), key=lambda row: row.throughput, default=None)


def around(concurrency: int) -> tuple[int, ...]:
    """Return a concurrency of the grid with its neighbours, so that noise at one of them decides nothing."""
    at = CONCURRENCIES.index(concurrency)
    return CONCURRENCIES[max(0, at - 1) : at + 2]


def throughputs(points: Sequence[tuple[Tuning, Row]]) -> str:
    """Return the throughputs of some points in words."""
    return ", ".join(f"{row.throughput:.0f}" for _, row in points)


def figures(row: Row | None) -> str:
    """Return a row's throughput, latency and load in words."""
    if row is None:
        return "nothing within the budget"
    return f"{row.throughput:.0f}/s, {row.p99 / 1000:.1f} ms at {row.concurrency}"


def table(compared: Sequence[Compared]) -> Table:
    """Return a table of medians, one line for each model; rounds in which the best missed the budget do not count."""
    shown = Table(title="Untouched objects against the best of a grid, within a p99 budget", title_justify="left")
    for heading in ("model", "best configuration"):
        shown.add_column(heading)
    for heading in ("budget ms", "points", "concurrency", "best/s", "at", "untouched/s", "share", "rounds"):
        shown.add_column(heading, justify="right")
    for each in compared:
        at = statistics.median_low([row.concurrency for row in each.ours if row] or [0])
        shown.add_row(
            each.name,
            describe(each.best),
            f"{each.budget_microseconds / 1000:.1f}",
            str(len(each.points)),
            str(each.best_concurrency),
            f"{median(each.theirs):.0f}",
            str(at),
            f"{median(each.ours):.0f}",
            "" if each.share is None else f"{each.share:.0%}",
            f"{sum(row is not None for row in each.theirs)} of {len(each.theirs)}",
        )
    return shown


def median(rows: Sequence[Row | None]) -> float:
    """Return the median throughput; a round without a row counts as nothing."""
    return statistics.median(row.throughput if row else 0.0 for row in rows)


def bench_of(root: Path, pod: Pod) -> Bench:
    """Return what can be asked of the model that ``publish_model`` put below ``root``."""
    config = (layout.model_repository(REVISION, root) / MODEL / "config.pbtxt").read_text(encoding="utf-8")
    keys = iter(range(10**6))

    def load(tuning: Tuning) -> None:
        server = Server(pod.load(SHORT), MODEL)
        if refusal := server.reload(retuned(config, tuning)):
            raise SystemExit(f"the server refuses {describe(tuning)}: {refusal}")
        server.wait_ready()

    def answer(stage: str, request: Document) -> Any:
        _, outcome, output = pod.run_stage(stage, request, seconds=STAGE_SECONDS)
        if outcome.result is None:
            raise SystemExit(f"{outcome.stage}: {outcome.reason}: {outcome.message}\n{output[-2000:]}")
        return outcome.result

    def untouched() -> Sequence[Row]:
        load(UNTOUCHED)
        request = untouched_request(pod)
        result = answer("profile", replace(request, key=key_of(f"untouched {next(keys)}")))
        assert isinstance(result, ProfileResult)
        if not result.passed:
            raise SystemExit(f"the gates fail {MODEL}: {result.message}")
        return result.online

    def tuned(tuning: Tuning, concurrencies: Sequence[int]) -> Sequence[Row]:
        load(tuning)
        key, online = key_of(f"tuned {next(keys)}"), Sweep((1,), tuple(concurrencies), False)
        request = MeasureRequest(key, REVISION, KEY, MODEL, tuning.max_batch_size, pod.load(SHORT), online)
        result = answer("measure", request)
        assert isinstance(result, MeasureResult)
        return result.online

    return Bench(untouched, tuned)


def untouched_request(pod: Pod) -> ProfileRequest:
    """Return what the operator asks of the profile of an object that says nothing of its load."""
    options = MeasurementOptions()
    measurement = Measurement(
        options.mode,
        options.request_count,
        ceil(amount(options.interval, "ms")),
        options.stability_percent,
        FAST_MILLISECONDS,
    )
    return ProfileRequest(
        key="",
        revision=REVISION,
        reference=KEY,
        model_name=MODEL,
        max_batch_size=UNTOUCHED.max_batch_size,
        format="onnx",
        precision="fp32",
        tolerance=DEFAULT_TOLERANCES["fp32"],
        keep_outputs=False,
        load=pod.load(measurement),
        offline=Sweep((1, UNTOUCHED.max_batch_size), (1,), True),
        online=Sweep((1,), ConcurrencyRange(start=1).concurrencies(), False, until_saturated=True),
        seconds=SWEEPS_SECONDS,
    )


def _pictures_of_digits() -> list[dict[str, Array]]:
    with numpy.load(ROOT / "manifests/samples/digits/digits.npz") as data:
        pictures = data["pictures"][:SAMPLES].astype(numpy.float32) / 16
    return [{"X": each} for each in pictures]


def _sentences() -> list[dict[str, Array]]:
    random = numpy.random.default_rng(SEED)
    lengths = numpy.clip(numpy.round(random.lognormal(3.0, 0.6, SAMPLES)), 4, mixed.LONGEST).astype(int)
    return [{"input_ids": random.integers(1, mixed.VOCABULARY, length, dtype=numpy.int64)} for length in lengths]


def _images() -> list[dict[str, Array]]:
    random = numpy.random.default_rng(SEED)
    return [{"image": random.standard_normal((3, SIDE, SIDE), dtype=numpy.float32)} for _ in range(SAMPLES)]


SUBJECTS: Mapping[str, Subject] = {
    each.name: each
    for each in (
        Subject("digits", lambda: onnx.load(ROOT / "manifests/samples/digits/digits.onnx"), _pictures_of_digits),
        Subject("encoder", mixed.encoder, _sentences),
        Subject("residual", residual_network, _images),
    )
}


if __name__ == "__main__":
    sys.exit(main())
