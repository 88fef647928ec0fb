"""The status of a TritonDeployment, written whole by one apply at the end of a pass."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from triton_converters.contract.accuracy import Accuracy
from triton_converters.contract.reasons import Reason
from triton_converters.contract.request import Constraint
from triton_converters.contract.results import Row
from triton_converters.contract.saturation import saturation, sustained
from triton_converters.contract.text import shortened
from triton_operator.api.fitting import StatusType
from triton_operator.api.resolved import Resolved
from triton_operator.api.schema import ApiType, Text, list_map
from triton_operator.api.search_status import ConfigurationStatus, SearchStatus
from triton_operator.settings import MOST_SERVER_ARGUMENTS

CONDITION_MESSAGE_BYTES = 600
"""The longest message of a condition; the Job's log has the rest."""
ConditionType = Literal[
    "Ready",
    "Reconciling",
    "Stalled",
    "SourceResolved",
    "Converted",
    "Verified",
    "Selected",
    "Available",
    "PerformanceMeasured",
    "ServerVulnerable",
    "ClaimShared",
    "Rehearsed",
    "NewCandidatesAvailable",
    "Autoscaling",
    "Soaked",
]
RISKS: tuple[ConditionType, ...] = ("ServerVulnerable", "ClaimShared")
"""Conditions that are there only while they are True: they warn, and Ready does not depend on them."""
NOTICES: tuple[ConditionType, ...] = (*RISKS, "Rehearsed", "NewCandidatesAvailable")
"""All conditions that are there only while they are True. Those that are no risks only inform."""
ASKED_FOR: tuple[ConditionType, ...] = ("Autoscaling", "Soaked")
"""Conditions that are there only while the spec asks for what they tell of. Ready does not depend on them."""
CandidateState = Literal[
    "Pending", "Converting", "Converted", "Profiling", "Profiled", "Passed", "Failed", "Skipped", "Selected"
]


class Condition(StatusType):
    """A Kubernetes condition (metav1.Condition)."""

    type: ConditionType
    """What the condition is about."""
    status: Literal["True", "False", "Unknown"]
    """Whether the condition holds."""
    reason: Annotated[str, StringConstraints(max_length=63)]
    """Why the condition has this status; docs/reasons.md explains each reason."""
    message: Text
    """What happened, to which object, and what to do next."""
    observed_generation: int
    """Generation of the spec that the condition was observed for."""
    last_transition_time: str
    """When `status` last changed, as an RFC 3339 time in UTC."""


class SourceStatus(StatusType):
    """The source that the operator last read and copied to the repository claim."""

    digest: str
    """Digest of the source, as sha256:HEX."""
    revision: str = ""
    """The `revision` in `spec.source` when the operator read the source."""
    resolved: str = ""
    """What the server called the version that was downloaded: the entity tag. Empty if it named none, or if the source
    is not downloaded."""


class TensorStatus(StatusType):
    """An input or output of the served model."""

    name: str
    """Name of the tensor."""
    data_type: str
    """Data type of the tensor, by Triton's name."""
    dims: Annotated[list[int], Field(max_length=16)]
    """Dimensions without the batch dimension. -1 means any size."""


class SignatureStatus(StatusType):
    """The inputs and outputs that every candidate serves."""

    inputs: Annotated[list[TensorStatus], Field(max_length=64)]
    """Inputs in the framework's order."""
    outputs: Annotated[list[TensorStatus], Field(max_length=64)]
    """Outputs in the framework's order."""
    omitted: int | None = None
    """Number of inputs and outputs that are left out here to keep the status small; the server's metadata has them
    all."""
    max_batch_size: int
    """Maximum number of samples in a batch; 0 means no batch dimension."""


class MetricValue(StatusType):
    """One metric of one candidate."""

    metric: str
    """Name of the metric."""
    value: str
    """Value for the served outputs, as a decimal string."""


class CandidateStatus(StatusType):
    """The state of a candidate, and its best measurement."""

    name: str
    """Name of the candidate, as in the spec. In an ensemble it is the names of its models' candidates, joined by dots.
    The name of a candidate that a search found ends in `.tuned`."""
    members: Annotated[list[str], Field(max_length=8)] = Field(default_factory=list)
    """Format, precision and accelerator of each model, such as onnx-fp16-cuda."""
    state: CandidateState
    """State of the candidate: Pending, Converting, Converted (waits to be profiled), Profiling, Profiled (waits for its
    metrics), Passed (all gates), Selected (passed and chosen), Failed, or Skipped (never tried)."""
    reason: str = ""
    """Why the candidate is in this state; docs/reasons.md explains each reason."""
    message: Text = ""
    """What happened, and what to do next."""
    key: str = ""
    """Key of the candidate's revision on the repository claim. Copy it to `selection.approvedRevision` to approve the
    revision."""
    profile: str = ""
    """Key of the candidate's profile. The ConfigMap `<name of the object>-results` has an entry `profile.<key>` with
    all of its measurements."""
    metrics_key: str = ""
    """Key of the Job that computed the candidate's metrics. The ConfigMap `<name of the object>-results` has an entry
    `metrics.<key>` with the metrics of all candidates. Absent without `spec.metrics`."""
    max_absolute_error: str = ""
    """Largest absolute difference between a served output and the reference, as a decimal string."""
    metrics: Annotated[list[MetricValue], Field(max_length=16)] = Field(default_factory=list)
    """Metrics of the served outputs: first those that miss their threshold, then those that meet it, then those without
    a threshold."""
    omitted_metrics: int | None = None
    """Number of metrics that are left out here to keep the status small; the entry that `metricsKey` names has them."""
    throughput: str = ""
    """Throughput of the candidate's best measurement, in inferences (samples) per second, as a decimal string."""
    p99_latency_microseconds: int | None = None
    """P99 latency of the candidate's best measurement, in microseconds."""
    load: str = ""
    """Load of the candidate's best measurement, such as "batch 1, concurrency 16"."""
    satisfies_constraints: bool | None = None
    """Whether a measurement of the ranked sweep meets every constraint."""
    binding_constraint: str = ""
    """The constraint that the best measurement is closest to breaking or, if it breaks any, breaks by the largest
    margin, such as "P99LatencyMicroseconds maximum 10000"."""
    margin_percent: str = ""
    """Distance between the best measurement and the bound of `bindingConstraint`, in percent of the bound, as a decimal
    string. It is negative if the measurement breaks the constraint, and absent if the metric was not measured."""
    rank: int | None = None
    """Rank of the candidate; 1 is the best. Absent if it is not ranked."""
    pareto: bool | None = None
    """Whether the candidate is Pareto-optimal: it has a measurement that no other candidate beats in both throughput
    and P99 latency. If there are several objectives, their metrics are compared instead."""
    stable: bool | None = None
    """Whether the best measurement is stable: three consecutive windows differed by at most `stabilityPercentage`."""
    spread_percent: str = ""
    """Difference between the highest and the lowest throughput of the best measurement's windows, in percent of their
    mean, as a decimal string."""
    client_bound: bool | None = None
    """Whether the client, not the server, was the bottleneck of the best measurement. The server may then be faster
    than measured."""
    configuration: ConfigurationStatus | None = None
    """The configuration that a search found. It is absent if the candidate has the spec's configuration."""


class ServingStatus(StatusType):
    """The active revision, which the Service points to. Without one there are only `replicas` and `selector`."""

    replicas: int = 0
    """Number of pods of the active revision, ready or not."""
    selector: str = ""
    """Label selector of the active revision's pods, for autoscalers. Without an active revision it selects no pod."""
    revision: str = ""
    """Key of the revision on the repository claim."""
    candidate: str = ""
    """Name of the candidate."""
    format: str = ""
    """Format of the candidate. For an ensemble, the formats of its models, joined by "+"."""
    precision: str = ""
    """Precision of the candidate. For an ensemble, the lowest precision of its models."""
    throughput: str = ""
    """Throughput of the best measurement through the preview Service, in inferences (samples) per second, as a decimal
    string. The preview Service points to a revision before the main Service does."""
    p99_latency_microseconds: int | None = None
    """P99 latency of the best measurement through the preview Service, in microseconds."""
    accuracy: str = ""
    """Value of the main metric for the served outputs, as a decimal string. The main metric is that of the first
    threshold or, without thresholds, the first one."""


class TargetStatus(StatusType):
    """The target revision, which is being rolled out or measured."""

    revision: str
    """Key of the revision on the repository claim."""
    candidate: str
    """Name of the candidate."""


class Endpoint(StatusType):
    """Where clients connect."""

    http: str
    """URL of Triton's HTTP endpoint."""
    grpc: str
    """Triton's gRPC endpoint, as host:port."""
    metrics: str
    """URL of Triton's Prometheus metrics."""


class AccuracyStatus(StatusType):
    """A metric of the active revision."""

    metric: str
    """Name of the metric."""
    framework: str
    """Value for the framework's outputs (the reference), as a decimal string."""
    served: str
    """Value for the served outputs, as a decimal string."""
    samples: int
    """Number of samples that the metric was computed from."""
    threshold: str = ""
    """The threshold in words; empty if there is none."""
    passed: bool
    """Whether the metric meets its threshold; true if there is none."""


class RowStatus(StatusType):
    """One measurement.

    Latencies are in microseconds. `clientSend`, `network`, `queue`, `computeInput`, `computeInfer`, `computeOutput` and
    `clientReceive` are means that add up to `average`.
    """

    precision: str
    """Precision of the candidate. For an ensemble, the lowest precision of its models."""
    accelerator: str
    """Accelerator of the candidate. For an ensemble, the accelerators of its models, joined by "+"; none if no model
    has one."""
    input_shape: str = ""
    """Shapes from `performance.inputShapes`, such as "INPUT__0:3x224x224", separated by blanks; empty if none are
    set."""
    batch_size: int
    """Samples in a request."""
    concurrency: int | None = None
    """Requests in flight. Absent if `requestRate` is set."""
    request_rate: int | None = None
    """Requests per second that were sent, however fast the server answered. Absent if `concurrency` is set."""
    throughput: str
    """Throughput in inferences (samples) per second, as a decimal string."""
    client_send: int
    """Time that the client takes to serialize and send the request, in microseconds."""
    network: int
    """Time that request and response spend on the network and in the server's receiving and sending, in
    microseconds."""
    queue: int
    """Time that the request waits in the server's queue, in microseconds."""
    compute_input: int
    """Time that the server takes to prepare the inputs, in microseconds."""
    compute_infer: int
    """Time that the model runs, in microseconds."""
    compute_output: int
    """Time that the server takes to prepare the outputs, in microseconds."""
    client_receive: int
    """Time that the client takes to receive and parse the response, in microseconds."""
    p50: int
    """Median latency, in microseconds."""
    p90: int
    """90th percentile of the latency, in microseconds."""
    p95: int
    """95th percentile of the latency, in microseconds."""
    p99: int
    """99th percentile of the latency, in microseconds."""
    average: int
    """Mean latency, in microseconds."""
    stable: bool
    """Whether the measurement is stable: three consecutive windows differed by at most `stabilityPercentage`. If false,
    the figures are averages over three windows that differed by more."""
    spread_percent: str = ""
    """Difference between the highest and the lowest throughput of the windows, in percent of their mean, as a decimal
    string."""
    client_bound: bool | None = None
    """Whether the client, not the server, was the bottleneck. The server may then be faster than measured."""
    used_memory_bytes: int | None = None
    """Peak memory in use by all processes during the measurement, in bytes. It is GPU memory, or the node's memory if
    there is no GPU."""


class EnvironmentStatus(StatusType):
    """Where the measurements were made."""

    device: str
    """Device that the model ran on, cpu or gpu."""
    gpu_product: str = ""
    """Name of the GPU."""
    tensorrt_version: str = ""
    """Version of TensorRT in the server's image."""
    server_version: str
    """Version of tritonserver."""
    image: str
    """Image of the server."""
    image_digest: str = ""
    """Digest of the server's image, as the kubelet reports it."""
    cpu: str
    """Processor model, and number of cores that the measuring container could use."""
    perf_analyzer: Annotated[list[str], Field(max_length=4)]
    """Command lines of perf_analyzer, one for each sweep."""


class SaturationStatus(StatusType):
    """The throughput at which one replica is saturated, from the online sweep inside the profile Job's pod."""

    ended: Literal["Constraint", "Plateau", "RangeEnd"]
    """What limits the throughput. `Constraint`: a higher concurrency breaks a latency constraint. `Plateau`: a higher
    concurrency brings less than 5 % more. `RangeEnd`: nothing that was measured, because the sweep ended before."""
    concurrency: int | None = None
    """Lowest concurrency whose throughput is within 5 % of the highest that meets the latency constraints. Absent if no
    measurement meets them."""
    throughput: str = ""
    """Throughput at that concurrency, in inferences (samples) per second, as a decimal string."""
    p99_latency_microseconds: int | None = None
    """P99 latency at that concurrency, in microseconds."""
    lower_bound: bool | None = None
    """Whether one replica may do more: the sweep ended before the server was saturated, or the client was the
    bottleneck."""
    sustained_request_rate: int | None = None
    """Highest request rate, in requests per second, that the replica kept up with within the latency constraints.
    Absent if no request rate was measured, or none was sustained."""


class PerformanceStatus(StatusType):
    """The sweeps of the active revision."""

    offline: Annotated[list[RowStatus], Field(max_length=24)] = Field(default_factory=list)
    """Measurements of the offline sweep, made on the server inside the profile Job's pod."""
    online: Annotated[list[RowStatus], Field(max_length=24)] = Field(default_factory=list)
    """Measurements of the online sweep, made through the preview Service, which points to a revision before the main
    Service does."""
    request_rate: Annotated[list[RowStatus], Field(max_length=8)] = Field(default_factory=list)
    """Measurements of request rates, made on the server inside the profile Job's pod."""
    saturation: SaturationStatus | None = None
    """The throughput at which one replica is saturated."""
    environment: EnvironmentStatus | None = None
    """Where the measurements were made."""
    measured_at: str = ""
    """When the online sweep's Job ended, as an RFC 3339 time in UTC."""


class Images(ApiType):
    """Images that are kept when the operator is upgraded.

    They are replaced together, by an edit after which every model is converted again.
    """

    converter: str
    """Image of the main container of Jobs, unless they run TensorFlow or `conversion.image`."""
    converter_tensorflow: str = ""
    """Image of the main container of Jobs that run TensorFlow."""
    converter_gpu: str | None = None
    """Image of the container that runs your code in an object with `spec.gpu`, unless it runs TensorFlow. If there is
    none, that is `converter`."""
    tf32: bool | None = None
    """False in an object with `spec.gpu`: no container computes fp32 in TF32. The field is missing on the CPU, and if
    the images were chosen by an operator that did not know it, whose containers may."""
    server: str
    """Image of tritonserver, unless `serving.image` names one."""
    server_arguments: Annotated[list[str], Field(max_length=MOST_SERVER_ARGUMENTS)] = Field(default_factory=list)
    """Additional tritonserver options from the Helm value `server.arguments`. They are kept together with the server
    image."""
    spec_digest: str = ""
    """Digest of the part of the spec that every conversion is made from: source, data, dataloader, the models' code,
    arguments and `maxBatchSize`, GPU product, `accuracy.maxSamples`, `conversion.image` and
    `conversion.requirements`. While it stays the
    same, so do the images."""


class TritonDeploymentStatus(StatusType):
    """The observed state of a TritonDeployment."""

    observed_generation: int = -1
    """Generation of the spec that the status describes; -1 until the operator has seen the object."""
    conditions: Annotated[
        list[Condition],
        Field(max_length=16, json_schema_extra=list_map("type")),
    ] = Field(default_factory=list)
    """Conditions of the object. Ready, Reconciling and Stalled summarize the others, following the conventions of
    kstatus (Kubernetes SIG CLI). ServerVulnerable and ClaimShared are warnings, Rehearsed and NewCandidatesAvailable
    are notices. These four are there only while they are True, Autoscaling only with `serving.autoscaling`, and Soaked
    only with `serving.soak`; the others do not depend on them."""
    images: Images | None = None
    """Images that are kept when the operator is upgraded."""
    resolved: Resolved | None = None
    """What the operator fills in for fields that the spec leaves out."""
    source: SourceStatus | None = None
    """The source that the operator last read and copied to the repository claim."""
    signature: SignatureStatus | None = None
    """The inputs and outputs that every candidate serves."""
    candidates: Annotated[
        list[CandidateStatus],
        Field(max_length=18, json_schema_extra=list_map("name")),
    ] = Field(default_factory=list)
    """Candidates in the spec's order, followed by those that searches found."""
    search: Annotated[
        list[SearchStatus],
        Field(max_length=2, json_schema_extra=list_map("candidate")),
    ] = Field(default_factory=list)
    """Searches of `selection.search`, in the order in which they run."""
    serving: ServingStatus | None = None
    """The active revision, which the Service points to."""
    target: TargetStatus | None = None
    """The target revision, which is being rolled out or measured. The active revision keeps serving until the target
    replaces it."""
    endpoint: Endpoint | None = None
    """Where clients connect."""
    accuracy: Annotated[list[AccuracyStatus], Field(max_length=16)] = Field(default_factory=list)
    """Metrics of the active revision."""
    performance: PerformanceStatus | None = None
    """The sweeps of the active revision."""

    @property
    def active(self) -> ServingStatus | None:
        """The active revision; None: there is none."""
        return self.serving if self.serving is not None and self.serving.revision else None


def row_status(row: Row, precision: str, accelerator: str, input_shape: str) -> RowStatus:
    """Return the status of a measured row of a candidate."""
    return RowStatus(
        precision=precision,
        accelerator=accelerator,
        input_shape=input_shape,
        spread_percent=f"{row.spread:.1f}" if row.spread else "",
        used_memory_bytes=row.memory_bytes or None,
        **{
            **vars(row),
            "concurrency": row.concurrency or None,
            "request_rate": row.request_rate or None,
            "throughput": f"{row.throughput:.1f}",
            "client_bound": row.client_bound or None,
        },
    )


def saturation_status(
    online: Sequence[Row], rates: Sequence[Row], constraints: Sequence[Constraint]
) -> SaturationStatus | None:
    """Return the saturation of one replica, from the sweeps of its profile; None if nothing was measured online."""
    found = saturation(online, constraints)
    if found is None:
        return None
    row = found.row
    return SaturationStatus(
        ended=found.ended.value,
        concurrency=row.concurrency if row else None,
        throughput=f"{row.throughput:.1f}" if row else "",
        p99_latency_microseconds=row.p99 if row else None,
        lower_bound=found.is_lower_bound or None,
        sustained_request_rate=sustained(rates, constraints) or None,
    )


def accuracy_status(accuracy: Sequence[Accuracy], samples: int) -> list[AccuracyStatus]:
    """Return the status of judged metrics, in their order."""
    return [
        AccuracyStatus(
            metric=each.metric,
            framework=decimal(each.framework),
            served=decimal(each.served),
            samples=samples,
            threshold=each.threshold,
            passed=each.passed,
        )
        for each in accuracy
    ]


def decimal(value: float) -> str:
    """Return a metric's value with six significant digits."""
    return f"{value:.6g}"


def timestamp(now: datetime) -> str:
    """Return a time in RFC 3339 with seconds, as Kubernetes writes it. ``now`` has a time zone."""
    return now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def merge_conditions(old: Iterable[Condition], new: Iterable[Condition]) -> list[Condition]:
    """Return the new conditions, with the old lastTransitionTime unless the status changed; else no two are equal."""
    times = {(condition.type, condition.status): condition.last_transition_time for condition in old}
    return [
        condition.model_copy(
            update={
                "last_transition_time": times.get((condition.type, condition.status), condition.last_transition_time)
            }
        )
        for condition in new
    ]


def condition(
    type: ConditionType, status: bool | None, reason: Reason, message: str, generation: int, now: datetime
) -> Condition:
    """Return a condition that was observed now; a status of None is Unknown. A long message keeps its two ends."""
    return Condition(
        type=type,
        status="Unknown" if status is None else "True" if status else "False",
        reason=str(reason),
        message=shortened(message, CONDITION_MESSAGE_BYTES),
        observed_generation=generation,
        last_transition_time=timestamp(now),
    )
