"""The tuned numbers of a measurement. Each has its unit in its name or its text, and its source."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """What is measured for how long, and what it may take."""

    trials: int = 5
    """Windows before perf_analyzer gives up (--max-trials): five give three chances of three windows in a row."""
    time_window: float = 1.2
    """How many intervals a time window lasts; perf_analyzer's own number."""
    stable_windows: int = 3
    """Windows in a row that must agree and are merged; perf_analyzer's own number."""
    unjudged_percentage: int = 1_000_000
    """A stability percentage that any three windows meet."""
    long_window_seconds: float = 1.5
    """A retry's windows hold at least the requests of this time, so they last two seconds, not one: at 5,000 requests a
    second doubling 50 requests changes nothing."""
    warmup_requests: int = 10
    """Fewest warm-up requests, unless they take longer than ``warmup_seconds``."""
    fewest_warmup_requests: int = 3
    """Fewest of a slow model: TorchScript optimizes in its second and third call, for every new shape."""
    warmup_seconds: float = 3.0
    start_seconds: float = 1.0
    """Time of perf_analyzer's start and its warm-up, which a fast model's windows do not exceed by much."""
    point_seconds: float = 60.0
    """A row's three windows hold what fits into this time, by what a request takes alone: ``requestCount`` or fewer. A
    sweep of ten points that do not settle then takes half an hour, whatever the model."""
    fast_seconds: float = 0.01
    """A request that takes less may be measured in the windows of ``Measurement.fast_milliseconds``, 36 or more in
    each."""
    fewest_requests: int = 3
    """In a window, and one for each worker."""
    copies: int = 5
    """How often perf_analyzer has the inputs and outputs of a window's request in memory: two or three times on a quiet
    machine. On a busy one, requests go on arriving while it copies, and are kept too."""
    fewer: int = 10
    """Divisor of the requests, and of the memory, of windows that took too much of either."""
    mapped_bytes: int = 128 * 1024
    """glibc's M_MMAP_THRESHOLD: larger blocks are mapped one by one."""
    keeping_memory: tuple[tuple[str, str], ...] = (
        ("MALLOC_MMAP_THRESHOLD_", str(32 << 20)),
        ("MALLOC_TRIM_THRESHOLD_", str(16 << 30)),
        ("MALLOC_TOP_PAD_", str(64 << 20)),
        ("MALLOC_ARENA_MAX", "2"),
    )
    """The largest threshold that glibc takes, and memory that is not given back."""
    faster: int = 3
    """How many times as fast perf_analyzer may ask as the client in Python that measured one request."""
    slower: int = 2
    """How many times as long as alone a request may take under load before a run is given up."""
    most_threads: int = 256
    """Requests that an open loop has in flight at most. With ``--async`` there is no limit: a rate far above the
    server's was seen to fill its queue for minutes, and to end neither server nor client."""
    fewest_threads: int = 16
    thread_seconds: int = 10
    """An open loop may have the requests of this time in flight, up to ``most_threads``."""
    random_window_seconds: float = 30.0
    """A window is not made longer than this only because its requests arrive at random."""
    base_seconds: float = 600.0
    """Time that a run may take besides its requests: its start, or everything if the time of a request is unknown.
    Model Analyzer's limit."""
    long_seconds: float = 10.0
    """A point that takes longer is announced: its row comes when it has ended."""
    look_seconds: float = 0.2
    """The pause between two looks at perf_analyzer's memory, which was seen to grow by 1 GB a second."""
    connections: int = 3
    """How often a point is begun with the same windows if the server's renewal of a connection ended perf_analyzer."""
    busy_client_percent: float = 50.0
    """Share of the time without a request under way beyond which perf_analyzer warns that it cannot keep up with the
    load (``overhead_pct_threshold`` in its command_line_parser.h)."""
    delayed_percent: float = 10.0
    """Share of an open loop's requests that may leave late, because every thread waits for an answer: their latencies
    leave out how long they waited."""
    slow_requests: int = 3000
    """Requests, one after the other, whose time the sweeps of a slow model may take: 20 points of 150 requests."""
    most_sweeps_seconds: float = 180.0
    """The time of a very slow model, which is mostly spent by the points that are measured in any case."""
    output_room: int = 2
    """Factor on the shared memory of outputs whose size depends on values: only one sample was tried in the spec's
    shapes."""
    memory_percent: int = 80
    """Share of the Job's memory that perf_analyzer may take before we end it. The kernel would end the whole
    container."""
    alone_requests: int = 3
    """Most requests that are timed alone; the fastest counts. On a GPU, ONNX Runtime plans its convolutions in the
    first request after one of another shape, and PyTorch optimizes in the second. On an H200, a request of 3 ms took
    200 ms at first, so that windows were to hold 3 requests instead of 50."""
    alone_seconds: float = 10.0
    """Time after which no further request is timed alone, so that a slow model's Job takes little longer."""
    memory_poll_seconds: float = 0.5
    """Pause between two readings; Triton updates its figures every two seconds by default (--metrics-interval-ms)."""
    most_mixed_samples: int = 100
    """Most samples that are sent in turn. A window holds all of them, so that windows can agree."""
    most_shapes: int = 3
    """Most shapes that are measured for a request of several samples."""
    shape_percentiles: tuple[int, ...] = (50, 90, 100)
    """If samples have more shapes: the percentiles of their size whose shapes are measured. A sample counts as the next
    larger of these, so none counts as smaller than it is."""
    most_lengths: int = 4
    """Dimensions that a result tells of: it has to fit into a termination message."""
    seed: int = 2026
    """Any number, as long as it stays: another order makes other figures."""
    input_bytes: int = 32 * 2**20
    """Largest file: perf_analyzer keeps it decoded in memory, and once more for each shared memory region."""
    last_lines: int = 5
    """Lines of output that a message quotes: the error is among the last."""
    most_figures: int = 60
    """Rows times models of which a result tells: it has to fit into a termination message."""
    longest_file_bytes: int = 64 * 1024
    """Bytes of a file that are read: it has two lines."""
    ready_seconds: float = 120.0
    """How long to wait for a model that was ready before."""
    lookup_pauses: tuple[float, ...] = (1.0, 2.0, 4.0)
    """Seconds before a name is looked up again. Some network plugins let a pod out only seconds after its start."""
    poll_seconds: float = 0.2
    """Between two looks at a model that is not ready."""
    told_seconds: float = 60.0
    """Between two lines of the log about it."""
    http_seconds: float = 10.0
    """How long to wait for any other answer over HTTP."""
    answer_seconds: float = 300.0
    """How long to wait for an answer before the request is sent again. A server that hangs never answers."""
    load_seconds: int = 600
    """How long a model may take to load; TensorRT inside ONNX Runtime builds an engine while loading."""
    resend_pauses: tuple[float, ...] = (0.5, 2.0, 5.0)
    """Seconds before a request without an answer is sent again. The channel reconnects by itself; if that is refused,
    it waits a second before it tries again."""
    metrics_seconds: float = 2.0
    """How long to wait for the metrics endpoint, which a Service or a NetworkPolicy may block."""
    largest_answer_bytes: int = 16 * 2**20
    """Most that is read of an answer about the server or a model, or of its metrics. Real ones are below 1 MiB."""

    @property
    def unsettled(self) -> float:
        """How many times as long a point takes that does not settle: all of its windows, and three as they are."""
        return (self.trials + self.stable_windows) / self.stable_windows


SETTINGS = Settings()
