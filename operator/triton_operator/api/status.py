"""The status of a TritonDeployment, written whole by one apply at the end of a pass."""

from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import Field

from triton_converters.contract.reason_kinds import Kind
from triton_converters.contract.reasons import Reason, of_kinds
from triton_operator.api.duration import MeasuredDuration
from triton_operator.api.fitting import StatusType
from triton_operator.api.measured_status import AccuracyStatus, PerformanceStatus, QuantizationStatus
from triton_operator.api.resolved import Resolved
from triton_operator.api.schema import ApiType, Text, list_map
from triton_operator.api.search_status import ConfigStatus, SearchStatus
from triton_operator.api.status_reason import StatusReason
from triton_operator.settings import MOST_SERVER_ARGUMENTS

CONDITION_MESSAGE_BYTES = 600
"""The longest message of a condition; the Job's log has the rest."""
ConditionType = Literal[
    "Ready",
    "UpToDate",
    "Reconciling",
    "Stalled",
    "SourceResolved",
    "Converted",
    "Verified",
    "Selected",
    "Available",
    "PerformanceMeasured",
    "ClaimShared",
    "ClaimTerminating",
    "RecordsUnreadable",
    "Local",
    "Rehearsed",
    "NewCandidatesAvailable",
    "NewImagesAvailable",
    "Autoscaling",
    "Routed",
    "Soaked",
    "Published",
]
RISKS: tuple[ConditionType, ...] = ("ClaimShared", "ClaimTerminating", "RecordsUnreadable")
"""Conditions that are there only while they are True: they warn, and Ready does not depend on them."""
NOTICES: tuple[ConditionType, ...] = (*RISKS, "Local", "Rehearsed", "NewCandidatesAvailable", "NewImagesAvailable")
"""All conditions that are there only while they are True. Those that are no risks only inform."""
PAUSED = of_kinds(Kind.PAUSED)
"""Reasons of an object that waits for its user, without anything being wrong."""
ON_TRIAL = of_kinds(Kind.TRIAL) | {Reason.ROLLOUT_HELD}
"""Reasons of Soaked while a revision may still be undone."""
OF_ACTIVE = frozenset({Reason.SOAKING, Reason.ROLLOUT_HELD, Reason.ROLLED_BACK})
"""Reasons of UpToDate that tell of the active revision itself, and not of something newer. No kind has them: only
here does it matter that a soaked revision is active already, and one that a canary tries is not."""
FAILING = of_kinds(Kind.PASS)
"""Reasons of Reconciling that tell of passes that fail, and are made again until one succeeds."""
ASKED_FOR: tuple[ConditionType, ...] = ("Autoscaling", "Routed", "Soaked", "Published")
"""Conditions that are there only while the spec asks for what they tell of. Ready does not depend on them, but for
Published where nothing is to serve."""
CandidateState = Literal[
    "Pending", "Converting", "Converted", "Profiling", "Profiled", "Passed", "Failed", "Skipped", "Selected"
]


class Condition(StatusType):
    """A Kubernetes condition (metav1.Condition)."""

    type: ConditionType
    """What the condition is about."""
    status: Literal["True", "False", "Unknown"]
    """Whether the condition holds."""
    reason: StatusReason
    """Why the condition has this status."""
    message: Text
    """What happened, to which object, and what to do next."""
    observed_generation: int
    """Generation of the spec that the condition was observed for."""
    last_transition_time: str
    """When `status` last changed, as an RFC 3339 time in UTC."""


class VersionStatus(StatusType):
    """A version of the source, as its server names it."""

    version: str
    """What identifies the content: a commit, a digest, a model's name and number, or a digest of a listing."""
    label: str
    """The version as a person reads it."""
    found_at: str
    """When a look first found it, as an RFC 3339 time in UTC."""


class SourceStatus(StatusType):
    """The source that the operator last read and, if `source.interval` is set, what lies at its URI."""

    digest: str = ""
    """Digest of the source, as sha256:HEX; empty until it is read."""
    version: str = ""
    """The `version` in `spec.source` when the operator read the source."""
    downloaded_version: str = ""
    """The server's name of what was downloaded: a commit, a digest or an entity tag; empty if none."""
    serving: VersionStatus | None = None
    """The version that the active revision was made from; absent if it was made while the source was not followed."""
    latest: VersionStatus | None = None
    """The version that the last look found, whether it serves or not; UpToDate tells why if it does not."""
    last_checked_at: str = ""
    """When a look last found a version, as an RFC 3339 time in UTC."""
    outdated_since: str = ""
    """Since when looks have found other versions than the version that serves, as an RFC 3339 time in UTC; empty while
    they find that one."""


class TensorStatus(StatusType):
    """An input or output of the served model."""

    name: str
    """Name of the tensor."""
    data_type: str
    """Triton's data type."""
    dims: Annotated[list[int], Field(max_length=16)]
    """Dimensions without the batch dimension. -1 means any size."""


class SignatureStatus(StatusType):
    """The inputs and outputs that every candidate serves."""

    inputs: Annotated[list[TensorStatus], Field(max_length=64)]
    """Inputs in the framework's order."""
    outputs: Annotated[list[TensorStatus], Field(max_length=64)]
    """Outputs in the framework's order."""
    omitted: int | None = None
    """Number of inputs and outputs that are left out here."""
    max_batch_size: int
    """Maximum number of samples in a batch; 0 means no batch dimension."""


class MetricValue(StatusType):
    """One metric of one candidate."""

    metric: str
    """Name of the metric."""
    value: str
    """Value for the served outputs."""
    previous: str = ""
    """Value of the revision that served before, with another reference, on the same samples; empty: not compared."""
    anchor: str = ""
    """Value of the anchor on the same samples; empty: not compared, or it is the revision that served before."""


class CandidateStatus(StatusType):
    """The state of a candidate, and its best measurement."""

    name: str
    """Name of the candidate; in an ensemble, those of its models' candidates, joined by dots. One that a search found
    ends in `.tuned`."""
    members: Annotated[list[str], Field(max_length=8)] = Field(default_factory=list)
    """Format, precision and accelerator of each model, such as onnx-fp16-cuda."""
    state: CandidateState
    """State of the candidate; Converted waits to be profiled, Profiled for its metrics."""
    reason: StatusReason | None = None
    """Why the candidate is in this state."""
    message: Text = ""
    """What happened, and what to do next."""
    revision: str = ""
    """Key of the candidate's revision, for `selection.approvedRevision`."""
    profile_key: str = ""
    """Key of the profile Job: entry `profile.<key>` of the ConfigMap `NAME-results`."""
    metrics_key: str = ""
    """Key of the metrics Job: entry `metrics.<key>` of the ConfigMap `NAME-results`."""
    max_absolute_error: str = ""
    """Largest absolute difference between a served output and the reference."""
    quantization: QuantizationStatus | None = None
    """What the candidate's INT8 graph is like. Absent if it has another precision, and in an ensemble."""
    metrics: Annotated[list[MetricValue], Field(max_length=16)] = Field(default_factory=list)
    """Metrics of the served outputs, first those that miss their threshold."""
    omitted_metrics: int | None = None
    """Number of metrics that are left out here."""
    throughput: str = ""
    """Throughput of the best measurement, in inferences per second."""
    p99_latency: MeasuredDuration | None = None
    """P99 latency of the best measurement, such as 18.3ms."""
    load: str = ""
    """Load of the best measurement, such as "batch 1, concurrency 16"."""
    satisfies_constraints: bool | None = None
    """Whether a measurement of the ranked sweep meets every constraint."""
    binding_constraint: str = ""
    """The constraint that the best measurement is closest to breaking, or breaks the most."""
    margin_percent: str = ""
    """Distance from the bound of `bindingConstraint`, in percent of it; negative if broken."""
    rank: int | None = None
    """Rank of the candidate; 1 is the best. Absent if it is not ranked."""
    pareto: bool | None = None
    """Whether no other candidate beats it in throughput and P99 latency, or in all of several objectives."""
    stable: bool | None = None
    """Whether three consecutive windows differed by at most `stabilityPercent`."""
    spread_percent: str = ""
    """Range of the windows' throughput, in percent of their mean."""
    client_bound: bool | None = None
    """Whether the client, not the server, was the bottleneck."""
    config: ConfigStatus | None = None
    """The configuration that a search found, as `spec.models[].config` has it."""


class ServingStatus(StatusType):
    """The active revision, which serves or, with `serving.mode: None`, passed last. If none: `replicas`, `selector`."""

    replicas: int = 0
    """Number of pods of the active revision, ready or not."""
    selector: str = ""
    """Label selector of the active revision's pods, for autoscalers."""
    revision: str = ""
    """Key of the revision."""
    candidate: str = ""
    """Name of the candidate."""
    format: str = ""
    """Format of the candidate; in an ensemble, those of its models, joined by "+"."""
    precision: str = ""
    """Precision of the candidate; in an ensemble, the lowest."""
    model: str | None = None
    """Name under which it serves the model, if the spec asks for another one."""
    throughput: str = ""
    """Throughput of the best measurement of the online sweep, in inferences per second."""
    p99_latency: MeasuredDuration | None = None
    """P99 latency of the best measurement of the online sweep, such as 18.3ms."""
    accuracy: str = ""
    """Value of the first threshold's metric or, without thresholds, of the first metric."""


class TargetStatus(StatusType):
    """The target revision, which is being rolled out or measured."""

    revision: str
    """Key of the revision."""
    candidate: str
    """Name of the candidate."""


class PublishedStatus(StatusType):
    """The image that a revision was last published as, as the registry had it when it was read back."""

    image: str
    """REGISTRY/REPOSITORY@sha256:DIGEST."""
    revision: str
    """Key of the revision."""
    signer: str = ""
    """SHA-256 of the public key in DER; empty: the image is not signed."""
    time: str
    """When the image was published, as an RFC 3339 time in UTC."""


class Endpoint(StatusType):
    """Where clients connect."""

    http: str
    """URL of Triton's HTTP endpoint."""
    grpc: str
    """Triton's gRPC endpoint, as host:port."""
    metrics: str
    """URL of Triton's Prometheus metrics."""


COMMANDS_VERSION = 1
"""The version of the commands of this operator's converter images. What a later version adds is asked only of images
whose `commands_version` is at least that."""


class Images(ApiType):
    """Images that are kept when the operator is upgraded.

    They are replaced together: by an edit after which every model is converted again, or by `kubectl triton
    update-images`.
    """

    converter: str
    """Image of the main container of Jobs, unless they run TensorFlow or `conversion.image`."""
    converter_tensorflow: str = ""
    """Image of the main container of Jobs that run TensorFlow."""
    converter_gpu: str | None = None
    """Image of the container that runs your code in an object with `spec.gpu`, by default `converter`."""
    commands_version: int
    """Version of the commands that the converter images know, and of the pods around them."""
    server: str
    """Image of tritonserver, unless `serving.image` names one."""
    server_arguments: Annotated[list[str], Field(max_length=MOST_SERVER_ARGUMENTS)] = Field(default_factory=list)
    """Arguments of tritonserver from the Helm value `server.arguments`."""
    spec_digest: str = ""
    """Digest of what every conversion is made from. While it stays, so do the images."""
    request_digest: str = ""
    """Digest of the annotation by which `kubectl triton update-images` asked for these images."""


class TritonDeploymentStatus(StatusType):
    """The observed state of a TritonDeployment."""

    observed_generation: int = -1
    """Generation of the spec that the status describes; -1 at first."""
    conditions: Annotated[
        list[Condition],
        Field(max_length=24, json_schema_extra=list_map("type")),
    ] = Field(default_factory=list)
    """Conditions of the object. Ready is True while what this generation of the spec asks for serves, verified;
    UpToDate while nothing newer is wanted. Reconciling and Stalled follow kstatus. Notices are there only while they
    are True; Autoscaling, Routed, Soaked and Published only if the spec asks for what they tell of."""
    images: Images | None = None
    """Images that are kept when the operator is upgraded."""
    new_images: Images | None = None
    """The images of the installation, while they are others than the object keeps."""
    resolved: Resolved | None = None
    """What the operator fills in for fields that the spec leaves out."""
    source: SourceStatus | None = None
    """The source that the operator last read."""
    last_handled_request_at: str = ""
    """The value of the annotation `triton-operator.dev/requestedAt` that the last look answered."""
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
    """The target revision, which is being rolled out or measured."""
    endpoint: Endpoint | None = None
    """Where clients connect."""
    published: PublishedStatus | None = None
    """The image that was published last; absent without `spec.publish`."""
    accuracy: Annotated[list[AccuracyStatus], Field(max_length=16)] = Field(default_factory=list)
    """Metrics of the active revision."""
    performance: PerformanceStatus | None = None
    """The sweeps of the active revision."""

    @property
    def active(self) -> ServingStatus | None:
        """The active revision; None: there is none."""
        return self.serving if self.serving is not None and self.serving.revision else None

    @property
    def failing(self) -> Condition | None:
        """Why passes of the operator over the object fail, and are made again; None: they do not."""
        return next((each for each in self.conditions if each.type == "Reconciling" and each.reason in FAILING), None)


def timestamp(now: datetime) -> str:
    """Return a time in RFC 3339 with seconds, as Kubernetes writes it. ``now`` has a time zone."""
    return now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
