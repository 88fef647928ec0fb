"""Measure the points of a sweep: one perf_analyzer invocation for each, with longer windows if none is stable."""

import os
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

from triton_converters.contract.failure import StageError
from triton_converters.contract.measurement_requests import Measurement, OpenLoop, Sweep
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import Row
from triton_converters.contract.saturation import is_saturated, request_rate, saturation
from triton_converters.measuring import perf_output
from triton_converters.measuring.budget import Budget, next_point
from triton_converters.measuring.environment import resident_bytes
from triton_converters.measuring.memory import MemoryWatch
from triton_converters.measuring.mixed_shapes import combined
from triton_converters.measuring.pace import Pace, in_words
from triton_converters.measuring.perf_analyzer import Point, Run, Target, first_run, most_requests_per_second
from triton_converters.measuring.perf_output import ReportError
from triton_converters.measuring.settings import SETTINGS

UNSTABLE = ", unstable: its windows differ by {:.0f} %"
TOO_LARGE = (
    "because it keeps the inputs and outputs of a point's requests; raise the limit in spec.conversion.pod.resources,"
    " or lower spec.performance.measurement.requestCount"
)
NEEDED = {False: "after it", True: "after it that are measured in any case"}


@dataclass(frozen=True)
class Invocation:
    """A finished process."""

    exit_code: int
    output: str
    """Standard output and standard error together."""


Invoke = Callable[[Sequence[str], Path, float], Invocation]
"""A function that runs argv in a directory for at most so many seconds; raises TimeoutError and MemoryError."""


@dataclass(frozen=True)
class Measured:
    """A sweep's rows, in the order of its points, and the command line of the first."""

    rows: tuple[Row, ...]
    command: str


def run_process(
    argv: Sequence[str],
    directory: Path,
    seconds: float,
    environment: Mapping[str, str] = MappingProxyType({}),
    most_bytes: int = 0,
) -> Invocation:
    """Run a program; kill it if it takes longer or more memory, or if this process is told to stop.

    ``environment``: variables besides our own. ``most_bytes``: memory that it may have; 0: whatever it wants.

    Raises StageError(MeasurementFailed) if there is no such program.
    """
    try:
        process = subprocess.Popen(
            argv,
            cwd=directory,
            env=os.environ | environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
    except FileNotFoundError as error:
        message = f"the image has no {argv[0]}; install the Python package tritonclient 2.60, which brings it"
        raise StageError(Reason.MEASUREMENT_FAILED, message) from error
    with process:
        try:
            return Invocation(*_end(process, time.monotonic() + seconds, most_bytes))
        except BaseException:
            process.kill()
            raise


def _end(process: "subprocess.Popen[str]", deadline: float, most_bytes: int) -> tuple[int, str]:
    """Wait for the process; return its exit code and output. Raises TimeoutError and MemoryError."""
    while True:
        try:
            output, _ = process.communicate(timeout=SETTINGS.look_seconds)
        except subprocess.TimeoutExpired as error:
            if time.monotonic() >= deadline:
                printed = error.stdout.decode(errors="replace") if isinstance(error.stdout, bytes) else ""
                raise TimeoutError(perf_output.last_lines(printed)) from error
            if most_bytes and (used := resident_bytes(process.pid)) > most_bytes:
                raise MemoryError(f"took {used >> 20} MiB of memory, and {most_bytes >> 20} are allowed") from error
        else:
            return process.returncode, output


@dataclass(frozen=True)
class Plan:
    """How the points of a sweep are measured."""

    target: Target
    measurement: Measurement
    directory: Path
    """perf_analyzer's working directory: its CSV files and what it printed stay there."""
    output_bytes: int | None = None
    """Largest output of a sample, if client and server share memory; otherwise None."""
    used_memory: Callable[[], int] | None = None
    """Returns the bytes in use now, 0 if unknown; called repeatedly while a point is measured."""
    later: tuple[Point, ...] = ()
    """The points of sweeps that come after this one."""
    pace: Pace = field(default_factory=Pace)
    of_shapes: tuple[Target, ...] = ()
    """What is sent instead in requests of several samples, one after the other; empty: all samples have one shape."""
    budget: Budget = field(default_factory=Budget)
    """When the sweep ends before its last point."""
    look: Callable[[], object] = list
    """Asks the server for anything after a point without a row; raises StageError if it is gone."""

    def runs(self, point: Point, before: Mapping[int, Row] | None = None) -> list[Run]:
        """Return the runs that measure a point: one, or one for each shape.

        ``before``: the last row of each shape in the same sweep, by its number; None: the rates are left open.
        """
        parts = [(self.target, point)]
        if self.of_shapes and point.client_batch_size > 1:
            parts = [(each, replace(point, shape=number)) for number, each in enumerate(self.of_shapes, start=1)]
        return [
            first_run(
                self.measurement,
                target,
                part,
                0.0 if before is None else most_requests_per_second(part, target, before.get(part.shape)),
            )
            for target, part in parts
        ]

    def least_seconds(self, *wanted: Point) -> float:
        """Return how long points take together if each settles, by what a request takes alone."""
        return sum(run.least_seconds for point in wanted for run in self.runs(point))

    def after(self, wanted: Sequence[Point], number: int) -> tuple[Point, ...]:
        """Return the points after the first ``number``: those that are needed, if time may end the sweep."""
        last = self.budget.needed if self.budget.is_bounded else len(wanted)
        return (*wanted[number:last], *self.later)


@dataclass(frozen=True)
class RunOutcome:
    """How a run of perf_analyzer went."""

    argv: tuple[str, ...]
    row: Row | None = None
    rate: float = 0.0
    """The last requests per second; 0.0 if unknown."""
    excess: Exception | None = None
    """TimeoutError or MemoryError: it took too much."""


def points(scenario: str, sweep: Sweep, batched: bool = True) -> tuple[Point, ...]:
    """Return the product of batch sizes and concurrencies; ``batched``: the model has a batch dimension."""
    return tuple(
        Point(scenario, batch_size, concurrency, batched)
        for batch_size in sweep.batch_sizes
        for concurrency in sweep.concurrencies
    )


def rates(asked: OpenLoop, sweep: Sweep, rows: Sequence[Row], batched: bool = True) -> tuple[Point, ...]:
    """Return the open-loop points; ``sweep`` and ``rows``: the online sweep and what it measured.

    One of them confirms the saturation, if that is asked for: a closed loop never sends more than the server answers.
    """
    wanted = list(asked.rates)
    found = saturation(rows, asked.constraints) if asked.confirmed_percent else None
    if found is not None and found.row is not None:
        wanted.append(request_rate(found.row, asked.confirmed_percent))
    return tuple(
        Point("request_rate", batch_size, 0, batched, rate)
        for batch_size in sweep.batch_sizes
        for rate in sorted(set(wanted))
    )


def measure(plan: Plan, wanted: Sequence[Point], invoke: Invoke = run_process) -> Measured:
    """Measure every point, or those until the plan's budget ends the sweep.

    Raises StageError(MeasurementFailed) if one that is needed gives no row. Where nobody says how far a sweep goes, one
    beyond may be more than the model takes, as where its queue is short, and ends the sweep.
    """
    rows: list[Row] = []
    commands: list[tuple[str, ...]] = []
    before: dict[int, Row] = {}
    count = f" of at most {len(wanted)}" if plan.budget.until_saturated else f"/{len(wanted)}"
    refused = False
    while (point := next_point(wanted, rows, plan.budget, plan.pace, plan.least_seconds)) is not None:
        started = time.monotonic()
        where = f"{point.scenario.replace('_', ' ')} {len(rows) + 1}{count}: {point}"
        runs = plan.runs(point, before)
        after = plan.after(wanted, len(rows) + 1)
        _announce(plan, runs, after, where)
        try:
            measured = [_measure(plan, run, invoke) for run in runs]
        except StageError as error:
            if not plan.budget.until_saturated or len(rows) < plan.budget.needed:
                raise
            plan.look()
            refused = True
            print(f"{where}: it is left out, as {len(rows)} are enough: {error.message}", flush=True)
            break
        for run, (row, argv) in zip(runs, measured, strict=True):
            before[run.point.shape] = row
            commands.append(argv)
        row = combined([row for row, _ in measured], [run.target.weight for run in runs])
        took = time.monotonic() - started
        plan.pace.ended(sum(run.least_seconds for run in runs), took)
        if not plan.pace.sample_seconds and (row.batch_size, row.concurrency) == (1, 1):
            plan.pace.sample_seconds = row.average / 1_000_000
        figures = f"{row.throughput:.1f} inferences/s, p99 {row.p99} us"
        spread = "" if row.stable else UNSTABLE.format(row.spread)
        print(f"{where}: {figures}{spread} (took {took:.1f} s){_rest(plan, after)}", flush=True)
        rows.append(row)
    if rows and len(rows) < len(wanted) and not refused:
        why = "the throughput no longer rises" if is_saturated(rows) else "the time of all sweeps is spent"
        print(f"{why}; {len(wanted) - len(rows)} points are not measured", flush=True)
    return Measured(tuple(rows), shlex.join(commands[0]) if commands else "")


def _rest(plan: Plan, after: Sequence[Point]) -> str:
    """Return in words what comes after a point; empty if that takes little time."""
    needed = plan.pace.seconds(plan.least_seconds(*after))
    if plan.budget.is_bounded:
        most = max(needed, plan.budget.left(plan.pace))
        return f"; the rest takes at most {in_words(most)}" if most > SETTINGS.long_seconds else ""
    return f"; {len(after)} more, about {in_words(needed)}" if needed > SETTINGS.long_seconds else ""


def _announce(plan: Plan, runs: Sequence[Run], after: Sequence[Point], where: str) -> None:
    """Say how long a slow point takes, and all that come after it, by what a request and ended points took."""
    if sum(run.stable_seconds for run in runs) <= SETTINGS.long_seconds:
        return
    least = plan.pace.seconds(sum(run.least_seconds for run in runs))
    needed = least + plan.pace.seconds(plan.least_seconds(*after))
    rest = f"; with the {len(after)} {NEEDED[plan.budget.is_bounded]} about {in_words(needed)}"
    print(
        f"{where}: a request takes about {plan.target.sample_seconds * runs[0].point.batch_size:.1f} s, so this point"
        f" takes about {in_words(least)}, or {in_words(least * SETTINGS.unsettled)} if it does not settle"
        f"{f'{rest}, at most {in_words(needed * SETTINGS.unsettled)} at this pace' if after else ''}",
        flush=True,
    )


def _measure(plan: Plan, run: Run, invoke: Invoke) -> tuple[Row, tuple[str, ...]]:
    """Return the row of the first run that gives one, and its argv."""
    outcome = _measure_once(plan, run, invoke)
    while outcome.row is None and (following := run.following(outcome.rate, outcome.excess)) is not None:
        if outcome.excess is not None:
            words = f"perf_analyzer {outcome.excess}; it is measured again with fewer requests"
            print(f"{run.point.name}: {words}", flush=True)
        run = following
        outcome = _measure_once(plan, following, invoke)
    if outcome.row is not None:
        return outcome.row, outcome.argv
    words = str(outcome.excess or "found no window with a request in it")
    reason = Reason.MEASUREMENT_FAILED
    if isinstance(outcome.excess, MemoryError):
        words = f"{words}, {TOO_LARGE}"
        reason = Reason.OUT_OF_MEMORY
    raise _failed(run.point, words, reason) from outcome.excess


def _measure_once(plan: Plan, run: Run, invoke: Invoke) -> RunOutcome:
    """Run perf_analyzer once, and again where the server only renewed its connection."""
    point = run.point
    argv = run.arguments(plan.output_bytes)
    report = plan.directory / f"{point.name}.csv"
    report.unlink(missing_ok=True)
    for _ in range(SETTINGS.connections):
        try:
            with MemoryWatch(plan.used_memory) as memory:
                done = invoke(argv, plan.directory, run.most_seconds)
        except TimeoutError as error:
            words = f"did not end within {run.most_seconds:.0f} s with windows of {run.windows}: {error}"
            return RunOutcome(argv, excess=TimeoutError(words))
        except MemoryError as error:
            return RunOutcome(argv, excess=error)
        with (plan.directory / f"{point.name}.log").open("a", encoding="utf-8") as log:
            log.write(f"$ {shlex.join(argv)}\n{done.output}\nexit code {done.exit_code}\n\n")
        if done.exit_code == -signal.SIGKILL:
            return RunOutcome(argv, excess=MemoryError("was killed at its memory limit"))
        if not perf_output.is_reconnecting(done.output):
            break
    rate = perf_output.requests_per_second(done.output, point.client_batch_size)
    if report.is_file() and done.exit_code == 0:
        try:
            text = report.read_text(encoding="utf-8", errors="replace")
            row = replace(
                perf_output.parse_report(text, point, run.windows.is_judged),
                spread=perf_output.spread(done.output),
                client_bound=perf_output.is_client_bound(done.output),
                memory_bytes=memory.peak,
            )
        except ReportError as error:
            raise _failed(point, f"wrote a report that cannot be used: {error}") from error
        return RunOutcome(argv, row, rate)
    if not perf_output.is_unstable(done.output):
        message = f"ended with exit code {done.exit_code} without a row: {perf_output.last_lines(done.output)}"
        raise _failed(point, message)
    return RunOutcome(argv, rate=rate)


def _failed(point: Point, message: str, reason: Reason = Reason.MEASUREMENT_FAILED) -> StageError:
    """Return a StageError that is not final: another run may find a quieter machine, or the server back."""
    return StageError(reason, f"perf_analyzer at {point} ({point.scenario}) {message}", final=False)
