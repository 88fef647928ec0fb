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
  each window while requests go on: 3,000 requests of 602 kB took 3.6 to 4.5 GB. With shared memory nothing is kept.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil

from triton_converters.contract.measurement_requests import InputShape, Measurement
from triton_converters.contract.results import PERF_ANALYZER, Row

TRIALS = 5
"""--max-trials: windows before perf_analyzer gives up; five give three chances of three windows in a row."""
TIME_WINDOW = 1.2
"""How many intervals a time window lasts."""
STABLE_WINDOWS = 3
"""Number of windows in a row that must agree and are merged; perf_analyzer's own number."""
UNJUDGED_PERCENTAGE = 1_000_000
"""A stability percentage that any three windows meet."""
LONG_WINDOW_SECONDS = 1.5
"""A retry's windows hold at least the requests of this time, so they last two seconds, not one: at 5,000 requests a
second doubling 50 requests changes nothing."""
WARMUP_REQUESTS = 10
"""Fewest warm-up requests, unless they take longer than WARMUP_SECONDS."""
FEWEST_WARMUP_REQUESTS = 3
"""Fewest warm-up requests of a slow model: TorchScript optimizes in its second and third call, for every new shape."""
WARMUP_SECONDS = 3
START_SECONDS = 1.0
"""Time of its start and its warm-up, which a fast model's windows do not exceed by much."""
POINT_SECONDS = 60
"""A row's three windows hold what fits into this time, by what a request takes alone: ``requestCount`` or fewer. A
sweep of ten points that do not settle then takes half an hour, whatever the model."""
FAST_SECONDS = 0.01
"""A request that takes less may be measured in the windows of ``Measurement.fast_milliseconds``, 36 or more in each."""
FEWEST_REQUESTS = 3
"""In a window, and one for each worker."""
COPIES = 5
"""How often perf_analyzer has the inputs and outputs of a window's request in memory: two or three times on a quiet
machine. On a busy one, requests go on arriving while it copies, and are kept too."""
FEWER = 10
"""Divisor of the requests, and of the memory, of windows that took too much of either."""
MAPPED_BYTES = 128 * 1024
"""glibc's M_MMAP_THRESHOLD: larger blocks are mapped one by one."""
KEEPING_MEMORY = {
    "MALLOC_MMAP_THRESHOLD_": str(32 << 20),
    "MALLOC_TRIM_THRESHOLD_": str(16 << 30),
    "MALLOC_TOP_PAD_": str(64 << 20),
    "MALLOC_ARENA_MAX": "2",
}
"""The largest threshold that glibc takes, and memory that is not given back."""
FASTER = 3
"""How many times as fast perf_analyzer may ask as the client in Python that measured one request."""
SLOWER = 2
"""How many times as long as alone a request may take under load before an invocation is given up."""
MOST_THREADS = 256
"""Requests that an open loop has in flight at most. With ``--async`` there is no limit: a rate far above the server's
was seen to fill its queue for minutes, and to end neither server nor client."""
FEWEST_THREADS = 16
THREAD_SECONDS = 10
"""An open loop may have the requests of this time in flight, up to MOST_THREADS."""
RANDOM_WINDOW_SECONDS = 30
"""A window is not made longer than this only because its requests arrive at random."""


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
    distribution: str = "Poisson"
    """Distribution of the times between requests: ``Poisson`` or ``Constant``."""
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
        distribution = ("--request-distribution", self.distribution.lower())
        return ("--request-rate-range", str(self.rate), *distribution, "--max-threads", str(self.workers))

    @property
    def workers(self) -> int:
        """Most requests that can be in flight; an open loop has one thread for each."""
        return min(MOST_THREADS, max(FEWEST_THREADS, self.rate * THREAD_SECONDS)) if self.rate else self.concurrency

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
    def arguments(self) -> tuple[str, ...]:
        """The command-line flags."""
        mode = (
            ("count_windows", "--measurement-request-count")
            if self.by_count
            else ("time_windows", "--measurement-interval")
        )
        return (
            "--measurement-mode",
            mode[0],
            mode[1],
            str(self.size),
            "--stability-percentage",
            str(self.stability_percentage),
            "--max-trials",
            str(self.trials),
        )


@dataclass(frozen=True)
class Target:
    """What all points of a measurement have in common."""

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


def arguments(target: Target, point: Point, windows: Windows, output_bytes: int | None = None) -> tuple[str, ...]:
    """Return the argv of one invocation; the report goes to ``<point>.csv`` in the working directory.

    ``output_bytes``: None for requests over the network; a number for system shared memory, with regions of that many
    bytes per sample for the outputs whose size varies.
    """
    shared_memory: tuple[str, ...] = ()
    if output_bytes is not None:
        shared_memory = ("--shared-memory", "system", "--output-shared-memory-size", str(max(1, output_bytes)))
    return (
        PERF_ANALYZER,
        *("-m", target.model, "-u", target.url, "-i", target.protocol),
        *("-b", str(point.client_batch_size), *point.arguments),
        *("--input-data", target.input_data),
        *(word for shape in target.shapes for word in ("--shape", f"{shape.input}:{','.join(map(str, shape.dims))}")),
        *shared_memory,
        *("--warmup-request-count", str(warmup_requests(point, target.sample_seconds, target.samples))),
        *windows.arguments,
        *("-v", "--verbose-csv", "-f", f"{point.name}.csv"),
    )


def warmup_requests(point: Point, sample_seconds: float, samples: int = 1) -> int:
    """Return two for each worker and at least WARMUP_REQUESTS, or what WARMUP_SECONDS allow for a slow model.

    An open loop has one for each of its many threads. ``samples``: how many requests show all shapes of the file; a
    server may plan, or optimize, when it sees a shape for the first time.
    """
    seconds, wanted = sample_seconds * point.batch_size, max(WARMUP_REQUESTS, samples)
    affordable = WARMUP_SECONDS / seconds if seconds else wanted
    workers = point.workers if point.rate else 2 * point.concurrency
    return max(workers, min(wanted, max(FEWEST_WARMUP_REQUESTS, int(affordable))))


def first_windows(measurement: Measurement, point: Point, samples: int = 1, sample_seconds: float = 0.0) -> Windows:
    """Return the windows that the spec asks for; longer ones if requests arrive at random, or differ.

    The number of Poisson arrivals in a window scatters by its square root, and twice that has to be within the
    stability percentage. Windows of a few requests of many shapes differ by their shapes, so each has all ``samples``.
    """
    is_fast = _fits_fast_windows(measurement, samples, sample_seconds * point.batch_size)
    by_count = measurement.mode == "CountWindows" and not is_fast
    interval = measurement.fast_milliseconds if is_fast else measurement.interval_milliseconds
    size = measurement.request_count if by_count else interval
    if point.rate and point.distribution == "Poisson":
        enough = (2 * 100 / measurement.stability_percentage) ** 2
        seconds = min(enough / point.rate, RANDOM_WINDOW_SECONDS)
        size = max(size, ceil(seconds * (point.rate if by_count else 1000)))
    if by_count:
        size = samples * ceil(size / samples)
    return Windows(by_count, size, measurement.stability_percentage, TRIALS)


def _fits_fast_windows(measurement: Measurement, samples: int, request_seconds: float) -> bool:
    """Whether the short windows hold enough requests, and all ``samples``, even if they come one after the other."""
    window_seconds = TIME_WINDOW * measurement.fast_milliseconds / 1000
    return 0 < request_seconds < FAST_SECONDS and samples * request_seconds <= window_seconds


def longer(windows: Windows, requests_per_second: float) -> Windows:
    """Return windows at least twice as long; ``requests_per_second``: that of the last attempt, 0.0 if unknown."""
    least = ceil(requests_per_second * LONG_WINDOW_SECONDS) if windows.by_count else 0
    return replace(windows, size=max(2 * windows.size, least))


def unjudged(windows: Windows, measurement: Measurement) -> Windows:
    """Return three windows that are merged in any case; by count, since a time window may be shorter than a request."""
    size = windows.size if windows.by_count else measurement.request_count
    return Windows(True, size, UNJUDGED_PERCENTAGE, STABLE_WINDOWS)


def affordable(windows: Windows, point: Point, target: Target, rate: float = 0.0) -> Windows:
    """Return the windows with no more requests than POINT_SECONDS and the memory allow.

    ``rate``: requests per second that the point will not exceed; 0.0 if unknown.
    """
    windows = _within_memory(windows, point, target, rate)
    seconds = target.sample_seconds * point.batch_size
    if not windows.by_count or not seconds:
        return windows
    most = max(fewest_requests(point), int(POINT_SECONDS / (STABLE_WINDOWS * seconds)))
    return windows if windows.size <= most else replace(windows, size=_whole_rounds(most, target.samples))


def _whole_rounds(requests: int, samples: int) -> int:
    """Return the most requests up to ``requests`` that hold all samples equally often, if they hold all of them."""
    return requests - requests % samples if requests >= samples else requests


def _within_memory(windows: Windows, point: Point, target: Target, rate: float) -> Windows:
    """Windows whose requests fit into the memory: of time, if those of a whole second might not."""
    if not target.sample_bytes:
        return windows
    each = COPIES * target.sample_bytes * point.batch_size
    most = max(fewest_requests(point), target.memory_bytes // (each * windows.trials))
    if rate > most:
        milliseconds = max(1, int(1000 * most / (TIME_WINDOW * rate)))
        longest = milliseconds if windows.by_count else min(windows.size, milliseconds)
        return replace(windows, by_count=False, size=longest)
    if windows.by_count:
        return replace(windows, size=min(windows.size, most))
    return windows if TIME_WINDOW * rate * windows.size / 1000 <= most else replace(windows, by_count=True, size=most)


def most_requests_per_second(point: Point, target: Target, before: Row | None) -> float:
    """Return a rate that the point will not exceed; ``before``: a point of the same sweep; 0.0 if nothing is known."""
    if point.rate:
        return float(point.rate)
    if before is not None and before.batch_size == point.batch_size and before.concurrency:
        return before.throughput / before.batch_size * max(1.0, point.concurrency / before.concurrency)
    alone = target.sample_seconds * point.batch_size
    return FASTER * point.concurrency / alone if alone else 0.0


def fewer(windows: Windows, measurement: Measurement, point: Point) -> Windows:
    """Three windows that are merged whatever they show, of a tenth of the requests that took too much."""
    last = unjudged(windows, measurement)
    return replace(last, size=min(last.size, max(fewest_requests(point), last.size // FEWER)))


def allocator(target: Target, points: Sequence[Point]) -> dict[str, str]:
    """Return glibc's settings for perf_analyzer with requests so large that malloc would map memory for each alone.

    Such memory is mapped and zeroed page by page under a lock of the whole process, for every copy. On two cores at
    concurrency 15, copying the requests of a window took several times as long as the window, and the requests of that
    time were kept and copied too: a point took 9.6 GB or, in four of six runs, more than 12 GB. With memory that is
    used again, in few arenas, it took 4.7 and 5.4 GB.
    """
    largest = max((target.sample_bytes * point.batch_size for point in points), default=0)
    return dict(KEEPING_MEMORY) if largest >= MAPPED_BYTES else {}


def fewest_requests(point: Point) -> int:
    """How many requests a window holds at least."""
    return max(FEWEST_REQUESTS, point.concurrency)


def stable_seconds(windows: Windows, sample_seconds: float, point: Point) -> float:
    """How long three windows take, by what a request takes alone; 0.0 if that is not known, or they have a time."""
    return STABLE_WINDOWS * windows.size * sample_seconds * point.batch_size if windows.by_count else 0.0


def least_seconds(windows: Windows, sample_seconds: float, point: Point) -> float:
    """How long a point takes that settles at once: perf_analyzer's start, and three windows of at least a second."""
    shortest = 1.0 if windows.by_count else TIME_WINDOW * windows.size / 1000
    return START_SECONDS + max(STABLE_WINDOWS * shortest, stable_seconds(windows, sample_seconds, point))


def most_seconds(windows: Windows, point: Point, sample_seconds: float, samples: int = 1) -> float:
    """How long warm-up and windows may take; the server may do one request at a time, whatever the load."""
    warmup = warmup_requests(point, sample_seconds, samples)
    requests = warmup + (windows.trials * windows.size if windows.by_count else 0)
    intervals = 0.0 if windows.by_count else TIME_WINDOW * windows.trials * windows.size / 1000
    arrivals = requests / point.rate if point.rate else 0.0
    return intervals + SLOWER * (arrivals + requests * sample_seconds * point.batch_size)
