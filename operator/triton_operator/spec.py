"""The spec of a TritonDeployment: parsed here, and the source of the CRD's schema.

Every field's docstring becomes `kubectl explain`. Defaults live here alone: none is written into the object, so a
GitOps tool sees no drift. Strings, lists and maps are bounded: an unbounded one exceeds the API server's cost budget
for CEL. Numbers are integers with the unit in the name, or decimal strings: the API conventions allow no floats.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from pydantic.alias_generators import to_camel


def rules(*pairs: tuple[str, str]) -> dict[str, Any]:
    """CEL rules for a schema: pairs of expression and message."""
    return {"x-kubernetes-validations": [{"rule": rule, "message": message} for rule, message in pairs]}


class ApiType(BaseModel):
    """Base of every type of the API: camelCase on the wire, immutable, described by its docstrings."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, frozen=True, use_attribute_docstrings=True, extra="ignore"
    )


_SEGMENT = r"[A-Za-z0-9_][A-Za-z0-9_.-]*"
DnsLabel = Annotated[str, StringConstraints(max_length=63, pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")]
DnsName = Annotated[str, StringConstraints(max_length=253, pattern=r"^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$")]
CandidateName = Annotated[str, StringConstraints(max_length=30, pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")]
ModelName = Annotated[str, StringConstraints(max_length=63, pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$")]
TensorName = Annotated[str, StringConstraints(max_length=128, pattern=r"^[A-Za-z_][A-Za-z0-9_.:/-]*$")]
PythonFile = Annotated[str, StringConstraints(max_length=255, pattern=rf"^({_SEGMENT}/)*{_SEGMENT}\.py$")]
SourceUri = Annotated[
    str,
    StringConstraints(
        max_length=1024,
        pattern=rf"^(pvc://[a-z0-9][-.a-z0-9]*(/{_SEGMENT})*/?|configmap://[a-z0-9][-.a-z0-9]*)$",
    ),
]
DataUri = Annotated[str, StringConstraints(max_length=1024, pattern=rf"^pvc://[a-z0-9][-.a-z0-9]*(/{_SEGMENT})*/?$")]
Decimal = Annotated[str, StringConstraints(max_length=24, pattern=r"^-?[0-9]+(\.[0-9]+)?([eE]-?[0-9]{1,2})?$")]
Quantity = Annotated[str, StringConstraints(max_length=24, pattern=r"^[0-9]+(\.[0-9]+)?(m|k|M|G|T|P|Ki|Mi|Gi|Ti|Pi)?$")]
Image = Annotated[str, StringConstraints(max_length=512, pattern=r"^([a-zA-Z0-9][a-zA-Z0-9._:/@-]*)?$")]
Revision = Annotated[str, StringConstraints(max_length=128, pattern=r"^([A-Za-z0-9][A-Za-z0-9._+-]*)?$")]
Argument = Annotated[str, StringConstraints(max_length=1024)]
Arguments = Annotated[
    dict[str, Argument],
    Field(
        max_length=64,
        json_schema_extra=rules(
            ("self.all(k, k.matches('^[A-Za-z_][A-Za-z0-9_-]{0,62}$'))", "argument names are Python identifiers")
        ),
    ),
]
Labels = Annotated[dict[str, Annotated[str, StringConstraints(max_length=1024)]], Field(max_length=64)]
BatchSize = Annotated[int, Field(ge=1, le=65536)]
DimSize = Annotated[int, Field(ge=1, le=2147483647)]


class Source(ApiType):
    """Where the model's code and checkpoint lie."""

    uri: SourceUri
    """`pvc://CLAIM/PATH` or `configmap://NAME`, in the object's own namespace."""
    revision: Revision = ""
    """Opaque: change it to have the URI read again."""
    sha256: Annotated[str, StringConstraints(max_length=64, pattern=r"^([0-9a-f]{64})?$")] = ""
    """Expected SHA-256: of the file, or of the sorted `sha256sum` lines of a directory's files (docs/source.md)."""


class Data(ApiType):
    """What the dataloader reads: mounted read-only at /data, never copied, never digested."""

    uri: DataUri
    """`pvc://CLAIM/PATH`."""
    revision: Revision = ""
    """Opaque: change it when the data changes, and the reference is computed anew."""


class UserEntrypoint(ApiType):
    """A Python file of the source and the arguments of its function or class."""

    entrypoint: PythonFile
    """Path below the source."""
    arguments: Arguments = Field(default_factory=dict)
    """By name; `$(DATA)` is replaced by the path of spec.data. Strings become the annotated or argparse type."""


class DynamicBatching(ApiType):
    """Triton's dynamic batcher."""

    preferred_batch_sizes: Annotated[list[BatchSize], Field(max_length=16)] = Field(default_factory=list)
    """Batch sizes the batcher tries to form. Default: the maximum batch size, where a delay is set."""
    max_queue_delay_microseconds: Annotated[int, Field(ge=0, le=60_000_000)] = 0
    """How long a request may wait for a preferred size. Default 0: send what is there."""


class ModelConfiguration(ApiType):
    """What config.pbtxt says beyond the signature."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            (
                "!has(self.dynamicBatching) || !has(self.maxBatchSize) || self.maxBatchSize > 0",
                "dynamicBatching needs maxBatchSize of at least 1",
            ),
            (
                "!has(self.dynamicBatching) || !has(self.dynamicBatching.preferredBatchSizes)"
                " || self.dynamicBatching.preferredBatchSizes.all(b,"
                " b <= (has(self.maxBatchSize) ? self.maxBatchSize : 1))",
                "dynamicBatching.preferredBatchSizes are at most maxBatchSize",
            ),
        )
    )
    max_batch_size: Annotated[int, Field(ge=0, le=65536)] = 1
    """Samples; 0: the model has no batch dimension. Default 1."""
    instances: Annotated[int, Field(ge=1, le=64)] = 1
    """Model instances on each GPU (or on the CPU). Default 1."""
    dynamic_batching: DynamicBatching | None = None
    """Absent: requests run as they come."""
    cuda_graphs: bool = False
    """Capture CUDA graphs; only where the server has a GPU. Default false."""
    warmup: bool = True
    """Run a real sample at every load, before the model is ready. Default true: no slow first request."""
    parameters: Annotated[dict[str, Argument], Field(max_length=32)] = Field(default_factory=dict)
    """Passed to the backend as they are."""


class Candidate(ApiType):
    """One way to serve the model: a format in a precision with an accelerator."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            (
                "!has(self.accelerator) || self.accelerator != 'trt' || self.format == 'onnx'",
                "accelerator trt goes with format onnx",
            )
        )
    )
    name: CandidateName
    """Unique among the candidates."""
    format: Literal["ts-trace", "ts-script", "onnx"]
    """What the model is converted to."""
    precision: Literal["fp32", "fp16"]
    """Of the weights and the computation; inputs and outputs stay fp32."""
    accelerator: Literal["none", "cuda", "trt"] = "none"
    """`trt`: ONNX Runtime's TensorRT execution provider; `cuda`: its CUDA provider. Default none."""


class OnnxOptions(ApiType):
    """How torch.onnx exports."""

    opset: Annotated[int, Field(ge=11, le=23)] = 17
    """Operator set. Default 17: known to every onnxruntime since 1.12 and to TensorRT since 8.6."""
    exporter: Literal["Dynamo", "TorchScript"] = "TorchScript"
    """`Dynamo`: torch.export; `TorchScript`: tracing. Chosen explicitly because torch's own default changed in 2.9."""


class Model(ApiType):
    """The model as it comes, its served configuration and what to try."""

    name: ModelName
    """Triton's model name."""
    format: Literal["pyt"]
    """`pyt`: a Python file whose get_model returns a torch.nn.Module."""
    entrypoint: PythonFile
    """File with `get_model(**arguments) -> (model, {"inputs": [names], "outputs": [names]})`."""
    arguments: Arguments = Field(default_factory=dict)
    """Of get_model."""
    io_precision: Literal["fp32"] = "fp32"
    """Of the served inputs and outputs: every candidate has one signature, casts are inside the graph."""
    config: ModelConfiguration = Field(default_factory=ModelConfiguration)
    """The served configuration."""
    candidates: Annotated[
        list[Candidate],
        Field(
            min_length=1,
            max_length=16,
            json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
        ),
    ]
    """What to convert, verify and measure; at least one."""
    onnx: OnnxOptions = Field(default_factory=OnnxOptions)
    """For candidates of format onnx."""


class Gpu(ApiType):
    """The GPU that conversion, profiling and serving share."""

    product: Annotated[
        str, StringConstraints(max_length=63, pattern=r"^([A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?)?$")
    ] = ""
    """Value of the node label nvidia.com/gpu.product. Default: any."""
    resource_name: Annotated[str, StringConstraints(max_length=128, pattern=r"^[a-z0-9.-]+/[a-zA-Z0-9._-]+$")] = (
        "nvidia.com/gpu"
    )
    """Extended resource to ask for."""
    count: Annotated[int, Field(ge=0, le=1024)] = 1
    """GPUs of a pod; 0: CPU. Default 1."""


class Toleration(ApiType):
    """A Kubernetes toleration."""

    key: Annotated[str, StringConstraints(max_length=317)] = ""
    """Taint key."""
    operator: Literal["Exists", "Equal"] = "Equal"
    """How key and value are compared."""
    value: Annotated[str, StringConstraints(max_length=63)] = ""
    """Taint value."""
    effect: Literal["", "NoSchedule", "PreferNoSchedule", "NoExecute"] = ""
    """Taint effect; empty: all."""
    toleration_seconds: Annotated[int, Field(ge=0)] | None = None
    """Only with NoExecute."""


class Resources(ApiType):
    """A container's requests and limits."""

    requests: Annotated[dict[str, Quantity], Field(max_length=16)] = Field(default_factory=dict)
    """By resource name."""
    limits: Annotated[dict[str, Quantity], Field(max_length=16)] = Field(default_factory=dict)
    """By resource name."""


class LocalReference(ApiType):
    """A name in the object's own namespace."""

    name: DnsName
    """Of the object referred to."""


class Pod(ApiType):
    """What may be set on a pod made for this object. No volumes and no security context: those are the operator's."""

    image: Image = ""
    """Default: the operator's settings."""
    resources: Resources = Field(default_factory=Resources)
    """Of the main container, in addition to the GPU limit."""
    node_selector: Labels = Field(default_factory=dict)
    """Node labels the pod needs."""
    tolerations: Annotated[list[Toleration], Field(max_length=16)] = Field(default_factory=list)
    """Taints the pod bears."""
    affinity: Annotated[
        dict[str, Any] | None, Field(json_schema_extra={"x-kubernetes-preserve-unknown-fields": True})
    ] = None
    """As in a pod's spec."""
    priority_class_name: Annotated[str, StringConstraints(max_length=253)] = ""
    """PriorityClass of the pod."""
    runtime_class_name: Annotated[str, StringConstraints(max_length=253)] = ""
    """RuntimeClass of the pod."""
    image_pull_secrets: Annotated[list[LocalReference], Field(max_length=8)] = Field(default_factory=list)
    """Secrets of type kubernetes.io/dockerconfigjson."""
    labels: Labels = Field(default_factory=dict)
    """Added to the pod's own."""
    annotations: Labels = Field(default_factory=dict)
    """Added to the pod's own."""


class PrecisionTolerance(ApiType):
    """How far served outputs may be from the framework's: |a - b| <= absolute + relative * |b|."""

    precision: Literal["fp32", "fp16"]
    """Of the candidates it holds for."""
    absolute: Decimal
    """Decimal, in the output's unit."""
    relative: Decimal
    """Decimal, a fraction."""


class Conversion(ApiType):
    """How conversion Jobs run."""

    parallelism: Annotated[int, Field(ge=1, le=16)] = 2
    """Conversion Jobs at a time. Default 2."""
    active_deadline_seconds: Annotated[int, Field(ge=10, le=86400)] = 3600
    """Of each source, reference and conversion Job. Default 3600."""
    tolerances: Annotated[
        list[PrecisionTolerance],
        Field(
            max_length=2,
            json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["precision"]},
        ),
    ] = Field(default_factory=list)
    """By precision. Default: fp32 1e-4 and 1e-4, fp16 1e-2 and 1e-2."""
    pod: Pod = Field(default_factory=Pod)
    """Of source, reference, conversion and profile Jobs' own container. An image of yours needs Python 3.11 or later,
    torch and the packages your code imports; the converters are copied into it."""


class MetricThreshold(ApiType):
    """A bound on a metric that the metrics entrypoint computes."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            (
                "has(self.minimum) || has(self.maximum) || has(self.maximumDegradation)",
                "a threshold needs minimum, maximum or maximumDegradation",
            )
        )
    )
    metric: Annotated[str, StringConstraints(min_length=1, max_length=63)]
    """Its name, as calc returns it."""
    minimum: Decimal | None = None
    """The served value is at least this."""
    maximum: Decimal | None = None
    """The served value is at most this."""
    maximum_degradation: Decimal | None = None
    """The served value differs from the framework's own by at most this."""


class AccuracyGate(ApiType):
    """What the served model must be worth."""

    max_samples: Annotated[int, Field(ge=1, le=1_000_000)] = 256
    """Samples of the dataloader that are used. Default 256."""
    thresholds: Annotated[
        list[MetricThreshold],
        Field(
            max_length=16, json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["metric"]}
        ),
    ] = Field(default_factory=list)
    """All must hold. Default: none; Verified then says NumericalOnly."""


class ConcurrencyRange(ApiType):
    """perf_analyzer's --concurrency-range: start, start + step, ... up to end."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            ("self.end >= self.start", "end is at least start"),
            ("(self.end - self.start) / (has(self.step) ? self.step : 1) < 16", "at most 16 concurrencies"),
        )
    )
    start: Annotated[int, Field(ge=1, le=4096)]
    """First concurrency."""
    end: Annotated[int, Field(ge=1, le=4096)]
    """Last concurrency."""
    step: Annotated[int, Field(ge=1, le=4096)] = 1
    """Default 1."""


class OfflineSweep(ApiType):
    """Static batches, one request in flight."""

    batch_sizes: Annotated[list[BatchSize], Field(min_length=1, max_length=8)]
    """At most model's maxBatchSize each."""


class OnlineSweep(ApiType):
    """Concurrent requests for the dynamic batcher."""

    batch_size: BatchSize = 1
    """Samples of a request. Default 1."""
    concurrency: ConcurrencyRange
    """Requests in flight."""


class InputDims(ApiType):
    """The shape to measure an input of varying dimensions with."""

    input: TensorName
    """Input's name."""
    dims: Annotated[list[DimSize], Field(min_length=1, max_length=8)]
    """Without the batch dimension."""


class MeasurementOptions(ApiType):
    """How perf_analyzer measures one point."""

    mode: Literal["CountWindows", "TimeWindows"] = "CountWindows"
    """Default CountWindows."""
    request_count: Annotated[int, Field(ge=1, le=1_000_000)] = 50
    """Requests of a window, with CountWindows. Default 50, perf_analyzer's own."""
    interval_milliseconds: Annotated[int, Field(ge=100, le=600_000)] = 5000
    """Length of a window, with TimeWindows. Default 5000, perf_analyzer's own."""
    stability_percentage: Annotated[int, Field(ge=1, le=999)] = 10
    """How far three windows may differ. Default 10, perf_analyzer's own."""


class Performance(ApiType):
    """What is measured."""

    protocol: Literal["grpc", "http"] = "grpc"
    """Default grpc."""
    offline: OfflineSweep | None = None
    """Default: batch size 1 and the model's maximum."""
    online: OnlineSweep | None = None
    """Default: concurrency 1 to 4 with batch size 1."""
    input_shapes: Annotated[list[InputDims], Field(max_length=16)] = Field(default_factory=list)
    """For inputs with varying dimensions. Default: the reference's first sample."""
    measurement: MeasurementOptions = Field(default_factory=MeasurementOptions)
    """How one point is measured."""
    shared_memory: Literal["System", "None"] = "System"
    """Of the offline sweep. Default System."""
    active_deadline_seconds: Annotated[int, Field(ge=10, le=86400)] = 3600
    """Of each profile and measure Job. Default 3600."""


ObjectiveMetric = Literal[
    "Throughput",
    "P50LatencyMicroseconds",
    "P90LatencyMicroseconds",
    "P95LatencyMicroseconds",
    "P99LatencyMicroseconds",
    "AverageLatencyMicroseconds",
]


class Objective(ApiType):
    """What is better: more throughput, less latency."""

    metric: ObjectiveMetric
    """A column of the measured rows."""
    weight: Annotated[int, Field(ge=1, le=100)] = 1
    """Relative to the other objectives. Default 1."""


class Constraint(ApiType):
    """What a row must keep to be taken."""

    model_config = ConfigDict(
        json_schema_extra=rules(("has(self.minimum) || has(self.maximum)", "a constraint needs minimum or maximum"))
    )
    metric: ObjectiveMetric
    """A column of the measured rows."""
    minimum: Decimal | None = None
    """At least this."""
    maximum: Decimal | None = None
    """At most this."""


class Selection(ApiType):
    """How the candidate is chosen."""

    scenario: Literal["Online", "Offline"] = "Online"
    """The sweep whose rows are judged. Default Online."""
    objectives: Annotated[
        list[Objective],
        Field(
            max_length=6, json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["metric"]}
        ),
    ] = Field(default_factory=list)
    """Default: Throughput."""
    constraints: Annotated[
        list[Constraint],
        Field(
            max_length=6, json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["metric"]}
        ),
    ] = Field(default_factory=list)
    """All must hold for a row. Default: none."""


class ClaimTemplate(ApiType):
    """The PersistentVolumeClaim the operator makes."""

    size: Quantity = "20Gi"
    """Default 20Gi."""
    storage_class_name: Annotated[str, StringConstraints(max_length=253)] = ""
    """Default: the cluster's default StorageClass."""
    access_modes: tuple[Literal["ReadWriteOnce", "ReadWriteMany"], ...] = Field(
        default=("ReadWriteOnce",), min_length=1, max_length=1
    )
    """ReadWriteOnce: the object's pods are kept on one node. Default ReadWriteOnce."""


class RetentionPolicy(ApiType):
    """What becomes of the claim the operator made."""

    when_deleted: Literal["Delete", "Retain"] = "Delete"
    """When the object is deleted. Default Delete."""


class Repository(ApiType):
    """The claim that holds sources, references, candidates, revisions and measurements."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            ("!(has(self.claimName) && has(self.claimTemplate))", "claimName or claimTemplate, not both"),
        )
    )
    claim_name: DnsName | None = None
    """An existing claim; it is not deleted with the object."""
    claim_template: ClaimTemplate | None = None
    """Default: a claim of 20Gi."""
    retention_policy: RetentionPolicy = Field(default_factory=RetentionPolicy)
    """Only for the claim the operator made."""


class BackendConfig(ApiType):
    """tritonserver's --backend-config=BACKEND,NAME=VALUE."""

    backend: Annotated[str, StringConstraints(max_length=63, pattern=r"^[a-z0-9_]*$")] = ""
    """Empty: for all backends."""
    name: Annotated[str, StringConstraints(max_length=63, pattern=r"^[a-zA-Z0-9_-]+$")]
    """Setting's name."""
    value: Annotated[str, StringConstraints(max_length=512, pattern=r"^[A-Za-z0-9_.:,=/-]*$")]
    """Setting's value."""


class CudaMemoryPool(ApiType):
    """tritonserver's --cuda-memory-pool-byte-size=DEVICE:BYTES."""

    device: Annotated[int, Field(ge=0, le=63)]
    """GPU number inside the pod."""
    bytes: Annotated[int, Field(ge=0, le=2**40)]
    """Pool size."""


class Serving(ApiType):
    """How the chosen revision serves."""

    replicas: Annotated[int, Field(ge=0, le=100)] = 1
    """Server pods. Default 1."""
    image: Image = ""
    """tritonserver's image. Default: the operator's settings, pinned in status."""
    backend_config: Annotated[list[BackendConfig], Field(max_length=16)] = Field(default_factory=list)
    """Backend settings."""
    pinned_memory_pool_bytes: Annotated[int, Field(ge=0, le=2**40)] = 268435456
    """Default 256 MiB, tritonserver's own."""
    cuda_memory_pool_bytes: Annotated[list[CudaMemoryPool], Field(max_length=64)] = Field(default_factory=list)
    """Default: tritonserver's own, 64 MiB a GPU."""
    shared_memory_size: Quantity = "1Gi"
    """Of /dev/shm. Default 1Gi: the container runtime's 64 MiB is too small for Python backends and shared memory."""
    progress_deadline_seconds: Annotated[int, Field(ge=10, le=86400)] = 600
    """How long a server may take to load its model. Default 600."""
    pod: Pod = Field(default_factory=Pod)
    """Of server pods, and of the server that a profile Job holds; that Job's pod runs where server pods do."""


class TritonDeploymentSpec(ApiType):
    """What to serve and how well."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            (
                "!has(self.accuracy) || !has(self.accuracy.thresholds) || self.accuracy.thresholds.size() == 0"
                " || has(self.metrics)",
                "accuracy.thresholds need metrics.entrypoint",
            ),
            (
                "!self.models.exists(m, m.candidates.exists(c, has(c.accelerator) && c.accelerator != 'none'))"
                " || (has(self.gpu) && (!has(self.gpu.count) || self.gpu.count > 0))",
                "accelerators cuda and trt need a GPU: set spec.gpu",
            ),
            (
                "!has(self.performance) || !has(self.performance.offline) || self.models.all(m,"
                " self.performance.offline.batchSizes.all(b, b == 1"
                " || (has(m.config) && has(m.config.maxBatchSize) && b <= m.config.maxBatchSize)))",
                "performance.offline.batchSizes are at most config.maxBatchSize",
            ),
            (
                "!has(self.performance) || !has(self.performance.online) || !has(self.performance.online.batchSize)"
                " || self.performance.online.batchSize == 1 || self.models.all(m, has(m.config)"
                " && has(m.config.maxBatchSize) && self.performance.online.batchSize <= m.config.maxBatchSize)",
                "performance.online.batchSize is at most config.maxBatchSize",
            ),
        )
    )
    suspend: bool = False
    """True: start no new Job; what serves stays up. Default false."""
    source: Source
    """Code and checkpoint."""
    data: Data | None = None
    """What the dataloader reads."""
    dataloader: UserEntrypoint
    """File with `get_dataloader_fn(**arguments)` -> a function that yields (ids, {input: array}, {output: array})."""
    metrics: UserEntrypoint | None = None
    """File with `class MetricsCalculator`. Default: outputs are compared numerically only."""
    models: Annotated[
        list[Model],
        Field(
            min_length=1,
            max_length=1,
            json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
        ),
    ]
    """The model; one."""
    gpu: Gpu | None = None
    """Default: none, everything runs on CPU."""
    conversion: Conversion = Field(default_factory=Conversion)
    """Conversion Jobs."""
    accuracy: AccuracyGate = Field(default_factory=AccuracyGate)
    """Gates."""
    performance: Performance = Field(default_factory=Performance)
    """Sweeps."""
    selection: Selection = Field(default_factory=Selection)
    """Choice."""
    repository: Repository = Field(default_factory=Repository)
    """The claim."""
    serving: Serving = Field(default_factory=Serving)
    """The server."""

    @property
    def model(self) -> Model:
        """The one model."""
        return self.models[0]

    @property
    def gpu_count(self) -> int:
        """GPUs of a pod; 0: CPU."""
        return self.gpu.count if self.gpu else 0
