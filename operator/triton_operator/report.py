"""From the flow's progress to the status, and from the difference of two statuses to Events. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC
from typing import get_args

from triton_converters.reasons import Reason
from triton_converters.result import MeasureResult, ProfileResult, Row, Signature
from triton_operator.attempt import Attempt
from triton_operator.context import Context
from triton_operator.progress import Progress
from triton_operator.resources.services import endpoint
from triton_operator.selection import Choice, best_row
from triton_operator.stages.serving import available
from triton_operator.stages.step import Verdict
from triton_operator.status import (
    AccuracyStatus,
    CandidateStatus,
    Condition,
    ConditionType,
    EnvironmentStatus,
    MetricValue,
    PerformanceStatus,
    RowStatus,
    ServingStatus,
    SignatureStatus,
    SourceStatus,
    TargetStatus,
    TensorStatus,
    TritonDeploymentStatus,
    condition,
    merge_conditions,
)

MESSAGE_CHARACTERS = 300
"""Of a candidate: with 16 candidates and 24 rows the status stays under 32 KiB."""
UNDECIDED = {Reason.PENDING, Reason.WAITING, Reason.RUNNING, Reason.SUSPENDED}
"""Reasons of a stage that may still go either way."""
QUIET = UNDECIDED | {Reason.ROLLING_OUT, Reason.PROGRESSING}
"""Reasons of work that goes on: no cause for a Warning."""


def status(context: Context, progress: Progress) -> TritonDeploymentStatus:
    """The whole status; what serves is carried over while another revision is on its way."""
    old = context.deployment.status
    digest = f"sha256:{progress.source.digest}" if progress.source else ""
    up = context.serving is not None
    serving, accuracy, performance = _of_what_serves(context, progress)
    return TritonDeploymentStatus(
        observed_generation=context.deployment.generation,
        conditions=merge_conditions(old.conditions, _conditions(context, progress)),
        images=context.images,
        source=SourceStatus(digest=digest, revision=context.spec.source.revision) if progress.source else None,
        signature=_signature(progress.reference.signature) if progress.reference else None,
        candidates=[_candidate(attempt, progress.ranking) for attempt in progress.attempts],
        serving=serving if up else None,
        target=_target(progress),
        endpoint=endpoint(context) if up else None,
        accuracy=accuracy if up else [],
        performance=performance if up else None,
    )


def transitions(old: TritonDeploymentStatus, new: TritonDeploymentStatus) -> Iterator[tuple[str, str, str]]:
    """Type, reason and message of an Event for each condition and candidate that changed."""
    known = {each.type: (each.status, each.reason) for each in old.conditions}
    for each in new.conditions:
        if each.type in ("Ready", "Stalled", "Reconciling") and (each.status != "True" or each.type == "Reconciling"):
            continue
        if known.get(each.type) == (each.status, each.reason) or each.reason in (Reason.WAITING, Reason.PENDING):
            continue
        bad = each.type == "Stalled" or (each.status != "True" and each.reason not in QUIET)
        yield "Warning" if bad else "Normal", each.reason, f"{each.type}: {each.message}"
    states = {each.name: each.state for each in old.candidates}
    for candidate in new.candidates:
        if candidate.state == "Failed" and states.get(candidate.name) != "Failed":
            yield "Warning", candidate.reason, f"candidate {candidate.name}: {candidate.message}"


def _conditions(context: Context, progress: Progress) -> list[Condition]:
    verdicts = {verdict.type: verdict for verdict in progress.verdicts}
    for kind in get_args(ConditionType)[3:]:
        if kind not in verdicts:
            verdicts[kind] = _not_reached(context, kind)
    stages = [_undecided(verdicts[kind]) for kind in get_args(ConditionType)[3:]]
    summary = _summary(context, progress, stages)
    now = context.now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    generation = context.deployment.generation
    return [
        condition(each.type, each.status, each.reason, each.message, generation, now) for each in (*summary, *stages)
    ]


def _undecided(verdict: Verdict) -> Verdict:
    """Unknown while the stage goes on: False is said of what failed, or is in trouble."""
    return replace(verdict, status=None) if verdict.reason in UNDECIDED else verdict


def _not_reached(context: Context, kind: ConditionType) -> Verdict:
    if kind == "Available" and context.serving is not None:
        return available(context)
    return Verdict(kind, None, Reason.WAITING, "an earlier stage has to finish first")


def _summary(context: Context, progress: Progress, stages: Sequence[Verdict]) -> list[Verdict]:
    """Ready, Reconciling and Stalled, as kstatus reads them."""
    rollout = progress.rollout
    clear = Verdict("Stalled", False, Reason.NO_STALL, "nothing is in the way")
    if rollout is not None and rollout.serves and rollout.blocking is None:
        return [
            Verdict("Ready", True, Reason.READY, f"{context.name} serves, verified and measured"),
            Verdict("Reconciling", False, Reason.READY, "nothing is left to do"),
            clear,
        ]
    if rollout is None:
        first = next(verdict for verdict in stages if not verdict.status)
    else:
        flip = Verdict("Available", False, Reason.ROLLING_OUT, "the Service is about to point to the new revision")
        first = rollout.blocking or flip
    ready = Verdict("Ready", False, first.reason, first.message)
    if progress.stalled:
        stopped = Verdict("Reconciling", False, first.reason, "nothing more is tried until something changes")
        return [ready, stopped, Verdict("Stalled", True, first.reason, first.message)]
    if first.reason is Reason.SUSPENDED:
        return [ready, Verdict("Reconciling", False, first.reason, first.message), clear]
    return [ready, Verdict("Reconciling", True, Reason.PROGRESSING, first.message), clear]


def _signature(signature: Signature) -> SignatureStatus:
    return SignatureStatus(
        inputs=[
            TensorStatus(name=each.name, data_type=each.data_type, dims=list(each.dims)) for each in signature.inputs
        ],
        outputs=[
            TensorStatus(name=each.name, data_type=each.data_type, dims=list(each.dims)) for each in signature.outputs
        ],
        max_batch_size=signature.max_batch_size,
    )


def _candidate(attempt: Attempt, ranking: Sequence[Choice]) -> CandidateStatus:
    choice = next((each for each in ranking if each.name == attempt.name), None)
    candidate, profile = attempt.candidate, attempt.profile
    message = attempt.message
    if len(message) > MESSAGE_CHARACTERS:
        message = f"{message[:80]} ... {message[85 - MESSAGE_CHARACTERS :]}"
    return CandidateStatus(
        name=attempt.name,
        members=[f"{candidate.format}-{candidate.precision}-{candidate.accelerator}"],
        state=attempt.state,
        reason=str(attempt.reason or ""),
        message=message,
        key=attempt.key,
        max_absolute_error=f"{profile.max_absolute_error:.3g}" if profile else "",
        metrics=[MetricValue(metric=each.metric, value=decimal(each.served)) for each in profile.accuracy]
        if profile
        else [],
        throughput=throughput(choice.row) if choice else "",
        p99_latency_microseconds=choice.row.p99 if choice else None,
        load=choice.load if choice else "",
        satisfies_constraints=choice.violation is None if choice else None,
        rank=choice.rank if choice else None,
        stable=choice.row.stable if choice else None,
    )


def _target(progress: Progress) -> TargetStatus | None:
    if progress.rollout is None or progress.rollout.serves:
        return None
    attempt = _chosen(progress)
    return TargetStatus(revision=attempt.key, candidate=attempt.name)


def _of_what_serves(
    context: Context, progress: Progress
) -> tuple[ServingStatus | None, list[AccuracyStatus], PerformanceStatus | None]:
    """Of the target once the Service points to it and it was measured; else as it was last written."""
    old, rollout = context.deployment.status, progress.rollout
    if rollout is None or not rollout.serves or rollout.record is None:
        return old.serving, old.accuracy, old.performance
    attempt, measured = _chosen(progress), rollout.record.outcome.result
    profile = attempt.profile
    assert isinstance(measured, MeasureResult)
    assert profile is not None
    best = best_row(measured.online, context.spec.selection.objectives, context.spec.selection.constraints)
    serving = ServingStatus(
        revision=attempt.key,
        candidate=attempt.name,
        format=attempt.candidate.format,
        precision=attempt.candidate.precision,
        throughput=throughput(best.row),
        p99_latency_microseconds=best.row.p99,
        accuracy=_headline(context, profile),
    )
    performance = PerformanceStatus(
        offline=[_row(context, attempt, row) for row in profile.offline],
        online=[_row(context, attempt, row) for row in measured.online],
        environment=_environment(context, rollout.server, profile, measured),
        measured_at=rollout.record.finished_at,
    )
    return serving, _accuracy(profile), performance


def _chosen(progress: Progress) -> Attempt:
    return next(attempt for attempt in progress.attempts if attempt.state == "Selected")


def _accuracy(profile: ProfileResult) -> list[AccuracyStatus]:
    return [
        AccuracyStatus(
            metric=each.metric,
            framework=decimal(each.framework),
            served=decimal(each.served),
            samples=profile.samples,
            threshold=each.threshold,
            passed=each.passed,
        )
        for each in profile.accuracy
    ]


def _headline(context: Context, profile: ProfileResult) -> str:
    """The first threshold's metric, or else the first metric."""
    thresholds = context.spec.accuracy.thresholds
    wanted = thresholds[0].metric if thresholds else None
    values = [each for each in profile.accuracy if each.metric == wanted] or list(profile.accuracy)
    return decimal(values[0].served) if values else ""


def _row(context: Context, attempt: Attempt, row: Row) -> RowStatus:
    shapes = (f"{each.input}:{'x'.join(map(str, each.dims))}" for each in context.spec.performance.input_shapes)
    return RowStatus(
        precision=attempt.candidate.precision,
        accelerator=attempt.candidate.accelerator,
        input_shape=" ".join(shapes),
        **{**vars(row), "throughput": throughput(row)},
    )


def _environment(context: Context, server: str, profile: ProfileResult, measured: MeasureResult) -> EnvironmentStatus:
    where, view = measured.environment, context.observed.servers.get(server)
    old = context.deployment.status.performance
    recorded = old.environment.image_digest if old and old.environment else ""
    return EnvironmentStatus(
        device=where.device,
        gpu_product=where.gpu_product,
        tensorrt_version=where.tensorrt_version,
        server_version=where.server_version,
        image=context.images.server,
        image_digest=(view.image_id if view else "") or recorded,
        cpu=where.cpu,
        perf_analyzer=[*profile.environment.perf_analyzer[:1], *where.perf_analyzer[:1]],
    )


def throughput(row: Row) -> str:
    """Inferences per second as a decimal string; the slowest source document's row is 3.3."""
    return f"{row.throughput:.1f}"


def decimal(value: float) -> str:
    """A metric with six significant digits."""
    return f"{value:.6g}"
