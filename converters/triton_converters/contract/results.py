"""The results of the Jobs, one type for each stage. Standard library only."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from triton_converters.contract.document import Document, DocumentError
from triton_converters.contract.quantization import Quantized
from triton_converters.contract.step_times import StepTimes

_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Tensor(Document):
    """An input or output as config.pbtxt declares it."""

    name: str
    data_type: str
    """Triton's name of the type: FP32, INT64, BOOL, BYTES, ..."""
    dims: tuple[int, ...]
    """Dimensions of the model's own tensor, without the batch; -1: varies."""
    request_dims: tuple[int, ...] = ()
    """Dimensions in requests and answers where config.pbtxt of a Triton repository reshapes; empty: it does not."""

    @property
    def served_dims(self) -> tuple[int, ...]:
        """The dimensions that config.pbtxt declares, which requests and answers have.

        Triton allows no empty dims: a tensor with only the batch dimension, [N], is served as [N, 1] and reshaped.
        """
        return self.request_dims or self.dims or (1,)


@dataclass(frozen=True)
class Signature(Document):
    """The names, types and shapes that every candidate serves."""

    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    max_batch_size: int
    """Largest batch, in samples; 0: no batch dimension."""


@dataclass(frozen=True)
class Row:
    """One measurement. Latencies are in microseconds; the columns are those of perf_analyzer's CSV, in its order.

    perf_analyzer reports network and server send/receive as one figure, so seven components stand for the eight steps
    of a request: client send, network + server send/receive (three steps), queue, compute input, infer and output,
    client receive.
    """

    batch_size: int
    concurrency: int
    """Requests in flight; 0: they arrived at ``request_rate``."""
    throughput: float
    """Inferences (samples) per second."""
    client_send: int
    network: int
    queue: int
    compute_input: int
    compute_infer: int
    compute_output: int
    client_receive: int
    p50: int
    p90: int
    p95: int
    p99: int
    average: int
    stable: bool
    """False: no three windows agreed within the stability percentage, so the row merges three that differ by more."""
    spread: float = 0.0
    """How much the throughput of the merged windows differs: (largest - smallest) / mean, in per cent; 0.0 if
    unknown."""
    client_bound: bool = False
    """True: the client was the limit, so the server could do more."""
    memory_bytes: int = 0
    """Most memory in use during the measurement, in bytes, rounded down to whole MiB: of the GPUs, from Triton's
    metrics; without a GPU of the whole node, whatever uses it. 0 if unknown."""
    request_rate: int = 0
    """Requests per second that were to arrive, whatever the server had answered; 0: a fixed number was in flight."""


PERF_ANALYZER = "perf_analyzer"
"""The program that measures."""


@dataclass(frozen=True)
class Environment(Document):
    """Where a measurement was taken; results are comparable only if their environments agree."""

    server_version: str
    device: str
    """``cpu`` or ``gpu``, read back from the loaded models' instance groups."""
    gpu_product: str
    tensorrt_version: str
    cpu: str
    perf_analyzer: tuple[str, ...]
    """Command line of one invocation per scenario; only -b and the load differ between its points."""
    gpu_driver: str = ""
    """Versions of the GPU's driver and of CUDA, which only the node knows; a Job leaves it empty."""


@dataclass(frozen=True)
class RepositoryModel(Document):
    """A model of a Triton repository: its file, and what is taken of its config.pbtxt; or that of an MLmodel."""

    file: str
    """Path of the model's file or directory, below the source."""
    max_batch_size: int | None
    """Samples; None: the graph shows it, because config.pbtxt declares neither inputs nor outputs."""
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    """What config.pbtxt declares; empty: nothing."""
    instances: int | None
    """None: not said."""
    dynamic_batching: bool
    preferred_batch_sizes: tuple[int, ...]
    max_queue_delay_microseconds: int
    cuda_graphs: bool
    parameters: Mapping[str, str]
    """Values by name, which are allowed for the model's backend."""
    overrides: str
    """A piece of config.pbtxt that ``contract.overrides`` allows."""
    left_out: tuple[str, ...] = ()
    """Fields that are left out although somebody may miss them, each with the reason."""


@dataclass(frozen=True)
class SourceResult(Document):
    """The published source."""

    digest: str
    """SHA-256 as 64 hexadecimal digits."""
    files: int
    total_bytes: int
    formats: tuple[str, ...] = ()
    """Formats of the models that the request names, in its order."""
    resolved: str = ""
    """What the server called the version that was downloaded: the entity tag or the commit; empty: nothing, or not
    downloaded."""
    batched: tuple[bool, ...] = ()
    """Whether each of the request's ``graphs`` has a batch dimension, in its order."""
    lengths: tuple[bool, ...] = ()
    """Whether that dimension of each of them seems to be a length, by its name; empty: of none."""
    requirements: str = ""
    """SHA-256 of the requirements file that the request names; empty: it names none."""
    repositories: tuple[RepositoryModel | None, ...] = ()
    """For each of the request's ``models``, in its order, what its Triton repository says; None: it is in none. Empty:
    none of them is."""
    step_requirements: tuple[str, ...] = ()
    """SHA-256 of each of the request's ``step_requirements``, in its order."""
    files_key: str = ""
    """The request's ``files_key``."""

    def __post_init__(self) -> None:
        """Raise DocumentError for a digest that is none: it names the directory that user code gets."""
        if not _DIGEST.fullmatch(self.digest):
            raise DocumentError("the digest of the source is not 64 hexadecimal digits")


@dataclass(frozen=True)
class PackagesResult(Document):
    """The installed Python packages."""

    packages: tuple[str, ...]
    """The first packages in the order of their names, each as NAME==VERSION."""
    count: int
    """How many there are."""
    total_bytes: int


@dataclass(frozen=True)
class ReferenceResult(Document):
    """The recorded reference."""

    signature: Signature
    samples: int
    batches: int
    seconds: float
    warnings: tuple[str, ...] = ()
    """What the user should know of generated inputs and of the answers to them."""
    rehearsed: bool = False
    """Whether user code asked for a GPU and got the CPU, because the Job had none."""
    gpu: str = ""
    """Name of the GPU that the framework computed on, in its own words; empty: it computed on the CPU."""
    samples_digest: str = ""
    """Digest of the files with the samples and the framework's answers; empty: not recorded."""


@dataclass(frozen=True)
class ConvertResult(Document):
    """A published revision."""

    file_sha256: str
    file_bytes: int
    data_types: tuple[str, ...]
    """Floating point types of the file's weights, read back after the conversion."""
    seconds: float
    warnings: tuple[str, ...]
    tensorrt_version: str
    """Version of the TensorRT that made the file; empty if none did."""
    max_absolute_error: float | None
    """Largest error against the framework's floating point outputs when the Job runs the file without Triton.

    Taken over the first samples of the reference; None if the Job has no runtime of the format, or the file fails in
    it.
    """
    content: str = ""
    """Digest of everything that the revision holds; empty: this describes a converted file and no revision yet."""
    rehearsed: bool = False
    """Whether user code asked for a GPU and got the CPU, because the Job had none."""
    gpu: str = ""
    """Name of the GPU that the framework computed on, in its own words; empty: it computed on the CPU."""
    quantized: Quantized | None = None
    """What an INT8 graph is like; None: another precision, or an ensemble."""


@dataclass(frozen=True)
class Lengths:
    """How long a dimension of an input is over samples, in elements; half of them are at most ``median`` long."""

    input: str
    dimension: int
    """Counted from 0, without the batch dimension."""
    minimum: int
    median: int
    p90: int
    """Nine of ten samples are at most this long."""
    maximum: int


@dataclass(frozen=True)
class Mix:
    """The samples that requests of one sample send in turn, in their own shapes."""

    samples: int
    shapes: int
    """How many different shapes they have, at least 2."""
    lengths: tuple[Lengths, ...]
    """Lengths of dimensions that vary, as many as fit into an answer; inputs that are equally long count as one."""


@dataclass(frozen=True)
class ProfileResult(Document):
    """The gates' verdict and the sweeps of one candidate; if a gate failed, the sweeps are empty."""

    passed: bool
    reason: str
    """A Reason's value: ``Passed`` or the first gate that failed."""
    message: str
    max_absolute_error: float
    samples: int
    offline: tuple[Row, ...]
    online: tuple[Row, ...]
    environment: Environment
    stat_digest: str = ""
    """Digest of the attributes of the revision's files, just before their content was compared."""
    request_rate: tuple[Row, ...] = ()
    """Open-loop measurements."""
    mix: Mix | None = None
    """The shapes in which the samples were sent; None: all in one."""

    def rows(self, scenario: str) -> tuple[Row, ...]:
        """Return the measurements of a scenario, a key of SCENARIOS."""
        found: tuple[Row, ...] = getattr(self, SCENARIOS[scenario])
        return found


SCENARIOS = {"Offline": "offline", "Online": "online", "RequestRate": "request_rate"}
"""The fields of ProfileResult with the measurements of each scenario, by its name in the API."""


@dataclass(frozen=True)
class CandidateMetrics(Document):
    """The metrics of one candidate's kept outputs, or why there are none."""

    profile: str
    """Key of the profile that kept them."""
    values: tuple[float | None, ...]
    """In the order of ``MetricsResult.metrics``; None: not computed, or not finite. Empty if the metrics failed."""
    reason: str = ""
    """A Reason's value if the user's code failed for this candidate; otherwise empty."""
    message: str = ""
    converted: tuple[float | None, ...] = ()
    """Values of the outputs of the converted file in its format's own runtime, outside Triton, as ``values``; empty: it
    has no runtime in the Job, did not run there, or not in time."""


@dataclass(frozen=True)
class MetricsResult(Document):
    """What the user's MetricsCalculator computed."""

    metrics: tuple[str, ...]
    """The metrics' names, sorted."""
    framework: tuple[float | None, ...]
    """Values of the framework's outputs, in that order; None: not finite, or computed only of served outputs."""
    candidates: tuple[CandidateMetrics, ...]


@dataclass(frozen=True)
class MeasureResult(Document):
    """The online sweep of the target revision's server."""

    online: tuple[Row, ...]
    environment: Environment
    mix: Mix | None = None
    """The shapes in which the samples were sent; None: all in one."""
    steps: tuple[StepTimes, ...] = ()
    """The times of each model of an ensemble; empty: of none, or there are too many figures for one message."""

    def __post_init__(self) -> None:
        """Raise DocumentError if the times are not one for each row."""
        if any({len(each.queue), len(each.compute)} != {len(self.online)} for each in self.steps):
            raise DocumentError("the times of the ensemble's models are not those of the rows")


@dataclass(frozen=True)
class Counters:
    """The requests to the served model that a server has answered since it was started."""

    pod: str
    succeeded: int
    failed: int
    """Without those that their client gave up."""
    microseconds: int
    """Time that those that succeeded took together, from arrival to answer."""


@dataclass(frozen=True)
class SnapshotResult(Document):
    """The counters of servers at one moment."""

    active: tuple[Counters, ...]
    previous: tuple[Counters, ...] = ()


@dataclass(frozen=True)
class Tuning:
    """The fields of ``request.ModelConfig`` that a search varies."""

    max_batch_size: int
    """Largest batch, in samples; 0: no batch dimension."""
    instances: int
    dynamic_batching: bool
    preferred_batch_sizes: tuple[int, ...]
    max_queue_delay_microseconds: int
    cuda_graphs: bool


@dataclass(frozen=True)
class SearchPoint:
    """A configuration with one of its measurements, or with the reason why it cannot be served."""

    tuning: Tuning
    row: Row | None
    refused: str = ""
    """How the configuration failed, in words, if there is no row."""


class SearchEnd(StrEnum):
    """How a search ended, or one part of it."""

    GOES_ON = ""
    """Another part continues."""
    CONVERGED = "Converged"
    """A quick search found no better step, or measured a tenth of its space."""
    COMPLETE = "Complete"
    """An exhaustive search measured every point."""
    MEASUREMENTS_SPENT = "MeasurementsSpent"
    TIME_SPENT = "TimeSpent"
    FAILED = "Failed"
    """A part failed. No Job answers this: the operator says it of the search."""


@dataclass(frozen=True)
class SearchResult(Document):
    """The measurements of one Job of a search."""

    search: str
    """Name of the file with all parts' points on the claim."""
    points: tuple[SearchPoint, ...]
    """Points in the path's order, without those of earlier parts and of the profile."""
    ended: SearchEnd
    size: int
    """Number of points of the whole space, all of which an exhaustive search would measure."""
    seconds: float
    """Time that measuring this part's points and those before them took."""
    environment: Environment
    repeats: tuple[SearchPoint, ...] = ()
    """The best point and the best of another configuration, measured once more with longer windows; only in the last
    part, if something better than the base was found."""


@dataclass(frozen=True)
class CleanResult(Document):
    """How many directories were removed."""

    directories: int
    temporary: int
