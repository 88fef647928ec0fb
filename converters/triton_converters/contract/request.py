"""What the controller asks of a Job: one JSON document, the container's only argument after the stage's name.

Shared by the Jobs and the controller; standard library only. ``key`` names the result: it is a hash of everything that
can change it, so a Job that finds a valid result of its key on the claim replays it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from triton_converters.contract.document import Document
from triton_converters.contract.results import Tensor, Tuning


@dataclass(frozen=True)
class Entrypoint:
    """A user's Python file and the arguments of its function or class; or a model's own file, without arguments.

    ``path`` is relative to the source's directory; ``$(DATA)`` in a value was already replaced by DATA_MOUNT.
    """

    path: str
    arguments: Mapping[str, str]


@dataclass(frozen=True)
class SourceRequest(Document):
    """Publish what lies at ``path`` below SOURCE_MOUNT (empty: all of it) as ``sources/<digest>/``."""

    key: str
    uri: str
    path: str
    sha256: str
    """Expected digest, 64 hexadecimal digits, or empty."""


@dataclass(frozen=True)
class ModelCode:
    """The model as the user gives it."""

    format: str
    """A key of ``formats.SOURCES``."""
    entrypoint: Entrypoint
    """Holds ``get_model``; the model's own file or directory where the format is a file."""
    max_batch_size: int
    """Samples; 0: the model has no batch dimension."""
    ensemble: "EnsembleCode | None" = None
    """Of format ``ensemble``, whose entrypoint is empty: the models it is made of."""


@dataclass(frozen=True)
class Step:
    """A model of an ensemble and how its tensors are connected."""

    model: str
    """Triton's name."""
    inputs: Mapping[str, str]
    """The ensemble's tensor by the model's input."""
    outputs: Mapping[str, str]
    """The ensemble's tensor by the model's output, of those that somebody uses."""
    code: ModelCode


@dataclass(frozen=True)
class EnsembleCode:
    """Models that answer a request together, each as the user gives it."""

    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    steps: tuple[Step, ...]
    """In the order of the flow: a step's inputs are the ensemble's or come from earlier steps."""


@dataclass(frozen=True)
class HpsOptions:
    """How Merlin's Hierarchical Parameter Server keeps tables."""

    gpu_cache_percent: int
    """Share of each table's vectors in the GPU's memory."""
    keys_per_sample: int
    """Most keys of a sample in one table."""


@dataclass(frozen=True)
class ReferenceRequest(Document):
    """Run the framework in fp32 over the dataloader and dump what went in and came out."""

    key: str
    source: str
    """Digest of the source."""
    model: ModelCode
    dataloader: Entrypoint
    max_samples: int
    needs_labels: bool
    """True where a threshold is set: a dataloader without labels is then an error."""
    batch_sizes: tuple[int, ...] = ()
    """Of a model without batch dimension: how many samples the dataloader is asked to put into a request. The largest
    is what the reference is made of; of each other one there is one request too."""


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
    """Samples that are served at most, where a search found fewer to be better than the model's; 0: the model's."""


@dataclass(frozen=True)
class TensorRtOptions:
    """How TensorRT builds an engine."""

    workspace_bytes: int
    """Limit of the memory that the builder's tactics, and the engine's layers, may use beside weights."""
    builder_optimization_level: int
    """0 to 5: more finds faster kernels and takes longer; TensorRT's own default is 3."""


@dataclass(frozen=True)
class ConvertRequest(Document):
    """Convert the model for one candidate and publish the revision that serves it."""

    key: str
    """Of the revision: the conversion and the server's configuration."""
    conversion_key: str
    """Of the model file alone; two revisions that differ in configuration share it."""
    source: str
    reference: str
    """Key of the reference: it holds the signature and the example batches."""
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
    """0: of a source of format onnx, its own."""
    onnx_exporter: str
    """``Dynamo`` or ``TorchScript``; of torch's models alone."""
    onnx_optimized: bool
    """Whether the graph is simplified before it is served or given to TensorRT."""
    tensorrt: TensorRtOptions
    gpu_product: str
    """spec.gpu.product: what an engine is built for; empty: not asked for."""
    engine_cache: str
    """Where the server's ONNX Runtime keeps TensorRT's engines, an absolute path; empty unless accelerator is trt."""
    config: ModelConfig
    gpu_count: int = 0
    """spec.gpu.count; 0: CPU."""
    hps: HpsOptions | None = None
    """Of format ``hps``."""
    members: tuple["ConvertRequest", ...] = ()
    """Of format ``ensemble``: one for each of its models, with the revision's own key. What converts a file is said
    there alone; a member's reference is its own part of the ensemble's (``claim.member_key``)."""


@dataclass(frozen=True)
class Tolerance:
    """|a - b| <= absolute + relative * |b| for every element of a floating point output."""

    absolute: float
    relative: float


@dataclass(frozen=True)
class Threshold:
    """A bound on a metric; of the three bounds those that are not None hold."""

    metric: str
    minimum: float | None
    maximum: float | None
    maximum_degradation: float | None
    """Largest |framework's value - served value|."""


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
    """Points of one scenario: the product of batch sizes and concurrencies."""

    batch_sizes: tuple[int, ...]
    concurrencies: tuple[int, ...]
    shared_memory: bool
    """System shared memory: client and server share /dev/shm."""


@dataclass(frozen=True)
class Load:
    """What is common to all points measured against one server."""

    url: str
    """host:port of the protocol's endpoint."""
    protocol: str
    """``grpc`` or ``http``."""
    http_url: str
    """host:port of Triton's HTTP endpoint: statistics, configuration, metadata."""
    input_shapes: tuple[InputShape, ...]
    measurement: Measurement
    metrics_url: str = ""
    """host:port of Triton's metrics; empty: its default port on the HTTP endpoint's host."""


@dataclass(frozen=True)
class ServedModel:
    """A model of an ensemble as a revision serves it."""

    name: str
    format: str
    precision: str


@dataclass(frozen=True)
class ProfileRequest(Document):
    """Hold the served candidate against the reference, compute metrics, then sweep it on its private server."""

    key: str
    revision: str
    reference: str
    source: str
    model_name: str
    max_batch_size: int
    format: str
    precision: str
    tolerance: Tolerance
    metrics: Entrypoint | None
    thresholds: tuple[Threshold, ...]
    load: Load
    offline: Sweep
    online: Sweep
    members: tuple[ServedModel, ...] = ()
    """Of format ``ensemble``: its models."""


@dataclass(frozen=True)
class Objective:
    """What is better, and how much it counts beside the others."""

    metric: str
    """A key of ``scoring.METRICS``."""
    weight: int


@dataclass(frozen=True)
class Constraint:
    """What a row must keep; of the two bounds those that are not None hold."""

    metric: str
    minimum: float | None
    maximum: float | None


@dataclass(frozen=True)
class SearchRequest(Document):
    """Measure other configurations of a revision on its private server, until no step helps or the budget is spent.

    One search is a row of Jobs, since a termination message holds few points. Each walks the search's path from its
    start; what lies in the file of points is not measured again. Part n answers with the points from
    ``n * search.PART_POINTS`` on.
    """

    key: str
    search: str
    """Names the file of points on the claim; a hash of what changes a point's figures, so neither of the budget nor of
    what is wanted: another search of the same revision finds what this one measured."""
    part: int
    """0, 1, ...: which of the Jobs."""
    revision: str
    reference: str
    profile: str
    """Key of the revision's profile: its rows are points that are known."""
    model_name: str
    max_batch_size: int
    """Samples, of the revision's own configuration; 0: no batch dimension."""
    precision: str
    tolerance: Tolerance
    """A configuration that answers otherwise than the reference is refused."""
    scenario: str
    """``offline`` or ``online``: the sweep whose rows are judged."""
    load: Load
    sweep: Sweep
    """The loads every configuration may be measured with."""
    mode: str
    """``Quick`` or ``Exhaustive``."""
    base: Tuning
    """The revision's own configuration."""
    maximum_instances: int
    vary_cuda_graphs: bool
    objectives: tuple[Objective, ...]
    constraints: tuple[Constraint, ...]
    measurements: int
    """Most points and repeats on the path, of all parts together, whoever measured them; the profile's are free."""
    seconds: int
    """Most time that measuring them took; a point that runs is finished."""


@dataclass(frozen=True)
class MeasureRequest(Document):
    """Sweep a server that is about to serve, through its preview Service."""

    key: str
    revision: str
    reference: str
    model_name: str
    max_batch_size: int
    load: Load
    online: Sweep


@dataclass(frozen=True)
class CleanRequest(Document):
    """Remove from the claim what no record names any more."""

    key: str
    minimum_age_seconds: int
    """Of a directory since it was written or replayed from."""
    minimum_temporary_age_seconds: int
    """Of what a killed Job left; a Job that runs writes into such a directory too."""
