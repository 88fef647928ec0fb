"""The results that Jobs answer with, one type for each stage. Standard library only."""

from dataclasses import dataclass

from triton_converters.contract.document import Document


@dataclass(frozen=True)
class Tensor(Document):
    """An input or output as config.pbtxt declares it."""

    name: str
    data_type: str
    """Triton's name: FP32, INT64, BOOL, BYTES, ..."""
    dims: tuple[int, ...]
    """Without the batch dimension; -1: varies."""


@dataclass(frozen=True)
class Signature(Document):
    """Names, types and shapes every candidate serves."""

    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    max_batch_size: int
    """Samples; 0: no batch dimension."""


@dataclass(frozen=True)
class Row:
    """One measured point. Latencies in microseconds; perf_analyzer's CSV columns in its order.

    perf_analyzer reports network and server send/receive as one figure, so seven components stand for the eight steps
    of a request: client send, network + server send/receive (three steps), queue, compute input, infer and output,
    client receive.
    """

    batch_size: int
    concurrency: int
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
    """False: no three windows agreed within the stability percentage; the row is three merged whatever they show."""
    spread: float = 0.0
    """How much the merged windows' throughput differs: (largest - smallest) / mean, per cent; 0.0 where unknown."""
    client_bound: bool = False
    """True: the client itself was the limit, so the server could do more."""
    memory_bytes: int = 0
    """Most memory in use while the row was measured, in whole MiB: of the GPUs as Triton's metrics say; without a GPU
    of the whole node, whatever uses it. 0 where unknown."""


@dataclass(frozen=True)
class Accuracy(Document):
    """One metric, computed by the user's MetricsCalculator on both sets of outputs."""

    metric: str
    framework: float
    served: float
    threshold: str
    """What was asked, in words ("minimum 0.95"); empty where nothing was."""
    passed: bool


@dataclass(frozen=True)
class Environment(Document):
    """Where a measurement was taken; results are comparable only where these agree."""

    server_version: str
    device: str
    """``cpu`` or ``gpu``: read back from the loaded model's instance groups and the server's metrics."""
    gpu_product: str
    tensorrt_version: str
    cpu: str
    perf_analyzer: tuple[str, ...]
    """The argv of one invocation per scenario; only -b and --concurrency-range differ between its points."""


@dataclass(frozen=True)
class SourceResult(Document):
    """The published source."""

    digest: str
    """SHA-256 as 64 hexadecimal digits."""
    files: int
    total_bytes: int


@dataclass(frozen=True)
class ReferenceResult(Document):
    """The framework's dump."""

    signature: Signature
    samples: int
    batches: int
    seconds: float


@dataclass(frozen=True)
class ConvertResult(Document):
    """A published revision."""

    file_sha256: str
    file_bytes: int
    data_types: tuple[str, ...]
    """Floating point types of the file's own weights, read back after the conversion."""
    seconds: float
    warnings: tuple[str, ...]
    tensorrt_version: str
    """Of the TensorRT that made the file; empty where none did."""
    max_absolute_error: float | None
    """Against the framework's floating point outputs, of the file run by its own runtime in the Job, without Triton.

    Over the first samples of the reference; None where the Job has no runtime of the format.
    """


@dataclass(frozen=True)
class ProfileResult(Document):
    """The gates' verdict and the sweeps of one candidate; where a gate failed the sweeps are empty."""

    passed: bool
    reason: str
    """A Reason's value: ``Passed`` or the first gate that failed."""
    message: str
    max_absolute_error: float
    accuracy: tuple[Accuracy, ...]
    samples: int
    offline: tuple[Row, ...]
    online: tuple[Row, ...]
    environment: Environment


@dataclass(frozen=True)
class MeasureResult(Document):
    """The online sweep of the server that is about to serve."""

    online: tuple[Row, ...]
    environment: Environment


@dataclass(frozen=True)
class Tuning:
    """What a search varies of a model's configuration; the same fields of ``request.ModelConfig``."""

    max_batch_size: int
    """Samples; 0: no batch dimension."""
    instances: int
    dynamic_batching: bool
    preferred_batch_sizes: tuple[int, ...]
    max_queue_delay_microseconds: int
    cuda_graphs: bool


@dataclass(frozen=True)
class SearchPoint:
    """A configuration and one row of it; or a configuration that cannot be served, and why."""

    tuning: Tuning
    row: Row | None
    refused: str = ""
    """Where there is no row: how it failed, in words."""


@dataclass(frozen=True)
class SearchResult(Document):
    """What one Job of a search measured."""

    search: str
    """Names the file of all parts' points on the claim."""
    points: tuple[SearchPoint, ...]
    """In the path's order; not those of earlier parts, nor the profile's."""
    ended: str
    """``Converged``, ``Complete`` (exhaustive), ``MeasurementsSpent``, ``TimeSpent``; empty: another part goes on."""
    size: int
    """Points of the whole space: what an exhaustive search would measure."""
    seconds: float
    """That measuring took, of this part's points and those before it."""
    environment: Environment
    repeats: tuple[SearchPoint, ...] = ()
    """Of the last part, where something better than the base was found: the best point, and the best of another
    configuration, measured once more with longer windows."""


@dataclass(frozen=True)
class CleanResult(Document):
    """What was removed."""

    directories: int
    temporary: int


RESULTS: dict[str, type[Document]] = {
    "source": SourceResult,
    "reference": ReferenceResult,
    "convert": ConvertResult,
    "profile": ProfileResult,
    "search": SearchResult,
    "measure": MeasureResult,
    "clean": CleanResult,
}
"""The result's type by stage."""
