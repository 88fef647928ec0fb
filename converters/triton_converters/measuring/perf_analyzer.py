"""perf_analyzer's command line, for one point at a time; ``perf_output`` reads what it prints. Pure.

Written for perf_analyzer 2.60. This file relies on these facts, all seen with that binary and in its source:

* a window of ``count_windows`` lasts whole seconds, at least one, until it holds enough requests; a window of
  ``time_windows`` lasts 1.2 times the interval. Three windows within the stability percentage make a row, so a point
  takes at least 3 seconds, or 3.6 intervals;
* ``--request-count`` divides by whole seconds too, so a fast model's throughput comes out far too low. A row that
  need not be stable is taken with ``unjudged`` windows instead, which are measured like any other;
* without stable windows no row is written, and the exit code depends on what was measured before;
* an open loop with fewer warm-up requests than threads never begins to measure;
* a request that meets the GOAWAY of a connection which the server renews (--grpc-max-connection-age) ends everything;
* the inputs and outputs of every request are kept until the end, for a file that nobody asked for, and copied after
  each window while requests go on: 3,000 requests of 602 kB took 3.6 to 4.5 GB. With shared memory nothing is kept;
* shared memory has a region for each input of each sample of the file, of a whole batch that begins with it, and one
  for each output, into which all requests in flight write. So neither concurrency nor rate changes what it takes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil

from triton_converters.contract.measurement_requests import InputShape, Measurement
from triton_converters.contract.results import PERF_ANALYZER, Row
from triton_converters.measuring.settings import SETTINGS


@dataclass(frozen=True)
class Point:
    """One combination of load."""

    scenario: str
    """``offline``, ``online`` or ``request_rate``."""
    batch_size: int
    concurrency: int
    """Requests in flight; 0: they arrive at ``rate``."""
    batched: bool = True
    """False: the model has no batch dimension, and every request of the input holds ``batch_size`` samples."""
    rate: int = 0
    """Requests per second that arrive, whatever the server has answered; 0: ``concurrency`` are in flight."""
    shape: int = 0
    """Number of the shape that the samples have, from 1; 0: they have one, or each has its own."""

    @property
    def client_batch_size(self) -> int:
        """How many samples of the input perf_analyzer is told to put into a request."""
        return self.batch_size if self.batched else 1

    @property
    def name(self) -> str:
        """The stem of the point's file names."""
        load = f"rate{self.rate}" if self.rate else f"concurrency{self.concurrency}"
        shape = f"-shape{self.shape}" if self.shape else ""
        return f"{self.scenario}-batch{self.batch_size}-{load}{shape}"

    @property
    def arguments(self) -> tuple[str, ...]:
        """The command-line flags of the load."""
        if not self.rate:
            return "--concurrency-range", str(self.concurrency)
        arrivals = ("--request-distribution", "poisson")
        return ("--request-rate-range", str(self.rate), *arrivals, "--max-threads", str(self.workers))

    @property
    def workers(self) -> int:
        """Most requests that can be in flight; an open loop has one thread for each."""
        if not self.rate:
            return self.concurrency
        return min(SETTINGS.most_threads, max(SETTINGS.fewest_threads, self.rate * SETTINGS.thread_seconds))

    def __str__(self) -> str:
        """The load in words."""
        load = f"{self.rate} requests/s" if self.rate else f"concurrency {self.concurrency}"
        return f"batch {self.batch_size}, {load}"


@dataclass(frozen=True)
class Windows:
    """How long perf_analyzer's windows are, and when it accepts them."""

    by_count: bool
    size: int
    """Length of a window, in requests or milliseconds."""
    stability_percentage: int
    trials: int

    @property
    def is_judged(self) -> bool:
        """Whether three windows must agree."""
        return self.stability_percentage != SETTINGS.unjudged_percentage

    @property
    def arguments(self) -> tuple[str, ...]:
        """The command-line flags."""
        mode, flag = ("count_windows", "request-count") if self.by_count else ("time_windows", "interval")
        return (
            *("--measurement-mode", mode, f"--measurement-{flag}", str(self.size)),
            *("--stability-percentage", str(self.stability_percentage), "--max-trials", str(self.trials)),
        )

    def __str__(self) -> str:
        """The size in words."""
        return f"{self.size} requests" if self.by_count else f"{self.size} ms"


@dataclass(frozen=True)
class Target:
    """What all points of a measurement have in common, or all requests of several samples that have one shape."""

    model: str
    url: str
    """host:port, with an address as the host."""
    protocol: str
    """``grpc`` or ``http``."""
    input_data: str
    """The file for --input-data."""
    shapes: tuple[InputShape, ...]
    """Shapes of the inputs whose dimensions vary; none if the samples of the file have several."""
    sample_seconds: float = 0.0
    """Seconds that a single request took, divided by its samples; 0.0 if unknown."""
    sample_bytes: int = 0
    """Bytes of a sample's inputs and outputs; 0 if unknown, or in shared memory."""
    memory_bytes: int = 0
    """What all requests of an invocation may take; with ``sample_bytes``."""
    samples: int = 1
    """How many requests show all shapes of the file, which perf_analyzer sends in turn."""
    weight: int = 1
    """How many of all samples it stands for."""


@dataclass(frozen=True)
class Run:
    """One run of perf_analyzer: a point of a target, in windows that the time and the memory afford."""

    measurement: Measurement
    target: Target
    point: Point
    rate: float
    """Requests per second that the point will not exceed; 0.0 if unknown."""
    windows: Windows
    is_first: bool = True
    is_last: bool = False
    """Whether nothing is tried after it."""

    @property
    def request_seconds(self) -> float:
        """What a request takes alone; 0.0 if that is not known."""
        return self.target.sample_seconds * self.point.batch_size

    @property
    def fewest_requests(self) -> int:
        """How many requests a window holds at least."""
        return max(SETTINGS.fewest_requests, self.point.concurrency)

    @property
    def warmup_requests(self) -> int:
        """Two for each worker and at least ``warmup_requests``, or what ``warmup_seconds`` allow for a slow model.

        An open loop has one for each of its many threads. A server may plan, or optimize, when it sees a shape for the
        first time, so all shapes of the file are among them.
        """
        wanted = max(SETTINGS.warmup_requests, self.target.samples)
        affordable = SETTINGS.warmup_seconds / self.request_seconds if self.request_seconds else wanted
        workers = self.point.workers if self.point.rate else 2 * self.point.concurrency
        return max(workers, min(wanted, max(SETTINGS.fewest_warmup_requests, int(affordable))))

    @property
    def stable_seconds(self) -> float:
        """What three windows take, by what a request takes alone; 0.0 if that is not known, or they have a time."""
        requests = SETTINGS.stable_windows * self.windows.size if self.windows.by_count else 0
        return requests * self.request_seconds

    @property
    def least_seconds(self) -> float:
        """What a point takes that settles at once: perf_analyzer's start, and three windows of at least a second."""
        shortest = 1.0 if self.windows.by_count else SETTINGS.time_window * self.windows.size / 1000
        return SETTINGS.start_seconds + max(SETTINGS.stable_windows * shortest, self.stable_seconds)

    @property
    def most_seconds(self) -> float:
        """What all may take; the server may do one request at a time, whatever the load."""
        amount = self.windows.trials * self.windows.size
        requests = self.warmup_requests + (amount if self.windows.by_count else 0)
        intervals = 0.0 if self.windows.by_count else SETTINGS.time_window * amount / 1000
        arrivals = requests / self.point.rate if self.point.rate else 0.0
        return SETTINGS.base_seconds + intervals + SETTINGS.slower * (arrivals + requests * self.request_seconds)

    def arguments(self, output_bytes: int | None = None) -> tuple[str, ...]:
        """Return the argv; the report goes to ``<point>.csv`` in the working directory.

        ``output_bytes``: None for requests over the network; a number for system shared memory, with regions of that
        many bytes per sample for the outputs whose size varies.
        """
        target = self.target
        shared_memory = tuple[str, ...]()
        if output_bytes is not None:
            shared_memory = ("--shared-memory", "system", "--output-shared-memory-size", str(max(1, output_bytes)))
        shapes = (f"{shape.input}:{','.join(map(str, shape.dims))}" for shape in target.shapes)
        return (
            PERF_ANALYZER,
            *("-m", target.model, "-u", target.url, "-i", target.protocol),
            *("-b", str(self.point.client_batch_size), *self.point.arguments),
            *("--input-data", target.input_data),
            *(word for shape in shapes for word in ("--shape", shape)),
            *shared_memory,
            *("--warmup-request-count", str(self.warmup_requests)),
            *self.windows.arguments,
            *("-v", "--verbose-csv", "-f", f"{self.point.name}.csv"),
        )

    def following(self, rate: float, excess: Exception | None) -> "Run | None":
        """Return what to try after this gave no row: longer windows, three taken as they are, fewer requests.

        ``rate``: the last requests per second, 0.0 if unknown. ``excess``: TimeoutError or MemoryError if it took too
        much; None: its windows differed. Returns None if nothing is left.
        """
        if self.is_last:
            return None
        if excess is not None:
            return self._fewer(isinstance(excess, MemoryError))
        least = ceil(rate * SETTINGS.long_window_seconds) if self.windows.by_count else 0
        longer = self.afford(replace(self.windows, size=max(2 * self.windows.size, least)))
        if self.is_first and longer.windows.size > self.windows.size:
            return longer
        return self.afford(self._unjudged) if self.windows.is_judged else None

    @property
    def _unjudged(self) -> Windows:
        """Three windows that are merged in any case; by count, since a time window may be shorter than a request."""
        size = self.windows.size if self.windows.by_count else self.measurement.request_count
        return Windows(True, size, SETTINGS.unjudged_percentage, SETTINGS.stable_windows)

    def _fewer(self, of_memory: bool) -> "Run":
        """Return three windows that are merged in any case, of a tenth of the requests, or of the memory."""
        last = self._unjudged
        windows = replace(last, size=min(last.size, max(self.fewest_requests, last.size // SETTINGS.fewer)))
        if of_memory:
            less = replace(self.target, memory_bytes=self.target.memory_bytes // SETTINGS.fewer)
            windows = replace(self, target=less).afford(windows).windows
        return replace(self, windows=windows, is_last=True)

    def afford(self, windows: Windows) -> "Run":
        """Return a later run in windows with no more requests than ``point_seconds`` and the memory allow."""
        windows = self._within_memory(windows)
        if windows.by_count and self.request_seconds:
            affordable = int(SETTINGS.point_seconds / (SETTINGS.stable_windows * self.request_seconds))
            most = max(self.fewest_requests, affordable)
            samples = self.target.samples
            if windows.size > most:
                # All samples equally often, if they hold all of them.
                windows = replace(windows, size=most - most % samples if most >= samples else most)
        return replace(self, windows=windows, is_first=False)

    def _within_memory(self, windows: Windows) -> Windows:
        """Return windows whose requests fit into the memory: of time, if those of a whole second might not."""
        if not self.target.sample_bytes:
            return windows
        each = SETTINGS.copies * self.target.sample_bytes * self.point.batch_size
        most = max(self.fewest_requests, self.target.memory_bytes // (each * windows.trials))
        if self.rate > most:
            milliseconds = max(1, int(1000 * most / (SETTINGS.time_window * self.rate)))
            longest = milliseconds if windows.by_count else min(windows.size, milliseconds)
            return replace(windows, by_count=False, size=longest)
        if windows.by_count:
            return replace(windows, size=min(windows.size, most))
        fits = SETTINGS.time_window * self.rate * windows.size / 1000 <= most
        return windows if fits else replace(windows, by_count=True, size=most)


def first_run(measurement: Measurement, target: Target, point: Point, rate: float = 0.0) -> Run:
    """Return the run in the windows that the spec asks for; longer ones if requests arrive at random, or differ.

    The number of Poisson arrivals in a window scatters by its square root, and twice that has to be within the
    stability percentage. Windows of a few requests of many shapes differ by their shapes, so each has all samples.
    ``rate``: requests per second that the point will not exceed; 0.0 if unknown.
    """
    samples = target.samples
    request_seconds = target.sample_seconds * point.batch_size
    # The short windows hold enough requests, and all samples, even if these come one after the other.
    is_fast = (
        0 < request_seconds < SETTINGS.fast_seconds
        and samples * request_seconds <= SETTINGS.time_window * measurement.fast_milliseconds / 1000
    )
    by_count = measurement.mode == "CountWindows" and not is_fast
    interval = measurement.fast_milliseconds if is_fast else measurement.interval_milliseconds
    size = measurement.request_count if by_count else interval
    if point.rate:
        enough = (2 * 100 / measurement.stability_percentage) ** 2
        seconds = min(enough / point.rate, SETTINGS.random_window_seconds)
        size = max(size, ceil(seconds * (point.rate if by_count else 1000)))
    if by_count:
        size = samples * ceil(size / samples)
    asked = Windows(by_count, size, measurement.stability_percentage, SETTINGS.trials)
    return replace(Run(measurement, target, point, rate, asked).afford(asked), is_first=True)


def most_requests_per_second(point: Point, target: Target, before: Row | None) -> float:
    """Return a rate that the point will not exceed; ``before``: a point of the same sweep; 0.0 if nothing is known."""
    if point.rate:
        return float(point.rate)
    if before is not None and before.batch_size == point.batch_size and before.concurrency:
        return before.throughput / before.batch_size * max(1.0, point.concurrency / before.concurrency)
    alone = target.sample_seconds * point.batch_size
    return SETTINGS.faster * point.concurrency / alone if alone else 0.0


def allocator(target: Target, points: Sequence[Point]) -> dict[str, str]:
    """Return glibc's settings for perf_analyzer with requests so large that malloc would map memory for each alone.

    Such memory is mapped and zeroed page by page under a lock of the whole process, for every copy. On two cores at
    concurrency 15, copying the requests of a window took several times as long as the window, and the requests of that
    time were kept and copied too: a point took 9.6 GB or, in four of six runs, more than 12 GB. With memory that is
    used again, in few arenas, it took 4.7 and 5.4 GB.
    """
    largest = max((target.sample_bytes * point.batch_size for point in points), default=0)
    return dict(SETTINGS.keeping_memory) if largest >= SETTINGS.mapped_bytes else {}
