"""Makes the status from the progress of a pass. Pure."""

from collections.abc import Sequence
from math import isfinite
from typing import Any

from triton_converters.contract.accuracy import Accuracy
from triton_converters.contract.quantization import judged_samples
from triton_converters.contract.results import MeasureResult, Row, Signature, Tensor
from triton_converters.contract.text import shortened
from triton_operator import names
from triton_operator.api.duration import measured
from triton_operator.api.fitting import longest
from triton_operator.api.measured_status import (
    AccuracyStatus,
    EnvironmentStatus,
    PerformanceStatus,
    RowStatus,
    accuracy_status,
    mixed_shapes_status,
    quantization_status,
    row_status,
    saturation_status,
    steps_status,
)
from triton_operator.api.search_status import SearchStatus, config_status
from triton_operator.api.selection import Constraints
from triton_operator.api.status import (
    CandidateStatus,
    MetricValue,
    ServingStatus,
    SignatureStatus,
    SourceStatus,
    TargetStatus,
    TensorStatus,
    TritonDeploymentStatus,
    VersionStatus,
)
from triton_operator.api.triton_deployment import parse_status
from triton_operator.candidates.attempt import Attempt
from triton_operator.candidates.ranking import RankedCandidate, load_words
from triton_operator.context import Context
from triton_operator.effects import Statement
from triton_operator.jobs.source import followed
from triton_operator.observed.active_record import ActiveRecord
from triton_operator.observed.following import Following
from triton_operator.planning.conditions import Outline, conditions
from triton_operator.planning.pins import newer_images
from triton_operator.planning.source_status import followed_source, outdated_since, version_status
from triton_operator.planning.status_limit import within_limit
from triton_operator.resources.services import endpoint
from triton_operator.rollout.active import parts
from triton_operator.rollout.trial import Trial
from triton_operator.stages.progress import Progress
from triton_operator.stages.publish import published_status
from triton_operator.stages.reference import Referred
from triton_operator.stages.rollback import RolledBack
from triton_operator.stages.search import CandidateSearch, Searched
from triton_operator.stages.serve import RolledOut, TargetRolledOut
from triton_operator.stages.source import Sourced

ActivePart = tuple[ServingStatus | None, VersionStatus | None, list[AccuracyStatus], PerformanceStatus | None]
"""What a status tells of the active revision alone."""
MESSAGE_BYTES = 480
"""The longest message of a candidate; the Job's log has the rest."""
VERSION_BYTES = 256
"""The longest version of a downloaded source; the record has all of it."""


def status_of(
    context: Context,
    progress: Progress,
    outline: Outline,
    soak: Trial,
    known: Following,
    optional_conditions: Sequence[Statement],
) -> TritonDeploymentStatus:
    """The whole status. The active revision's part is carried over while another revision is on its way.

    ``outline``: what the conditions are made of. ``known``: what looks found of the source. ``optional_conditions``:
    those of what the spec may ask for besides a server, such as a soak.
    """
    is_served = context.active_server is not None
    constraints = context.spec.selection.constraints
    ranking, searches = (progress.ranking, progress.searches) if isinstance(progress, Searched) else ((), ())
    server = soak.back_to or context.active_server
    serving, version, accuracy, performance = _active_part(context, progress, server)
    recorded = _recorded_source_status(context, progress)
    new_images = newer_images(context)
    since = outdated_since(context.triton_deployment.status.source, known, version) if is_served else ""
    status = TritonDeploymentStatus(
        observed_generation=context.triton_deployment.generation,
        conditions=conditions(context, progress, outline, optional_conditions, new_images),
        images=context.pins,
        new_images=new_images,
        resolved=progress.resolved or context.resolved,
        source=followed_source(_source(context, progress) or recorded.source, known, version, since),
        last_handled_request_at=known.request,
        signature=_signature(progress.dump.result.signature) if isinstance(progress, Referred) else recorded.signature,
        candidates=[_candidate(attempt, ranking, constraints) for attempt in progress.attempts],
        search=[_search(each) for each in searches],
        serving=_serving_with_scale(context, serving if is_served else None, server),
        target=_target(progress),
        endpoint=endpoint(context) if context.observed.routed_server is not None else None,
        published=published_status(context, progress),
        accuracy=accuracy if is_served else [],
        performance=performance if is_served else None,
    )
    return within_limit(status)


def status_of_target(context: Context, progress: Progress, record: ActiveRecord | None) -> dict[str, Any] | None:
    """What a status will tell of the target, once it is active; None: nothing, or the record is not the target's.

    ``record``: the record of the active revision that is new in this pass; None: there is none.
    """
    if record is None or not isinstance(progress, TargetRolledOut) or record.server != progress.rollout.server:
        return None
    part = _target_part(context, progress)
    if part is None:
        return None
    serving, version, accuracy, performance = part
    signature = _signature(progress.dump.result.signature)
    return parts(
        within_limit(
            TritonDeploymentStatus(
                source=followed_source(_source(context, progress), Following(""), version),
                signature=signature,
                serving=serving,
                accuracy=accuracy,
                performance=performance,
            )
        )
    )


def _source(context: Context, progress: Progress) -> SourceStatus | None:
    if not isinstance(progress, Sourced):
        return None
    result = progress.source
    version = context.spec.source.version
    return SourceStatus(
        digest=f"sha256:{result.digest}",
        version=version,
        downloaded_version=shortened(result.resolved, VERSION_BYTES),
    )


def _signature(signature: Signature) -> SignatureStatus:
    inputs, outputs = longest(SignatureStatus, "inputs"), longest(SignatureStatus, "outputs")
    return SignatureStatus(
        inputs=_tensors(signature.inputs),
        outputs=_tensors(signature.outputs),
        max_batch_size=signature.max_batch_size,
        omitted=len(signature.inputs[inputs:]) + len(signature.outputs[outputs:]) or None,
    )


def _tensors(tensors: Sequence[Tensor]) -> list[TensorStatus]:
    return [
        TensorStatus(name=each.name, data_type=each.data_type, dims=list(each.request_dims or each.dims))
        for each in tensors
    ]


def _candidate(attempt: Attempt, ranking: Sequence[RankedCandidate], constraints: Constraints) -> CandidateStatus:
    choice = next((each for each in ranking if each.name == attempt.name), None)
    profile = attempt.profile
    metrics = _decisive_first(attempt.accuracy)
    earlier = _earlier_values(attempt)
    quantized = attempt.conversion.quantized if attempt.conversion else None
    return CandidateStatus(
        name=attempt.name,
        members=[member.label for member in attempt.candidate.members],
        state=attempt.state,
        reason=attempt.reason,
        message=shortened(attempt.message, MESSAGE_BYTES),
        revision=attempt.key,
        profile_key=attempt.profile_key,
        metrics_key=attempt.metrics_key,
        max_absolute_error=f"{profile.max_absolute_error:.3g}" if profile else "",
        quantization=quantization_status(quantized) if quantized else None,
        metrics=[
            MetricValue(metric=each.metric, value=each.figures[1], **earlier.get(each.metric, {})) for each in metrics
        ],
        omitted_metrics=len(metrics[longest(CandidateStatus, "metrics") :]) or None,
        config=config_status(attempt.candidate.tuning) if attempt.candidate.tuning else None,
        **(_ranking_fields(choice, constraints) if choice else {}),
    )


def _earlier_values(attempt: Attempt) -> dict[str, dict[str, str]]:
    """The values of earlier revisions with which metrics were compared, by metric and field."""
    values: dict[str, dict[str, str]] = {}
    for field, compared in zip(("previous", "anchor"), attempt.compared, strict=False):
        for each in compared.differences:
            values.setdefault(each.metric, {})[field] = f"{each.before:.6g}"
    return values


def _ranking_fields(choice: RankedCandidate, constraints: Constraints) -> dict[str, Any]:
    """The figures of a candidate's best row, and its place in the ranking."""
    row, binding = choice.row, choice.binding
    return {
        "throughput": throughput(row),
        "p99_latency": measured(row.p99),
        "load": choice.load,
        "satisfies_constraints": choice.violation is None,
        "binding_constraint": constraints.bound(binding.metric) if binding else "",
        "margin_percent": f"{binding.margin * 100:.1f}" if binding and isfinite(binding.margin) else "",
        "rank": choice.rank,
        "pareto": choice.pareto,
        "stable": row.stable,
        "spread_percent": f"{row.spread:.1f}" if row.spread else "",
        "client_bound": row.client_bound or None,
    }


def _search(search: CandidateSearch) -> SearchStatus:
    row = search.best.row if search.best else None
    return SearchStatus(
        candidate=search.candidate,
        measurements=search.measurements,
        size=search.size,
        ended=search.ended.value if search.ended is not None else "",
        message=shortened(search.failure.message, MESSAGE_BYTES) if search.failure else "",
        config=config_status(search.best.tuning) if search.best else None,
        throughput=throughput(row) if row else "",
        p99_latency=measured(row.p99) if row else None,
        load=load_words(row) if row else "",
        records=list(search.records),
    )


def _target(progress: Progress) -> TargetStatus | None:
    if not isinstance(progress, RolledOut) or progress.rollout.is_active or progress.rollout.undone:
        return None
    return TargetStatus(revision=progress.rollout.revision, candidate=progress.rollout.candidate)


def _rolled_back_status(progress: Progress) -> TritonDeploymentStatus | None:
    """The recorded status of the revision that the spec names, once that serves; None: it does not, or none is kept."""
    if not isinstance(progress, RolledBack) or not progress.rollout.is_active:
        return None
    recorded = parse_status({"status": progress.revision.status})
    return recorded if recorded.active is not None else None


def _recorded_source_status(context: Context, progress: Progress) -> TritonDeploymentStatus:
    """The recorded status of the source while the spec names the revision, so none is read; else an empty one."""
    if context.spec.rollout.revision is None:
        return TritonDeploymentStatus()
    if (rolled_back := _rolled_back_status(progress)) is not None:
        return rolled_back
    active = context.observed.history.revision_of_server(context.active_server)
    return parse_status({"status": active.status}) if active is not None else context.triton_deployment.status


def _active_part(context: Context, progress: Progress, server: str | None) -> ActivePart:
    """The active revision's part: the target's once the Service points to it and it was measured, else the old one.

    ``server``: name of its Deployment after this pass, because the pass that undoes a revision moves the Service back.
    """
    last = _rolled_back_status(progress) or _last_status_of(context, server)
    version = last.source.serving if last.source is not None and server is not None else None
    last_part = last.serving, version, last.accuracy, last.performance
    if not isinstance(progress, TargetRolledOut):
        return last_part
    of_target = _target_part(context, progress) if progress.rollout.is_active else None
    return last_part if of_target is None or progress.rollout.undone is not None else of_target


def _target_part(context: Context, progress: TargetRolledOut) -> ActivePart | None:
    """What the status tells of the target once it is active; None: it was not measured."""
    rollout = progress.rollout
    attempt = progress.target
    sweep, best, profile = rollout.measured.result, rollout.measured.best, attempt.profile
    if sweep is None or best is None:
        return None
    assert profile is not None
    serving = ServingStatus(
        revision=attempt.key,
        candidate=attempt.name,
        format=attempt.candidate.format,
        precision=attempt.candidate.precision,
        throughput=throughput(best.row),
        p99_latency=measured(best.row.p99),
        accuracy=_headline(context, attempt),
    )
    performance = PerformanceStatus(
        offline=_rows(context, attempt, profile.offline),
        online=_rows(context, attempt, sweep.online),
        request_rate=_rows(context, attempt, profile.request_rate),
        steps=steps_status(sweep.steps, sweep.online.index(best.row), best.row, _ordered_models(context)),
        saturation=saturation_status(
            profile.online, profile.request_rate, context.spec.selection.constraints.as_requests
        ),
        mixed_shapes=mixed_shapes_status(sweep.mix),
        environment=_environment(context, rollout.server, attempt, sweep),
        measured_at=rollout.measured.finished_at,
    )
    samples = judged_samples(profile.samples, context.spec.calibration_samples)
    accuracy = accuracy_status(_decisive_first(attempt.accuracy), samples, _earlier_values(attempt))
    return serving, version_status(followed(context).taken), accuracy, performance


def _ordered_models(context: Context) -> list[str]:
    """The names of the models of an ensemble, in the order of its steps; empty: the object is no ensemble."""
    ensemble = context.spec.ensemble
    return list(dict.fromkeys(step.model for step in ensemble.steps)) if ensemble else []


def _last_status_of(context: Context, server: str | None) -> TritonDeploymentStatus:
    """The last status of a server: as it is, as its record has it, or that of the move from it, or the history.

    The selector in the last status names the Deployment that the status is about; one that was told from a record has
    none. Where nothing tells of the server, as after statuses that were refused while the Service moved, no figures are
    better than those of another server.
    """
    last = context.triton_deployment.status
    record = context.observed.active_record
    if record is not None and record.server == server and record.status is not None:
        # The Service moved to it, and no status tells of that yet.
        return parse_status({"status": record.status})
    if last.active is None or last.active.selector in ("", names.selector(context.name, server)):
        return last
    promotions = [each for each in context.observed.promotions.values() if each.before and each.previous == server]
    if promotions:
        return parse_status({"status": max(promotions, key=lambda each: each.at).before})
    revision = context.observed.history.revision_of_server(server)
    return parse_status({"status": revision.status}) if revision is not None else TritonDeploymentStatus()


def _serving_with_scale(context: Context, serving: ServingStatus | None, server: str | None) -> ServingStatus:
    """The active revision's part with its name and what /scale shows, also of an object without an active revision."""
    view = context.observed.servers.get(server or "")
    model = context.served_name if serving is not None and server == context.active_server else context.spec.served_name
    return (serving or ServingStatus()).model_copy(
        update={
            "model": model if model != context.spec.served_name else None,
            "replicas": view.pods if view is not None else 0,
            "selector": names.selector(context.name, server),
        }
    )


def _decisive_first(metrics: Sequence[Accuracy]) -> list[Accuracy]:
    """Sort metrics: failed ones, those with a threshold, then the others, of which too many are left out."""
    return sorted(metrics, key=lambda each: (each.passed, not each.threshold))


def _headline(context: Context, attempt: Attempt) -> str:
    """The value of the first threshold's metric, or else of the first metric."""
    thresholds = context.spec.accuracy.thresholds
    metric = thresholds[0].metric if thresholds else None
    values = [each for each in attempt.accuracy if each.metric == metric] or list(attempt.accuracy)
    return values[0].figures[1] if values else ""


def _rows(context: Context, attempt: Attempt, rows: Sequence[Row]) -> list[RowStatus]:
    shapes = " ".join(f"{each.input}:{'x'.join(map(str, each.dims))}" for each in context.spec.performance.input_shapes)
    candidate = attempt.candidate
    return [row_status(row, candidate.precision, candidate.accelerator, shapes) for row in rows]


def _environment(context: Context, server: str, attempt: Attempt, sweep: MeasureResult) -> EnvironmentStatus:
    assert attempt.profile is not None
    profile = attempt.profile
    client_environment = sweep.environment
    view = context.observed.servers.get(server)
    performance = context.triton_deployment.status.performance
    recorded_digest = performance.environment.image_digest if performance and performance.environment else ""
    return EnvironmentStatus(
        device=client_environment.device,
        gpu_product=client_environment.gpu_product or profile.environment.gpu_product,
        gpu_driver=attempt.gpu_driver or None,
        tensorrt_version=client_environment.tensorrt_version,
        server_version=client_environment.server_version,
        image=context.images.server,
        image_digest=(view.image_id if view else "") or recorded_digest,
        cpu=client_environment.cpu,
        perf_analyzer=[
            *profile.environment.perf_analyzer[:1],
            *client_environment.perf_analyzer[:1],
            *[each for each in profile.environment.perf_analyzer[1:] if " --request-rate-range " in each],
        ],
    )


def throughput(row: Row) -> str:
    """Inferences per second with one decimal."""
    return f"{row.throughput:.1f}"
