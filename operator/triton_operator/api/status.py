"""The status of a TritonDeployment, written whole by one apply at the end of a pass."""

from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import Field

from triton_converters.contract.reasons import Reason
from triton_operator.api.duration import MeasuredDuration
from triton_operator.api.fitting import StatusType
from triton_operator.api.measured_status import AccuracyStatus, PerformanceStatus, QuantizationStatus
from triton_operator.api.resolved import Resolved
from triton_operator.api.schema import ApiType, Text, list_map
from triton_operator.api.search_status import ConfigStatus, SearchStatus
from triton_operator.api.told_reason import ToldReason
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
    "Rehearsed",
    "NewCandidatesAvailable",
    "NewImagesAvailable",
    "Autoscaling",
    "Routed",
    "Soaked",
]
RISKS: tuple[ConditionType, ...] = ("ClaimShared", "ClaimTerminating")
"""Conditions that are there only while they are True: they warn, and Ready does not depend on them."""
NOTICES: tuple[ConditionType, ...] = (*RISKS, "Rehearsed", "NewCandidatesAvailable", "NewImagesAvailable")
"""All conditions that are there only while they are True. Those that are no risks only inform."""
OF_ACTIVE = frozenset({Reason.SOAKING, Reason.ROLLOUT_HELD, Reason.ROLLED_BACK})
"""Reasons of UpToDate that tell of the active revision itself, and not of something newer."""
FAILING = frozenset({Reason.APPLY_FAILED, Reason.REQUEST_FAILED, Reason.STATUS_REFUSED, Reason.INTERNAL_ERROR})
"""Reasons of Reconciling that tell of passes that fail, and are made again until one succeeds."""
ASKED_FOR: tuple[ConditionType, ...] = ("Autoscaling", "Routed", "Soaked")
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
    reason: ToldReason
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
    version: str = ""
    """The `version` in `spec.source` when the operator read the source."""
    downloaded_version: str = ""
    """What the server called the version that was downloaded: a commit (`hf`), a manifest's digest (`oci`), or an
    object's version or entity tag. Empty if it named none, or if the source is not downloaded."""


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
    reason: ToldReason | None = None
    """Why the candidate is in this state; docs/reasons.md explains each reason."""
    message: Text = ""
    """What happened, and what to do next."""
    revision: str = ""
    """Key of the candidate's revision on the repository claim. Copy it to `selection.approvedRevision` to approve the
    revision."""
    profile_key: str = ""
    """Key of the Job that profiled the candidate. The ConfigMap `<name of the object>-results` has an entry
    `profile.<key>` with all of its measurements."""
    metrics_key: str = ""
    """Key of the Job that computed the candidate's metrics. The ConfigMap `<name of the object>-results` has an entry
    `metrics.<key>` with the metrics of all candidates. Absent without `spec.metrics`."""
    max_absolute_error: str = ""
    """Largest absolute difference between a served output and the reference, as a decimal string."""
    quantization: QuantizationStatus | None = None
    """What the candidate's INT8 graph is like. Absent if it has another precision, and in an ensemble."""
    metrics: Annotated[list[MetricValue], Field(max_length=16)] = Field(default_factory=list)
    """Metrics of the served outputs: first those that miss their threshold, then those that meet it, then those without
    a threshold."""
    omitted_metrics: int | None = None
    """Number of metrics that are left out here to keep the status small; the entry that `metricsKey` names has them."""
    throughput: str = ""
    """Throughput of the candidate's best measurement, in inferences (samples) per second, as a decimal string."""
    p99_latency: MeasuredDuration | None = None
    """P99 latency of the candidate's best measurement, such as 18.3ms."""
    load: str = ""
    """Load of the candidate's best measurement, such as "batch 1, concurrency 16"."""
    satisfies_constraints: bool | None = None
    """Whether a measurement of the ranked sweep meets every constraint."""
    binding_constraint: str = ""
    """The constraint that the best measurement is closest to breaking or, if it breaks any, breaks by the largest
    margin, such as "p99Latency at most 10ms"."""
    margin_percent: str = ""
    """Distance between the best measurement and the bound of `bindingConstraint`, in percent of the bound, as a decimal
    string. It is negative if the measurement breaks the constraint, and absent if the metric was not measured."""
    rank: int | None = None
    """Rank of the candidate; 1 is the best. Absent if it is not ranked."""
    pareto: bool | None = None
    """Whether the candidate is Pareto-optimal: it has a measurement that no other candidate beats in both throughput
    and P99 latency. If there are several objectives, their metrics are compared instead."""
    stable: bool | None = None
    """Whether the best measurement is stable: three consecutive windows differed by at most `stabilityPercent`."""
    spread_percent: str = ""
    """Difference between the highest and the lowest throughput of the best measurement's windows, in percent of their
    mean, as a decimal string."""
    client_bound: bool | None = None
    """Whether the client, not the server, was the bottleneck of the best measurement. The server may then be faster
    than measured."""
    config: ConfigStatus | None = None
    """The configuration that a search found, as `spec.models[].config` has it. Absent if the candidate has the spec's
    configuration."""


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
    model: str | None = None
    """Name under which it serves the model, if that is not the one that the spec asks for, as after a rollback over a
    change of the name."""
    throughput: str = ""
    """Throughput of the best measurement through the preview Service, in inferences (samples) per second, as a decimal
    string. The preview Service points to a revision before the main Service does."""
    p99_latency: MeasuredDuration | None = None
    """P99 latency of the best measurement through the preview Service, such as 18.3ms."""
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
    """Image of the container that runs your code in an object with `spec.gpu`, unless it runs TensorFlow. If there is
    none, that is `converter`."""
    commands_version: int
    """Version of the commands that the converter images know, and of the pods around them."""
    server: str
    """Image of tritonserver, unless `serving.image` names one."""
    server_arguments: Annotated[list[str], Field(max_length=MOST_SERVER_ARGUMENTS)] = Field(default_factory=list)
    """Additional tritonserver options from the Helm value `server.arguments`. They are kept together with the server
    image."""
    spec_digest: str = ""
    """Digest of the part of the spec that every conversion is made from: source, weights, data, dataloader, the
    models' code, arguments and `maxBatchSize`, GPU product, `accuracy.maxSamples`, `conversion.image`,
    `conversion.requirements`, the models' `requirements` and the variables of `conversion.pod.env`. While it stays the
    same, so do the images."""
    request_digest: str = ""
    """Digest of the annotation by which `kubectl triton update-images` asked for these images. Another value asks
    again."""


class TritonDeploymentStatus(StatusType):
    """The observed state of a TritonDeployment."""

    observed_generation: int = -1
    """Generation of the spec that the status describes; -1 until the operator has seen the object."""
    conditions: Annotated[
        list[Condition],
        Field(max_length=24, json_schema_extra=list_map("type")),
    ] = Field(default_factory=list)
    """Conditions of the object. Ready, UpToDate, Reconciling and Stalled summarize the others, following the
    conventions of kstatus (Kubernetes SIG CLI). Ready is True while what this generation of the spec asks for serves,
    verified; UpToDate while nothing newer is wanted than the active revision. Stalled is True after a
    failure: until somebody changes something or, of what passes by itself, until a later try succeeds. If the operator
    itself fails for some time, Reconciling tells why, and the others stay as they are. ClaimShared and ClaimTerminating
    are warnings, Rehearsed, NewCandidatesAvailable and NewImagesAvailable are notices. These five are there only while
    they are True, Autoscaling only with `serving.autoscaling`, Routed only with `serving.route`, and Soaked only with
    `serving.soak`; the others do not depend on them."""
    images: Images | None = None
    """Images that are kept when the operator is upgraded."""
    new_images: Images | None = None
    """The images of the installation, while they are others than the object keeps. `kubectl triton update-images` asks
    the operator to take them."""
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

    @property
    def failing(self) -> Condition | None:
        """Why passes of the operator over the object fail, and are made again; None: they do not."""
        return next((each for each in self.conditions if each.type == "Reconciling" and each.reason in FAILING), None)


def timestamp(now: datetime) -> str:
    """Return a time in RFC 3339 with seconds, as Kubernetes writes it. ``now`` has a time zone."""
    return now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
