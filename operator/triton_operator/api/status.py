"""The status of a TritonDeployment: what was observed, written whole by one apply at the end of a pass."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import Row
from triton_converters.contract.text import shortened
from triton_operator.api.fitting import StatusType
from triton_operator.api.schema import ApiType, Text, list_map
from triton_operator.api.search_status import ConfigurationStatus, SearchStatus

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
]
CandidateState = Literal["Pending", "Converting", "Converted", "Profiling", "Passed", "Failed", "Skipped", "Selected"]


class Condition(StatusType):
    """A Kubernetes condition (metav1.Condition)."""

    type: ConditionType
    """What is observed."""
    status: Literal["True", "False", "Unknown"]
    """Whether it holds."""
    reason: Annotated[str, StringConstraints(max_length=63)]
    """CamelCase; docs/reasons.md explains each."""
    message: Text
    """What happened, to which object, what to do next."""
    observed_generation: int
    """Generation of the spec it was observed for."""
    last_transition_time: str
    """RFC 3339, UTC: when status last changed."""


class SourceStatus(StatusType):
    """The published source."""

    digest: str
    """sha256:HEX."""
    revision: str = ""
    """The spec's, as it was read."""


class TensorStatus(StatusType):
    """An input or output of the served model."""

    name: str
    """Tensor's name."""
    data_type: str
    """Triton's name of the type."""
    dims: Annotated[list[int], Field(max_length=16)]
    """Without the batch dimension; -1: varies."""


class SignatureStatus(StatusType):
    """What every candidate serves."""

    inputs: Annotated[list[TensorStatus], Field(max_length=64)]
    """In the framework's order."""
    outputs: Annotated[list[TensorStatus], Field(max_length=64)]
    """In the framework's order."""
    omitted: int | None = None
    """Inputs and outputs that are left out here; the server's metadata has them all."""
    max_batch_size: int
    """Samples; 0: no batch dimension."""


class MetricValue(StatusType):
    """One metric of one candidate."""

    metric: str
    """Its name."""
    value: str
    """Decimal, of the served outputs."""


class CandidateStatus(StatusType):
    """What became of a candidate."""

    name: str
    """As in the spec."""
    members: Annotated[list[str], Field(max_length=8)] = Field(default_factory=list)
    """FORMAT-PRECISION-ACCELERATOR of each model."""
    state: CandidateState
    """Where it stands."""
    reason: str = ""
    """Why it stands there; docs/reasons.md explains each."""
    message: Text = ""
    """What happened and what to do next."""
    key: str = ""
    """Of its revision on the claim."""
    profile: str = ""
    """Of its profile: all its rows are entry `profile.KEY` of the ConfigMap NAME-results."""
    max_absolute_error: str = ""
    """Decimal: largest difference of a served output from the framework's."""
    metrics: Annotated[list[MetricValue], Field(max_length=16)] = Field(default_factory=list)
    """Of the served outputs: those that failed first, then those that have a threshold."""
    omitted_metrics: int | None = None
    """Metrics that are left out here; the entry that `profile` names has more."""
    throughput: str = ""
    """Decimal: inferences per second of its best row."""
    p99_latency_microseconds: int | None = None
    """Of its best row."""
    load: str = ""
    """Of its best row: "batch 1, concurrency 16"."""
    satisfies_constraints: bool | None = None
    """Whether a row of the judged scenario meets every constraint."""
    binding_constraint: str = ""
    """The constraint that its best row is closest to breaking, or breaks by most: "P99LatencyMicroseconds maximum
    10000"."""
    margin_percent: str = ""
    """Decimal: how far its best row is within that bound; negative: beyond it."""
    rank: int | None = None
    """1: the best."""
    pareto: bool | None = None
    """Whether one of its rows is beaten by no other candidate's in throughput and p99 latency both, or in all of the
    objectives' metrics where there are several."""
    stable: bool | None = None
    """Whether perf_analyzer called its best row stable."""
    spread_percent: str = ""
    """Decimal: how far the throughputs of its best row's windows differ, relative to their mean."""
    client_bound: bool | None = None
    """True: at its best row the client was the limit, so the server could do more."""
    configuration: ConfigurationStatus | None = None
    """What a search found, where that is what it is served with; absent: the spec's."""


class ServingStatus(StatusType):
    """What the Service points to."""

    revision: str
    """Key of the revision on the claim."""
    candidate: str
    """Its candidate's name."""
    format: str
    """Its format."""
    precision: str
    """Its precision."""
    throughput: str = ""
    """Decimal: inferences per second of the best row measured through the preview Service."""
    p99_latency_microseconds: int | None = None
    """Of that row."""
    accuracy: str = ""
    """Decimal: the first threshold's metric, or the first metric, of the served outputs."""


class TargetStatus(StatusType):
    """What is to serve next."""

    revision: str
    """Key of the revision on the claim."""
    candidate: str
    """Its candidate's name."""


class Endpoint(StatusType):
    """Where clients connect."""

    http: str
    """URL of Triton's HTTP endpoint."""
    grpc: str
    """host:port of Triton's gRPC endpoint."""
    metrics: str
    """URL of the Prometheus metrics."""


class AccuracyStatus(StatusType):
    """A metric of the chosen candidate."""

    metric: str
    """Its name."""
    framework: str
    """Decimal: of the framework's outputs."""
    served: str
    """Decimal: of the served outputs."""
    samples: int
    """How many it was computed on."""
    threshold: str = ""
    """In words; empty: none."""
    passed: bool
    """Whether the threshold holds."""


class RowStatus(StatusType):
    """One measured point; latencies in microseconds. The columns of the five source documents' tables."""

    precision: str
    """Of the candidate."""
    accelerator: str
    """Of the candidate."""
    input_shape: str = ""
    """"INPUT__0:3x224x224" where dimensions vary (or the sequence length)."""
    batch_size: int
    """Samples of a request."""
    concurrency: int
    """Requests in flight."""
    throughput: str
    """Decimal: inferences (samples) per second."""
    client_send: int
    """Client serialises and sends (step 1)."""
    network: int
    """Network and server send/receive (steps 2, 3, 6 and 7)."""
    queue: int
    """In the server's queue (step 4)."""
    compute_input: int
    """Inputs are made ready (part of step 5)."""
    compute_infer: int
    """The model runs (part of step 5)."""
    compute_output: int
    """Outputs are made ready (part of step 5)."""
    client_receive: int
    """Client receives and parses (step 8)."""
    p50: int
    """Median latency."""
    p90: int
    """90th percentile."""
    p95: int
    """95th percentile."""
    p99: int
    """99th percentile."""
    average: int
    """Mean latency."""
    stable: bool
    """False: no three windows agreed; the row is three windows merged whatever they show."""
    spread_percent: str = ""
    """Decimal: how far the throughputs of the windows differ, relative to their mean."""
    client_bound: bool | None = None
    """True: the client was the limit, so the server could do more."""
    used_memory_bytes: int | None = None
    """Most memory in use meanwhile: of the GPUs; without a GPU of the node, whatever uses it."""


class EnvironmentStatus(StatusType):
    """Where it was measured."""

    device: str
    """cpu or gpu."""
    gpu_product: str = ""
    """GPU's name."""
    tensorrt_version: str = ""
    """Of the server's image."""
    server_version: str
    """tritonserver's."""
    image: str
    """The server's image."""
    image_digest: str = ""
    """As the kubelet reports it."""
    cpu: str
    """Model and number of cores."""
    perf_analyzer: Annotated[list[str], Field(max_length=4)]
    """Its command line, one a scenario."""


class PerformanceStatus(StatusType):
    """Sweeps of what serves: offline on the profile pod's private server, online through the preview Service."""

    offline: Annotated[list[RowStatus], Field(max_length=24)] = Field(default_factory=list)
    """Static batches."""
    online: Annotated[list[RowStatus], Field(max_length=24)] = Field(default_factory=list)
    """Concurrencies."""
    environment: EnvironmentStatus | None = None
    """Where."""
    measured_at: str = ""
    """RFC 3339, UTC: when the measurement ended."""


class Images(ApiType):
    """Images pinned for this generation: a newer operator neither reconverts nor rolls out."""

    converter: str
    """Of the Jobs' own containers."""
    converter_tensorflow: str = ""
    """Of those that run TensorFlow."""
    server: str
    """Of tritonserver."""
    server_arguments: Annotated[list[str], Field(max_length=32)] = Field(default_factory=list)
    """Flags of tritonserver that come from the operator's settings, as they go with its image."""


class TritonDeploymentStatus(StatusType):
    """What was observed."""

    observed_generation: int = -1
    """Generation of the spec this status is of; -1: not seen yet."""
    conditions: Annotated[
        list[Condition],
        Field(max_length=16, json_schema_extra=list_map("type")),
    ] = Field(default_factory=list)
    """Ready, Reconciling and Stalled sum the others up (kstatus)."""
    images: Images | None = None
    """Pinned until the generation changes."""
    source: SourceStatus | None = None
    """The published source."""
    signature: SignatureStatus | None = None
    """What every candidate serves."""
    candidates: Annotated[
        list[CandidateStatus],
        Field(max_length=18, json_schema_extra=list_map("name")),
    ] = Field(default_factory=list)
    """In the spec's order; then what searches found."""
    search: Annotated[
        list[SearchStatus],
        Field(max_length=2, json_schema_extra=list_map("candidate")),
    ] = Field(default_factory=list)
    """The searches of selection.search, in the order in which they run."""
    serving: ServingStatus | None = None
    """What the Service points to."""
    target: TargetStatus | None = None
    """What is to serve next; the old revision serves until it has passed."""
    endpoint: Endpoint | None = None
    """Where clients connect."""
    accuracy: Annotated[list[AccuracyStatus], Field(max_length=16)] = Field(default_factory=list)
    """Of what serves."""
    performance: PerformanceStatus | None = None
    """Of what serves."""


def row_status(row: Row, precision: str, accelerator: str, input_shape: str) -> RowStatus:
    """A measured row with what it is a row of."""
    return RowStatus(
        precision=precision,
        accelerator=accelerator,
        input_shape=input_shape,
        spread_percent=f"{row.spread:.1f}" if row.spread else "",
        used_memory_bytes=row.memory_bytes or None,
        **{**vars(row), "throughput": f"{row.throughput:.1f}", "client_bound": row.client_bound or None},
    )


def timestamp(now: datetime) -> str:
    """RFC 3339 with seconds, as Kubernetes writes it. ``now``: aware."""
    return now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def merge_conditions(old: Iterable[Condition], new: Iterable[Condition]) -> list[Condition]:
    """Keep lastTransitionTime of a condition whose status did not flip: else no status ever equals the last one."""
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
