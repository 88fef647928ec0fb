"""The report as a document: everything that its forms show, in their order. Its JSON is `-o json`. Pure."""

from collections.abc import Iterable

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
from triton_operator.api.model import Model
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
from triton_plugin.reading.subject import Subject, member_parts
from triton_plugin.telling.advice import advice
from triton_plugin.telling.tables import by_rank


class Parameter(ApiType):
    """A line of the table of parameters in NVIDIA's READMEs."""

    name: str
    """The name of the parameter in NVIDIA's READMEs."""
    value: str
    """The value that was used."""


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


class PointReport(ApiType):
    """A point of a search."""

    config: ConfigStatus
    """The settings that were varied, as `spec.models[].config` has them."""
    row: RowStatus | None
    """The measurement; null: this configuration cannot be served."""
    refused: str
    """Why the point cannot be served."""


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
    def rehearsed(self) -> str:
        """What ran on the CPU although it asked for a GPU; empty: nothing."""
        found = self.condition("Rehearsed")
        return found.message if found is not None else ""


def report(subject: Subject) -> Report:
    """Return the document of one object."""
    status, spec = subject.status, subject.spec
    candidates = [_candidate(subject, each) for each in by_rank(status.candidates)]
    measured = None
    if status.performance is not None:
        found = status.performance
        measured = Measured(
            offline=found.offline,
            online=found.online,
            request_rate=found.request_rate,
            steps=found.steps,
            saturation=found.saturation,
            mixed_shapes=found.mixed_shapes,
            environment=found.environment,
            measured_at=found.measured_at,
        )
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
        parameters=_parameters(shown, subject),
        scenario=spec.selection.scenario,
        objectives=spec.selection.objectives or [Objective(metric="throughput")],
        constraints=spec.selection.constraints,
        candidates=candidates,
        searches=[_search(subject, each) for each in status.search],
        accuracy=status.accuracy,
        performance=measured,
        configuration=_configuration(shown),
    )


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
                profile.online, profile.request_rate, subject.spec.selection.constraints.asked
            ),
            mixed_shapes=mixed_shapes_status(profile.mix),
            environment=EnvironmentStatus(**{**vars(where), "perf_analyzer": list(where.perf_analyzer)}, image=image),
            measured_at=subject.finished_at("profile", status.profile_key),
        )
    return CandidateReport(
        status=status,
        meaning=reasons.get(status.reason or "", ""),
        advice=advice(status.reason or ""),
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
    thresholds = [each.asked() for each in subject.spec.accuracy.thresholds]
    samples = judged_samples(profile.samples, subject.spec.calibration_samples)
    return accuracy_status(judge(metrics, status.profile_key, thresholds).accuracy, samples)


def _shown(subject: Subject) -> CandidateStatus | None:
    """Return the active candidate, or else the best so far, or else the first."""
    candidates = by_rank(subject.status.candidates)
    serving = subject.status.active
    served = [each for each in candidates if serving is not None and each.name == serving.candidate]
    return next(iter(served or candidates), None)


def _configuration(candidate: CandidateStatus | None) -> str:
    return " + ".join(candidate.members) if candidate else ""


def _parameters(shown: CandidateStatus | None, subject: Subject) -> list[Parameter]:
    formats, precisions, accelerators = _of_members(shown)
    spec, models = subject.spec, subject.spec.models
    tuned = shown.config if shown else None
    lines = {
        "Ensemble of": " + ".join(each.name for each in models) if spec.ensemble else "",
        "Export Format": _joined(each.format for each in models if each.format),
        "Model Format": formats,
        "Precision": precisions.upper(),
        "Backend Accelerator": accelerators,
        "GPU" if spec.gpu_count else "Device Kind": _device(subject),
        "Configuration found by": f"{spec.selection.search.mode} search" if tuned else "",
        **(_found(tuned) if tuned else _given(subject)),
        "Overrides of config.pbtxt": _joined(" ".join(each.config.overrides.split()) for each in models),
        "Protocol": spec.performance.protocol,
        "Shared memory (offline)": spec.performance.shared_memory,
        "Measurement": _measurement(subject),
    }
    return [Parameter(name=name, value=value) for name, value in lines.items() if value]


def _of_members(shown: CandidateStatus | None) -> tuple[str, str, str]:
    """Return the formats, precisions and accelerators of a candidate's models."""
    members = [member_parts(each) for each in shown.members] if shown else []
    formats, precisions, accelerators = zip(*members, strict=True) if members else ((), (), ())
    return " + ".join(formats), " + ".join(precisions), " + ".join(accelerators)


def _device(subject: Subject) -> str:
    """Return what the active revision was measured on, or else the GPU that the spec wants."""
    performance, gpu = subject.status.performance, subject.spec.gpu
    environment = performance.environment if performance else None
    if environment:
        return environment.gpu_product or environment.device
    return gpu.product if gpu else ""


def _given(subject: Subject) -> dict[str, str]:
    """Return the spec's configuration."""
    models = subject.spec.models
    return {
        "Max Batch Size": str(subject.spec.max_batch_size),
        "Number of model instances": _joined(str(each.config.instances) for each in models),
        "Dynamic batching": _joined("yes" if each.config.dynamic_batching else "no" for each in models),
        "Triton Max Queue Delay": _joined(_delay(each) for each in models),
        "Triton Preferred Batch Sizes": _joined(_preferred(each) for each in models),
        "CUDA graphs": _joined("yes" if each.config.cuda_graphs else "no" for each in models),
    }


def _found(tuned: ConfigStatus) -> dict[str, str]:
    """Return the configuration that a search found."""
    batching = tuned.dynamic_batching
    return {
        "Max Batch Size": str(tuned.max_batch_size),
        "Number of model instances": str(tuned.instances),
        "Dynamic batching": "yes" if batching else "no",
        "Triton Max Queue Delay": batching.max_queue_delay if batching else "",
        "Triton Preferred Batch Sizes": " ".join(map(str, batching.preferred_batch_sizes)) if batching else "",
        "CUDA graphs": "yes" if tuned.cuda_graphs else "no",
    }


def _joined(words: Iterable[str]) -> str:
    """Return one word for each model of an ensemble, or the word that they share; empty if there is none."""
    found = list(words)
    return found[0] if len(set(found)) == 1 else " + ".join(word or "none" for word in found)


def _delay(model: Model) -> str:
    batching = model.config.dynamic_batching
    return batching.max_queue_delay if batching else ""


def _preferred(model: Model) -> str:
    batching = model.config.dynamic_batching
    return " ".join(map(str, batching.preferred_batch_sizes)) if batching else ""


def _measurement(subject: Subject) -> str:
    how = subject.spec.performance.measurement
    windows = f"of {how.request_count} requests" if how.mode == "CountWindows" else f"of {how.interval}"
    return f"windows {windows}, three within {how.stability_percent} %"
