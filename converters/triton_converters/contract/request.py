"""The requests to the Jobs: one JSON document, the container's only argument after the stage's name.

Shared by the Jobs and the controller; standard library only. ``key`` names the result: it is a hash of everything that
can change the result, so a Job that finds a valid result with its key on the claim replays it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from triton_converters.contract.document import Document
from triton_converters.contract.results import Signature, Tensor, Tuning


@dataclass(frozen=True)
class Entrypoint:
    """A user's Python file and the arguments of its function or class; or a model's own file, without arguments.

    ``path`` is relative to the source's directory; ``$(DATA)`` and ``$(WEIGHTS)`` in a value are
    already replaced by the mount paths.
    """

    path: str
    arguments: Mapping[str, str]


@dataclass(frozen=True)
class SourceRequest(Document):
    """Publish ``path`` below SOURCE_MOUNT (empty: all of it), or what is downloaded, as ``sources/<digest>/``."""

    key: str
    uri: str
    path: str
    sha256: str
    """Expected digest, 64 hexadecimal digits, or empty."""
    models: tuple[str, ...] = ()
    """Paths below the source of models whose format the spec leaves out; it is found by their content."""
    revision: str = ""
    """Branch, tag or commit of a repository; empty: its main branch, or the scheme has none."""
    include: tuple[str, ...] = ()
    """Patterns of the files' paths, of which one must match (``fnmatch``); empty: all files."""
    graphs: tuple[str, ...] = ()
    """Paths below the source of models whose largest batch the spec leaves out; their content shows whether they have a
    batch dimension."""
    requirements: str = ""
    """Path below the source of the requirements file, whose SHA-256 is answered; empty: the spec names none."""


@dataclass(frozen=True)
class PackagesRequest(Document):
    """Install the Python packages that a requirements file of the source names and this image lacks."""

    key: str
    source: str
    """Digest of the source."""
    path: str
    """Path of the requirements file below the source."""
    sha256: str
    """SHA-256 of the requirements file, as 64 hexadecimal digits."""


@dataclass(frozen=True)
class ModelCode:
    """The model as the user gives it."""

    format: str
    """A key of ``formats.SOURCES``."""
    entrypoint: Entrypoint
    """The file with ``get_model``; for a format that is a file, the model's own file or directory."""
    max_batch_size: int
    """Samples; 0: the model has no batch dimension."""
    ensemble: "EnsembleCode | None" = None
    """The models of an ensemble (format ``ensemble``), whose own entrypoint is empty."""
    declared: Signature | None = None
    """The inputs and outputs that the user's config.pbtxt declares; None: there is none, or it declares none."""


@dataclass(frozen=True)
class Step:
    """A model of an ensemble and how its tensors are connected."""

    model: str
    """Its name in Triton."""
    inputs: Mapping[str, str]
    """Maps the model's inputs to the ensemble's tensors."""
    outputs: Mapping[str, str]
    """Maps the model's outputs that are used to the ensemble's tensors."""
    code: ModelCode


@dataclass(frozen=True)
class EnsembleCode:
    """Models that answer a request together, each as the user gives it."""

    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    steps: tuple[Step, ...]
    """The steps in data-flow order: a step's inputs are the ensemble's or come from earlier steps."""


@dataclass(frozen=True)
class HpsOptions:
    """How Merlin's Hierarchical Parameter Server keeps tables."""

    gpu_cache_percent: int
    """Share of each table's vectors that is kept in GPU memory."""
    keys_per_sample: int
    """Largest number of keys that a sample has in one table."""


@dataclass(frozen=True)
class ReferenceRequest(Document):
    """Run the framework in fp32 over the dataloader, or over generated inputs, and store its inputs and outputs."""

    key: str
    source: str
    """Digest of the source."""
    model: ModelCode
    dataloader: Entrypoint | None
    """None: inputs are generated from what the model's graph declares."""
    max_samples: int
    needs_labels: bool
    """True if an accuracy threshold is set; a dataloader without labels is then an error."""
    batch_sizes: tuple[int, ...] = ()
    """Request sizes to prepare, in samples, for a model without a batch dimension. The reference uses the largest;
    every other size gets one request."""
    weights: str = ""
    """Digest of the weights; empty: the spec has none of its own."""
    packages: str = ""
    """Key of the installed Python packages; empty: the spec names no requirements file."""
    data: str = ""
    """Digest of the published data; empty: there is none, or it is mounted from a claim."""

    @property
    def largest_batch_size(self) -> int:
        """Samples of the largest batch or, without a batch dimension, of the largest request."""
        if self.model.max_batch_size == 0:
            return max(self.batch_sizes, default=1)
        return min(self.model.max_batch_size, self.max_samples)

    @property
    def other_batch_sizes(self) -> tuple[int, ...]:
        """The request sizes except the largest; if that is the only one, half of it: a model serves any size."""
        if self.model.max_batch_size:
            return ()
        largest = self.largest_batch_size
        others = tuple(sorted(set(self.batch_sizes) - {largest}))
        return others or ((largest // 2,) if largest > 1 else ())


@dataclass(frozen=True)
class ModelConfig:
    """What config.pbtxt says beyond the signature."""

    instances: int
    instance_group_kind: str
    """KIND_CPU, KIND_GPU or KIND_AUTO."""
    dynamic_batching: bool
    preferred_batch_sizes: tuple[int, ...]
    max_queue_delay_microseconds: int
    cuda_graphs: bool
    warmup: bool
    parameters: Mapping[str, str]
    max_batch_size: int = 0
    """Largest batch to serve, in samples, if a search chose another than the model's; 0: the model's."""
    overrides: str = ""
    """A piece of config.pbtxt that is put over all of it (``contract.overrides``)."""


@dataclass(frozen=True)
class TensorRtOptions:
    """How TensorRT builds an engine."""

    workspace_bytes: int
    """Most memory that the builder's tactics and the engine's layers may use in addition to the weights."""
    builder_optimization_level: int
    """0 to 5; a higher level finds faster kernels and takes longer. TensorRT's own default is 3."""


@dataclass(frozen=True)
class ConvertRequest(Document):
    """Convert the model for one candidate and publish the revision that serves it."""

    key: str
    """Key of the revision: of the conversion and the server's configuration."""
    conversion_key: str
    """Key of the model file alone; revisions that differ only in configuration share it."""
    source: str
    reference: str
    """Key of the reference, which holds the signature and the example batches."""
    model_name: str
    model: ModelCode
    candidate: str
    format: str
    """A key of ``formats.FORMATS``."""
    precision: str
    """``fp32`` or ``fp16``; inputs and outputs stay as the signature says."""
    accelerator: str
    """``none``, ``cuda``, ``trt`` or ``amp``."""
    onnx_opset: int
    """The operator set; 0: the one that a source of format onnx has."""
    onnx_exporter: str
    """``Dynamo`` or ``TorchScript``; only for torch models."""
    onnx_optimized: bool
    """Whether the graph is simplified before it is served or given to TensorRT."""
    tensorrt: TensorRtOptions
    gpu_product: str
    """spec.gpu.product, for which an engine is built; empty: not set."""
    engine_cache: str
    """Absolute path where the server's ONNX Runtime keeps TensorRT engines; empty unless accelerator is trt."""
    config: ModelConfig
    gpu_count: int = 0
    """spec.gpu.count for a model of format ``hps``; 0: CPU, or another format."""
    hps: HpsOptions | None = None
    """Options of format ``hps``."""
    members: tuple["ConvertRequest", ...] = ()
    """Requests for the models of an ensemble (format ``ensemble``), with the revision's key. Only they say how a file
    is converted; a member's reference is its part of the ensemble's reference (``layout.member_key``)."""
    optimal_batch_size: int = 0
    """Samples in the batch that an engine of format ``trt`` is tuned for; 0: the largest batch."""
    weights: str = ""
    """Digest of the weights; empty: the spec has none of its own."""
    packages: str = ""
    """Key of the installed Python packages; empty: the spec names no requirements file."""
    data: str = ""
    """Digest of the published data; empty: there is none, or it is mounted from a claim."""


@dataclass(frozen=True)
class Tolerance:
    """|a - b| <= absolute + relative * |b| for every element of a floating point output."""

    absolute: float
    relative: float


@dataclass(frozen=True)
class InputShape:
    """perf_analyzer's --shape for an input with dynamic dimensions, without the batch dimension."""

    input: str
    dims: tuple[int, ...]


@dataclass(frozen=True)
class Measurement:
    """How perf_analyzer measures one point."""

    mode: str
    """``CountWindows`` or ``TimeWindows``."""
    request_count: int
    interval_milliseconds: int
    stability_percentage: int


@dataclass(frozen=True)
class Sweep:
    """The points of one scenario: the product of batch sizes and concurrencies."""

    batch_sizes: tuple[int, ...]
    concurrencies: tuple[int, ...]
    shared_memory: bool
    """Whether requests use system shared memory; client and server then share /dev/shm."""
    until_saturated: bool = False
    """Whether the sweep ends before its last concurrency once the throughput no longer rises."""


@dataclass(frozen=True)
class Load:
    """What all points measured against one server have in common."""

    url: str
    """host:port of the protocol's endpoint."""
    protocol: str
    """``grpc`` or ``http``."""
    http_url: str
    """host:port of Triton's HTTP endpoint, for statistics, configuration and metadata."""
    input_shapes: tuple[InputShape, ...]
    measurement: Measurement
    metrics_url: str = ""
    """host:port of Triton's metrics; empty: the default port on the HTTP endpoint's host."""


@dataclass(frozen=True)
class Constraint:
    """Bounds that a measurement must meet; those that are not None apply."""

    metric: str
    minimum: float | None
    maximum: float | None


@dataclass(frozen=True)
class OpenLoop:
    """Points at which requests arrive at a rate, whatever the server has answered, in the online sweep's batch size."""

    rates: tuple[int, ...]
    """Requests per second."""
    distribution: str = "Poisson"
    """Distribution of the times between requests: ``Poisson`` or ``Constant``."""
    confirmed_percent: int = 0
    """Share of the throughput at which the online sweep saturates, for one more point; 0: none."""
    constraints: tuple[Constraint, ...] = ()
    """The constraints within which that throughput is taken; only with ``confirmed_percent``."""


@dataclass(frozen=True)
class ServedModel:
    """A model of an ensemble as a revision serves it."""

    name: str
    format: str
    precision: str


@dataclass(frozen=True)
class ProfileRequest(Document):
    """Compare the served candidate with the reference, then sweep it on its private server."""

    key: str
    revision: str
    reference: str
    model_name: str
    max_batch_size: int
    format: str
    precision: str
    tolerance: Tolerance
    keep_outputs: bool
    """Whether the served outputs are kept, for a metrics Job."""
    load: Load
    offline: Sweep
    online: Sweep
    members: tuple[ServedModel, ...] = ()
    """The models of an ensemble (format ``ensemble``)."""
    content: str = ""
    """``ConvertResult.content`` of the revision; empty: not recorded."""
    open_loop: OpenLoop = OpenLoop(())
    """The request rates to measure after the online sweep."""


@dataclass(frozen=True)
class KeptOutputs:
    """What a profile kept of a candidate's answers."""

    profile: str
    """Key of the profile."""
    format: str
    precision: str


@dataclass(frozen=True)
class MetricsRequest(Document):
    """Compute the user's metrics of the framework's outputs, and of the outputs that profiles kept.

    One Job for all candidates, so that the framework's metrics are computed once. It knows no thresholds: the
    controller judges the values.
    """

    key: str
    source: str
    reference: str
    model_format: str
    """The source's format, which the calculator of the framework's metrics is told."""
    max_batch_size: int
    """Largest batch, in samples; 0: no batch dimension."""
    metrics: Entrypoint
    candidates: tuple[KeptOutputs, ...]
    required: tuple[str, ...] = ()
    """Names of metrics that must not be dropped if the result is too long: those with a threshold."""
    weights: str = ""
    """Digest of the weights; empty: the spec has none of its own."""
    packages: str = ""
    """Key of the installed Python packages; empty: the spec names no requirements file."""
    data: str = ""
    """Digest of the published data; empty: there is none, or it is mounted from a claim."""


@dataclass(frozen=True)
class Objective:
    """A metric to improve, and its weight relative to the other objectives."""

    metric: str
    """A key of ``scoring.METRICS``."""
    weight: int


@dataclass(frozen=True)
class SearchRequest(Document):
    """Measure other configurations of a revision on its private server, until no step helps or the budget is spent.

    One search is a series of Jobs, because a termination message holds few points. Each Job walks the search's path
    from the start and does not measure again what is in the file of points. Part n answers with the points from
    ``n * search.PART_POINTS`` on.
    """

    key: str
    search: str
    """Name of the file of points on the claim: a hash of what changes a point's figures. It excludes the budget and the
    objectives, so another search of the same revision finds what this one measured."""
    part: int
    """Number of the Job: 0, 1, ..."""
    revision: str
    reference: str
    profile: str
    """Key of the revision's profile, whose measurements are known points."""
    model_name: str
    max_batch_size: int
    """Largest batch of the revision's own configuration, in samples; 0: no batch dimension."""
    precision: str
    tolerance: Tolerance
    """A configuration whose outputs differ from the reference by more than this is refused."""
    scenario: str
    """``offline`` or ``online``: the sweep whose measurements are judged."""
    load: Load
    sweep: Sweep
    """The loads with which configurations may be measured."""
    mode: str
    """``Quick`` or ``Exhaustive``."""
    base: Tuning
    """The revision's own configuration."""
    maximum_instances: int
    vary_cuda_graphs: bool
    objectives: tuple[Objective, ...]
    constraints: tuple[Constraint, ...]
    measurements: int
    """Most points and repeats on the path, in all parts together, whichever search measured them; the profile's are
    free."""
    seconds: int
    """Most time that measuring them may take; a point that is being measured is finished."""


@dataclass(frozen=True)
class MeasureRequest(Document):
    """Sweep the target revision's server through its preview Service."""

    key: str
    revision: str
    reference: str
    model_name: str
    max_batch_size: int
    load: Load
    online: Sweep


@dataclass(frozen=True)
class ServerPod:
    """A server's pod, as the operator sees it."""

    name: str
    metrics: str
    """host:port of its metrics; an IPv6 address is in brackets."""


@dataclass(frozen=True)
class SnapshotRequest(Document):
    """Read the counters of the served model from the metrics of servers."""

    key: str
    model_name: str
    active: tuple[ServerPod, ...]
    """Pods of the active revision."""
    previous: tuple[ServerPod, ...] = ()
    """Pods of the revision that was active before, while it is soaked against."""


@dataclass(frozen=True)
class CheckRequest(Document):
    """Check a revision before a server starts on it; not a stage, but it ends a pod as a stage does."""

    stage: str
    """The stage of the Job, or ``serve``; with ``key`` it tells whose answer it is."""
    key: str
    """Key of the Job's result, or of the revision."""
    revision: str
    engine_cache: str = ""
    """Absolute path of the directory that the server writes engines to, to be made; empty: none, or it is made."""
    content: str = ""
    """``ConvertResult.content``; empty: not recorded."""
    seen: str = ""
    """``ProfileResult.seen``; empty: the content is compared."""
    verification: str = "Stat"
    """``Stat``: the content is compared only if the files' attributes differ. ``Content``: it always is."""


@dataclass(frozen=True)
class CleanRequest(Document):
    """Remove from the claim what no record names any longer."""

    key: str
    minimum_age_seconds: int
    """Shortest time since a directory was written or replayed, before it is removed."""
    minimum_temporary_age_seconds: int
    """The same for what a killed Job left; a running Job writes into such a directory too."""
