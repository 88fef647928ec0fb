"""The Job that computes the metrics of candidates and of the framework."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from triton_converters.contract import layout
from triton_converters.contract.formats import has_runtime
from triton_converters.contract.measurement_requests import OUTSIDE_SECONDS, KeptOutputs, MetricsRequest
from triton_converters.contract.results import MetricsResult
from triton_operator import names
from triton_operator.candidates.attempt import Attempt
from triton_operator.context import Context
from triton_operator.jobs.reference import Dump, entrypoint, files_of_user_code, served_code, surroundings, user_volumes
from triton_operator.resources.work import UserCode, Work


def metrics_work(context: Context, dump: Dump, attempts: Sequence[Attempt]) -> Work[MetricsRequest, MetricsResult]:
    """Return the work of the Job that computes the metrics of all these candidates, and the framework's once."""
    required = sorted(each.metric for each in context.spec.accuracy.thresholds)
    request = metrics_request(context, dump, attempts, required)
    request = names.request_with_key("metrics", request, *surroundings(context))
    revisions = (each.revision for each in request.candidates if each.revision)
    return Work(
        stage="metrics",
        request=request,
        deadline_seconds=context.spec.conversion.active_deadline_seconds + OUTSIDE_SECONDS,
        shape=user_code(context, dump, request, map(layout.revision_directory, revisions)),
    )


def metrics_request(
    context: Context, dump: Dump, attempts: Sequence[Attempt], required: Sequence[str]
) -> MetricsRequest:
    """Return the request without its key. ``required``: names of the metrics that have to be computed."""
    spec = context.spec
    assert spec.metrics is not None
    return MetricsRequest(
        key="",
        **files_of_user_code(context, dump.source),
        reference=dump.key,
        model_format=served_code(spec).format,
        max_batch_size=spec.max_batch_size,
        metrics=entrypoint(spec, spec.metrics),
        # Two candidates that differ in their names alone have one profile.
        candidates=tuple(dict.fromkeys(_kept_outputs(context, each) for each in attempts)),
        required=tuple(required),
        calibration_samples=spec.calibration_samples,
        model_name=spec.served_name,
    )


def user_code(context: Context, dump: Dump, request: MetricsRequest, more: Iterable[Path]) -> UserCode:
    """Return the shape of a Job that computes metrics. ``more``: directories of the claim that it reads besides."""
    # A metric's arguments may name $(DATASET) and $(WEIGHTS) too.
    volumes, mounts = user_volumes(context, dump.source)
    inputs = (
        layout.source_directory(dump.source.digest),
        layout.reference_directory(dump.key),
        *(layout.kept_outputs(each.profile) for each in request.candidates),
        *more,
    )
    # Two earlier revisions may have one reference, and no pod mounts a directory twice.
    return UserCode(tuple(dict.fromkeys(inputs)), volumes, mounts, gpu=False, image_id=dump.image_id)


def _kept_outputs(context: Context, attempt: Attempt) -> KeptOutputs:
    candidate = attempt.candidate
    revision = "" if context.spec.ensemble or not has_runtime(candidate.format) else attempt.key
    return KeptOutputs(attempt.profile_key, candidate.format, candidate.precision, revision)
