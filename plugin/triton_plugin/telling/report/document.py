"""The report as a document: everything that its forms show, in their order. Its JSON is `-o json`. Pure."""

from collections.abc import Iterator
from typing import NamedTuple

from pydantic import Field

from triton_converters.contract.accuracy import judge
from triton_converters.contract.quantization import judged_samples
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import SCENARIOS, ConvertResult
from triton_operator.api.measured_status import (
    AccuracyStatus,
    EnvironmentStatus,
    MixedShapesStatus,
    RowStatus,
    SaturationStatus,
    StepStatus,
    accuracy_status,
    mixed_shapes_status,
    saturation_status,
)
from triton_operator.api.schema import ApiType
from triton_operator.api.search_status import ConfigStatus, SearchStatus, config_status
from triton_operator.api.selection import Constraints, Objective
from triton_operator.api.status import (
    CandidateStatus,
    Condition,
    ServingStatus,
    SignatureStatus,
    SourceStatus,
)
from triton_plugin.reading.subject import Subject
from triton_plugin.telling.advice import advice
from triton_plugin.telling.columns import cell, max_error, milliseconds
from triton_plugin.telling.report.parameters import Parameter, parameters
from triton_plugin.telling.tables import by_rank, margin

CANDIDATE_HEADINGS = (
    *("Rank", "Candidate", "State", "Inferences/second", "P99 Latency", "At"),
    *("Margin", "Pareto", "Max error", "Reason"),
)
POINT_HEADINGS = ("Configuration", "At", "Inferences/second", "P99 Latency", "Spread (%)")


class Remark(NamedTuple):
    """What is said first of an object."""

    title: str
    text: str
    is_good: bool | None = None
    """None: neither good nor bad."""


class Measured(ApiType):
    """The sweeps of one candidate."""

    offline: list[RowStatus]
    """Measurements with static batches."""
    online: list[RowStatus]
    """Measurements of concurrencies."""
    request_rate: list[RowStatus]
    """Measurements of request rates."""
    steps: list[StepStatus] | None
    """The times of each model of an ensemble, at the load of the active revision's figures; null: of a candidate."""
    saturation: SaturationStatus | None
    """Where one replica is saturated, on the profile pod's server."""
    mixed_shapes: MixedShapesStatus | None
    """The shapes of the samples that were sent; null: all had one shape."""

    def rows(self, scenario: str) -> list[RowStatus]:
        """Return the measurements of a scenario: Offline, Online or RequestRate."""
        found: list[RowStatus] = getattr(self, SCENARIOS[scenario])
        return found

    environment: EnvironmentStatus | None
    """Where the sweeps were measured; its perfAnalyzer has one command line for each sweep."""
    measured_at: str
    """When (RFC 3339, UTC); empty: not recorded."""


class CandidateReport(ApiType):
    """A candidate with all its measurements."""

    status: CandidateStatus
    """The candidate's entry in the object's status."""
    meaning: str
    """What the candidate's reason means."""
    advice: str
    """What to do about the candidate's reason; empty: nothing to do."""
    parameters: list[Parameter]
    """The candidate's parameters; the device is that of the active revision."""
    file_bytes: int | None
    """Size of the converted file; null: not converted, or its record is gone."""
    data_types: list[str]
    """Floating point types of the file's weights."""
    conversion_seconds: float | None
    """How long the conversion took."""
    error_outside_triton: str
    """Decimal: largest difference between the outputs of the file in its format's own runtime and the framework's, over
    the first samples; empty: not known. The status has the difference of the served outputs."""
    warnings: list[str]
    """The exporter's warnings."""
    accuracy: list[AccuracyStatus]
    """The candidate's metrics next to the framework's."""
    measured: Measured | None
    """The candidate's sweeps on the private server of its profile pod; null: not measured, or its record is gone."""

    def cells(self, signature: SignatureStatus | None) -> list[str]:
        """Return the cells under CANDIDATE_HEADINGS but for the last, which has ``words``."""
        status = self.status
        return [
            *(cell(status.rank), status.name, status.state, status.throughput, milliseconds(status.p99_latency)),
            *(status.load, margin(status), cell(status.pareto), max_error(status, signature)),
        ]

    @property
    def words(self) -> list[str]:
        """The candidate's message, what to do, and what an INT8 graph is like."""
        graph = f"{self.status.quantization.sentence()}." if self.status.quantization else ""
        return list(filter(None, (self.status.message, self.advice, graph)))


class PointReport(ApiType):
    """A point of a search."""

    config: ConfigStatus
    """The settings that were varied, as `spec.models[].config` has them."""
    row: RowStatus | None
    """The measurement; null: this configuration cannot be served."""
    refused: str
    """Why the point cannot be served."""

    @property
    def cells(self) -> list[str]:
        """The cells under POINT_HEADINGS."""
        row = self.row
        if row is None:
            return [str(self.config), f"not served: {self.refused}", "", "", ""]
        load = f"batch {row.batch_size}, concurrency {row.concurrency}"
        return [str(self.config), load, row.throughput, milliseconds(row.p99_latency), row.spread_percent]


class SearchReport(ApiType):
    """A search with all its points."""

    status: SearchStatus
    """The search's entry in the object's status."""
    points: list[PointReport]
    """The points in the order of measurement, repeats last; as far as their records exist."""

    @property
    def rows(self) -> list[RowStatus]:
        """The measurements of the points that could be served."""
        return [point.row for point in self.points if point.row is not None]


class ReleaseReport(ApiType):
    """A revision that served."""

    measured_at: str
    """The time of its measurement (RFC 3339, UTC)."""
    revision: str
    """The name of the revision."""
    candidate: str
    """The name of its candidate."""
    source: str
    """The version of its source, or else the digest."""
    metrics: dict[str, str]
    """The metrics of what it served."""


class Report(ApiType):
    """All that is known of one TritonDeployment."""

    name: str
    """The object's name."""
    namespace: str
    """The object's namespace."""
    model: str
    """Triton's model name."""
    generation: int
    """The spec's generation."""
    observed_generation: int
    """The generation that the rest describes."""
    conditions: list[Condition]
    """The conditions of the object's status."""
    source: SourceStatus | None
    """The published source."""
    signature: SignatureStatus | None
    """The inputs and outputs of every candidate."""
    serving: ServingStatus | None
    """The active revision; null: there is none."""
    parameters: list[Parameter]
    """The parameters of the active revision, or else of the best candidate."""
    scenario: str
    """The sweep that the selection is based on: Online, Offline or RequestRate."""
    objectives: list[Objective]
    """The metrics that candidates are ranked by."""
    constraints: Constraints
    """The limits of the selection."""
    candidates: list[CandidateReport]
    """The candidates by rank; those without a rank are last."""
    searches: list[SearchReport]
    """The searches, in the order in which they ran."""
    accuracy: list[AccuracyStatus]
    """The metrics of the active revision."""
    performance: Measured | None
    """The sweeps of the active revision: offline on the profile pod's server, online through the preview Service."""
    setup: list[Parameter]
    """The images and the device that this object needs."""
    releases: list[ReleaseReport]
    """The revisions that served, the last one first; as far as they are recorded."""
    configuration: str = Field(default="", exclude=True)
    """Format, precision and accelerator of the candidate whose parameters are shown."""

    def condition(self, kind: str) -> Condition | None:
        """Return the condition of that type, if it was observed."""
        return next((each for each in self.conditions if each.type == kind), None)

    @property
    def verified(self) -> str:
        """What passed the gates, what these could not judge, and what the reference warned of; empty: nothing."""
        found = self.condition("Verified")
        return found.message if found is not None and found.status == "True" else ""

    @property
    def remarks(self) -> Iterator[Remark]:
        """Whether the object is ready and up to date, and what its figures and this report are of."""
        ready, newer = self.condition("Ready"), self.condition("UpToDate")
        if ready is None:
            yield Remark("Pending", "The operator has not seen this object yet", is_good=False)
        else:
            is_ready = ready.status == "True"
            yield Remark("Ready" if is_ready else ready.reason, ready.message, is_good=is_ready)
            if is_ready and newer is not None and newer.status != "True":
                yield Remark(f"Not up to date: {newer.reason}", newer.message)
        for each in filter(None, (self.condition(kind) for kind in ("Local", "Rehearsed"))):
            yield Remark(each.type, each.message)
        if self.observed_generation != self.generation:
            text = f"The operator has not processed generation {self.generation} of the spec yet"
            yield Remark(
                "Not processed yet",
                f"{text}; this report describes generation {self.observed_generation}",
                is_good=False,
            )


def report(subject: Subject) -> Report:
    """Return the document of one object."""
    status, spec = subject.status, subject.spec
    candidates = [_candidate(subject, each) for each in by_rank(status.candidates)]
    found = status.performance
    measured = Measured(**{each: getattr(found, each) for each in Measured.model_fields}) if found is not None else None
    shown = _shown(subject)
    return Report(
        name=subject.name,
        namespace=subject.namespace,
        model=subject.served_name,
        generation=subject.generation,
        observed_generation=status.observed_generation,
        conditions=status.conditions,
        source=status.source,
        signature=status.signature,
        serving=status.active,
        parameters=parameters(shown, subject),
        scenario=spec.selection.scenario,
        objectives=spec.selection.objectives or [Objective(metric="throughput")],
        constraints=spec.selection.constraints,
        candidates=candidates,
        searches=[_search(subject, each) for each in status.search],
        accuracy=status.accuracy,
        performance=measured,
        setup=_setup(subject),
        releases=[
            ReleaseReport(
                measured_at=each.measured_at,
                revision=name,
                candidate=each.candidate,
                source=each.source_label or each.source_digest,
                metrics=each.metrics,
            )
            for name, each in subject.history.revisions.items()
        ],
        configuration=_configuration(shown),
    )


def _setup(subject: Subject) -> list[Parameter]:
    """Return what NVIDIA's READMEs ask their reader to have."""
    images, spec = subject.status.images, subject.spec
    lines = {
        "Triton Inference Server": spec.serving.image or (images.server if images else ""),
        "Conversion": spec.conversion.image or (images.converter if images else ""),
        "GPU": (spec.gpu.product or "any") if spec.gpu_count and spec.gpu else "",
    }
    return [Parameter(name=name, value=value) for name, value in lines.items() if value]


def environment_lines(environment: EnvironmentStatus) -> list[tuple[str, str]]:
    """Return what the figures depend on, in words; without what is unknown."""
    lines = [
        ("Device", environment.gpu_product or environment.device),
        ("Driver", environment.gpu_driver or ""),
        ("Processor", environment.cpu),
        ("Triton server", environment.server_version),
        ("TensorRT", environment.tensorrt_version),
        ("Server image", environment.image),
        ("Image digest", environment.image_digest),
    ]
    return [line for line in lines if line[1]]


def _candidate(subject: Subject, status: CandidateStatus) -> CandidateReport:
    profile, conversion = subject.profile(status), subject.conversion(status)
    reasons = {str(reason): reason.doc for reason in Reason}
    measured = None
    if profile is not None and (profile.offline or profile.online):
        where = profile.environment
        pinned = subject.status.images
        image = subject.spec.serving.image or (pinned.server if pinned else "")
        measured = Measured(
            offline=subject.rows(status, "Offline"),
            online=subject.rows(status, "Online"),
            request_rate=subject.rows(status, "RequestRate"),
            steps=None,
            saturation=saturation_status(
                profile.online, profile.request_rate, subject.spec.selection.constraints.as_requests
            ),
            mixed_shapes=mixed_shapes_status(profile.mix),
            environment=EnvironmentStatus(**{**vars(where), "perf_analyzer": list(where.perf_analyzer)}, image=image),
            measured_at=subject.finished_at("profile", status.profile_key),
        )
    return CandidateReport(
        status=status,
        meaning=reasons.get(status.reason or "", ""),
        advice=advice(status.reason or "", is_local=subject.is_local),
        parameters=parameters(status, subject),
        file_bytes=conversion.file_bytes if conversion else None,
        data_types=list(conversion.data_types) if conversion else [],
        conversion_seconds=conversion.seconds if conversion else None,
        error_outside_triton=_error(conversion),
        warnings=list(conversion.warnings) if conversion else [],
        accuracy=_accuracy(subject, status),
        measured=measured,
    )


def _error(conversion: ConvertResult | None) -> str:
    error = conversion.max_absolute_error if conversion else None
    return "" if error is None else f"{error:.3g}"


def _search(subject: Subject, status: SearchStatus) -> SearchReport:
    candidate = next(each for each in subject.status.candidates if each.name == status.candidate)
    points = [
        PointReport(
            config=config_status(point.tuning),
            row=subject.row(candidate, point.row) if point.row else None,
            refused=point.refused,
        )
        for point in subject.points(status)
    ]
    return SearchReport(status=status, points=points)


def _accuracy(subject: Subject, status: CandidateStatus) -> list[AccuracyStatus]:
    """Return the metrics, judged by the spec's thresholds as the operator judges them."""
    profile, metrics = subject.profile(status), subject.metrics(status)
    if profile is None or metrics is None:
        return []
    thresholds = [each.as_request() for each in subject.spec.accuracy.thresholds]
    samples = judged_samples(profile.samples, subject.spec.calibration_samples)
    earlier = {each.metric: {"previous": each.previous, "anchor": each.anchor} for each in status.metrics}
    return accuracy_status(judge(metrics, status.profile_key, thresholds).accuracy, samples, earlier)


def _shown(subject: Subject) -> CandidateStatus | None:
    """Return the active candidate, or else the best so far, or else the first."""
    candidates = by_rank(subject.status.candidates)
    serving = subject.status.active
    served = [each for each in candidates if serving is not None and each.name == serving.candidate]
    return next(iter(served or candidates), None)


def _configuration(candidate: CandidateStatus | None) -> str:
    return " + ".join(candidate.members) if candidate else ""
