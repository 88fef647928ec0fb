"""Measure the points of a sweep: one perf_analyzer invocation for each, with longer windows if none is stable."""

import os
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType

from triton_converters.contract.failure import StageError
from triton_converters.contract.measurement_requests import Measurement, OpenLoop, Sweep
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import Row
from triton_converters.contract.saturation import is_saturated, request_rate, saturation
from triton_converters.measuring import perf_analyzer, perf_output
from triton_converters.measuring.budget import Budget, next_point
from triton_converters.measuring.environment import resident_bytes
from triton_converters.measuring.memory import MemoryWatch
from triton_converters.measuring.mixed_shapes import combined
from triton_converters.measuring.pace import Pace, in_words
from triton_converters.measuring.perf_analyzer import Point, Target, Windows, most_requests_per_second
from triton_converters.measuring.perf_output import ReportError

BASE_SECONDS = 600
"""Time that an invocation may take besides its requests: its start, or everything if the time of a request is unknown.
Model Analyzer's limit."""
LONG_SECONDS = 10
"""A point that takes longer is announced: its row comes when it has ended."""
UNSETTLED = (perf_analyzer.TRIALS + perf_analyzer.STABLE_WINDOWS) / perf_analyzer.STABLE_WINDOWS
"""How much longer a point takes that does not settle: all of its windows, and then three that are taken as they are."""
UNSTABLE = ", unstable: its windows differ by {:.0f} %"
LOOK_SECONDS = 0.2
"""The pause between two looks at perf_analyzer's memory, which was seen to grow by 1 GB a second."""
CONNECTIONS = 3
"""How often a point is begun with the same windows if the server's renewal of a connection ended perf_analyzer."""


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
            output, _ = process.communicate(timeout=LOOK_SECONDS)
        except subprocess.TimeoutExpired as error:
            if time.monotonic() >= deadline:
                printed = error.stdout.decode(errors="replace") if isinstance(error.stdout, bytes) else ""
                raise TimeoutError(perf_output.last_lines(printed)) from error
            if most_bytes and (used := resident_bytes(process.pid)) > most_bytes:
                raise MemoryError(f"took {used >> 20} MiB of memory, and {most_bytes >> 20} are allowed") from error
        else:
            return process.returncode, output


@dataclass(frozen=True)
class OfShape:
    """Requests whose samples all have one shape."""

    target: Target
    samples: int
    """How many of all samples the shape stands for."""


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
    of_shapes: tuple[OfShape, ...] = ()
    """What is sent instead in requests of several samples, one after the other; empty: all samples have one shape."""
    budget: Budget = field(default_factory=Budget)
    """When the sweep ends before its last point."""
    look: Callable[[], object] = list
    """Asks the server for anything after a point without a row; raises StageError if it is gone."""

    def parts(self, point: Point) -> tuple[tuple[Target, Point, int], ...]:
        """Return what is measured for a point: where, as what, and how many of all samples it stands for."""
        if not self.of_shapes or point.client_batch_size == 1:
            return ((self.target, point, 1),)
        return tuple(
            (each.target, replace(point, shape=number), each.samples)
            for number, each in enumerate(self.of_shapes, start=1)
        )


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
        Point("request_rate", batch_size, 0, batched, rate, asked.distribution)
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

    def least(point: Point) -> float:
        return _least_seconds(plan, (point,))

    while (point := next_point(wanted, rows, plan.budget, plan.pace, least)) is not None:
        started = time.monotonic()
        where = f"{point.scenario.replace('_', ' ')} {len(rows) + 1}{count}: {point}"
        parts = _parts(plan, point, before)
        after = _after(plan, wanted, len(rows) + 1)
        _announce(plan, point, parts, after, where)
        try:
            measured = [_measure_part(plan, part, invoke) for part in parts]
        except StageError as error:
            if not plan.budget.until_saturated or len(rows) < plan.budget.needed:
                raise
            plan.look()
            refused = True
            print(f"{where}: it is left out, as {len(rows)} are enough: {error.message}", flush=True)
            break
        for part, (row, argv) in zip(parts, measured, strict=True):
            before[part.point.shape] = row
            commands.append(argv)
        row = combined([row for row, _ in measured], [part.samples for part in parts])
        took = time.monotonic() - started
        plan.pace.ended(sum(part.least_seconds for part in parts), took)
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


def _after(plan: Plan, wanted: Sequence[Point], number: int) -> tuple[Point, ...]:
    """Return the points that come after the first ``number``: those that are needed, if time may end the sweep."""
    last = plan.budget.needed if plan.budget.is_bounded else len(wanted)
    return (*wanted[number:last], *plan.later)


def _rest(plan: Plan, after: Sequence[Point]) -> str:
    """Return in words what comes after a point; empty if that takes little time."""
    needed = plan.pace.seconds(_least_seconds(plan, after))
    if plan.budget.is_bounded:
        most = max(needed, plan.budget.left(plan.pace))
        return f"; the rest takes at most {in_words(most)}" if most > LONG_SECONDS else ""
    return f"; {len(after)} more, about {in_words(needed)}" if needed > LONG_SECONDS else ""


@dataclass(frozen=True)
class _Part:
    """What one or more invocations measure: a point, or the samples of one shape at a point."""

    target: Target
    point: Point
    samples: int
    """How many of all samples it stands for."""
    windows: Windows
    rate: float
    """Requests per second that it will not exceed; 0.0 if unknown."""

    @property
    def least_seconds(self) -> float:
        """The seconds that this takes if it settles at once."""
        return perf_analyzer.least_seconds(self.windows, self.target.sample_seconds, self.point)

    @property
    def stable_seconds(self) -> float:
        """The seconds that three windows take, by what a request takes alone; 0.0 if that is not known."""
        return perf_analyzer.stable_seconds(self.windows, self.target.sample_seconds, self.point)


def _part(plan: Plan, target: Target, point: Point, samples: int, rate: float = 0.0) -> _Part:
    """Return a part with the windows that it affords."""
    first = perf_analyzer.first_windows(plan.measurement, point, target.samples, target.sample_seconds)
    return _Part(target, point, samples, perf_analyzer.affordable(first, point, target, rate), rate)


def _parts(plan: Plan, point: Point, before: Mapping[int, Row]) -> list[_Part]:
    """Return what is measured for a point; ``before``: the last row of each shape in the same sweep, by its number."""
    return [
        _part(plan, target, each, samples, most_requests_per_second(each, target, before.get(each.shape)))
        for target, each, samples in plan.parts(point)
    ]


def _announce(plan: Plan, point: Point, parts: Sequence[_Part], after: Sequence[Point], where: str) -> None:
    """Say how long a slow point takes, and all that come after it, by what a request and ended points took."""
    if sum(part.stable_seconds for part in parts) > LONG_SECONDS:
        least = plan.pace.seconds(sum(part.least_seconds for part in parts))
        needed = least + plan.pace.seconds(_least_seconds(plan, after))
        print(
            f"{where}: a request takes about {plan.target.sample_seconds * point.batch_size:.1f} s, so this point takes"
            f" about {in_words(least)}, or {in_words(least * UNSETTLED)} if it does not settle"
            f"{f'; with the {len(after)} {_NEEDED[plan.budget.is_bounded]} {_between(needed)}' if after else ''}",
            flush=True,
        )


_NEEDED = {False: "after it", True: "after it that are measured in any case"}


def _between(seconds: float) -> str:
    return f"about {in_words(seconds)}, at most {in_words(seconds * UNSETTLED)} at this pace"


def _least_seconds(plan: Plan, wanted: Sequence[Point]) -> float:
    """Return how long points take together if each settles, by what a request takes alone."""
    return sum(_part(plan, *part).least_seconds for point in wanted for part in plan.parts(point))


def _measure_part(plan: Plan, part: _Part, invoke: Invoke) -> tuple[Row, tuple[str, ...]]:
    """Try the requested windows, then longer ones if there may be any, then three that are taken as they are.

    If one of these takes too long or too much memory, three windows of fewer requests are taken as they are.
    """
    point, windows = part.point, part.windows
    plan = replace(plan, target=part.target)
    fit = partial(perf_analyzer.affordable, point=point, target=plan.target, rate=part.rate)
    try:
        row, rate, argv = _attempt(plan, point, windows, invoke, stable=True)
        longer = fit(perf_analyzer.longer(windows, rate))
        if row is None and longer.size > windows.size:
            windows = longer
            row, rate, argv = _attempt(plan, point, windows, invoke, stable=True)
        if row is None:
            windows = fit(perf_analyzer.unjudged(windows, plan.measurement))
            row, rate, argv = _attempt(plan, point, windows, invoke, stable=False)
    except (TimeoutError, MemoryError) as much:
        print(f"{point.name}: perf_analyzer {much}; it is measured again with fewer requests", flush=True)
        windows = perf_analyzer.fewer(windows, plan.measurement, point)
        if isinstance(much, MemoryError):
            less = replace(plan.target, memory_bytes=plan.target.memory_bytes // perf_analyzer.FEWER)
            windows = perf_analyzer.affordable(windows, point, less, part.rate)
        try:
            row, _, argv = _attempt(plan, point, windows, invoke, stable=False)
        except TimeoutError as error:
            raise _failed(point, str(error)) from error
        except MemoryError as error:
            raise _out_of_memory(point, str(error)) from error
    if row is None:
        raise _failed(point, "found no window with a request in it")
    return row, argv


def _attempt(
    plan: Plan, point: Point, windows: Windows, invoke: Invoke, stable: bool
) -> tuple[Row | None, float, tuple[str, ...]]:
    """Return the row (None: no stable window), the last requests per second, and the argv; raises TimeoutError."""
    argv = perf_analyzer.arguments(plan.target, point, windows, plan.output_bytes)
    report = plan.directory / f"{point.name}.csv"
    report.unlink(missing_ok=True)
    seconds = BASE_SECONDS + perf_analyzer.most_seconds(windows, point, plan.target.sample_seconds, plan.target.samples)
    for _ in range(CONNECTIONS):
        try:
            with MemoryWatch(plan.used_memory) as memory:
                done = invoke(argv, plan.directory, seconds)
        except TimeoutError as error:
            size = f"{windows.size} requests" if windows.by_count else f"{windows.size} ms"
            raise TimeoutError(f"did not end within {seconds:.0f} s with windows of {size}: {error}") from error
        with _log(plan, point).open("a", encoding="utf-8") as log:
            log.write(f"$ {shlex.join(argv)}\n{done.output}\nexit code {done.exit_code}\n\n")
        if done.exit_code == -signal.SIGKILL:
            raise MemoryError("was killed at its memory limit")
        if not perf_output.is_reconnecting(done.output):
            break
    rate = perf_output.requests_per_second(done.output, point.client_batch_size)
    if report.is_file() and done.exit_code == 0:
        try:
            text = report.read_text(encoding="utf-8", errors="replace")
            row = replace(
                perf_output.parse_report(text, point, stable),
                spread=perf_output.spread(done.output),
                client_bound=perf_output.is_client_bound(done.output),
                memory_bytes=memory.peak,
            )
            return row, rate, argv
        except ReportError as error:
            raise _failed(point, f"wrote a report that cannot be used: {error}") from error
    if not perf_output.is_unstable(done.output):
        message = f"ended with exit code {done.exit_code} without a row: {perf_output.last_lines(done.output)}"
        raise _failed(point, message)
    return None, rate, argv


def _log(plan: Plan, point: Point) -> Path:
    return plan.directory / f"{point.name}.log"


def _failed(point: Point, message: str) -> StageError:
    """Return a StageError that is not final: another run may find a quieter machine, or the server back."""
    return StageError(Reason.MEASUREMENT_FAILED, f"perf_analyzer at {point} ({point.scenario}) {message}", final=False)


def _out_of_memory(point: Point, message: str) -> StageError:
    """Return a StageError for a perf_analyzer that took too much memory."""
    what = (
        f"perf_analyzer at {point} ({point.scenario}) {message}, because it keeps the inputs and outputs of a point's"
        " requests; raise the limit in spec.conversion.pod.resources, or lower"
        " spec.performance.measurement.requestCount"
    )
    return StageError(Reason.OUT_OF_MEMORY, what, final=False)
