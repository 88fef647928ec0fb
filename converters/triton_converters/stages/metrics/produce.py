"""Run the user's MetricsCalculator on every set of outputs."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

from triton_converters.claim_store.dump import Arrays, Batch, read_batches, select
from triton_converters.claim_store.replay import published_source, read_reference
from triton_converters.claim_store.served_outputs import read_outputs
from triton_converters.contract import layout
from triton_converters.contract.failure import StageError
from triton_converters.contract.measurement_requests import KeptOutputs, MetricsRequest
from triton_converters.contract.quantization import calibration
from triton_converters.contract.reasons import Reason
from triton_converters.incoming import documents
from triton_converters.incoming.documents import AllComputed, Computed
from triton_converters.user import metrics
from triton_converters.user.metrics import DataSet

FRAMEWORK_PRECISION = "fp32"


def run(request: MetricsRequest, missing: tuple[str, ...], incoming: Path) -> None:
    """Write all metrics. What fails for one candidate is that candidate's own.

    Raises StageError: MetricFailed (the framework's), and what ``user_code.call`` raises.
    """
    batches = list(_judged_batches(request))
    framework = _calculate(request, batches, None)
    candidates = tuple(_judged(request, batches, each) for each in request.candidates)
    documents.write(incoming, documents.METRICS, AllComputed(framework, candidates))


def _left_out(request: MetricsRequest) -> frozenset[int]:
    """Return the numbers of the samples by which a candidate was calibrated: it has seen them."""
    return calibration(read_reference(request.reference).samples, request.calibration_samples)


def _judged_batches(request: MetricsRequest) -> Iterator[Batch]:
    left_out, batched = _left_out(request), request.max_batch_size > 0
    batches = read_batches(layout.reference_directory(request.reference))
    return select(batches, batched, lambda number: number not in left_out)


def _served(request: MetricsRequest, directory: Path) -> list[Arrays]:
    left_out = _left_out(request)
    return [outputs for number, outputs in enumerate(read_outputs(directory)) if number not in left_out]


def _judged(request: MetricsRequest, batches: Sequence[Batch], candidate: KeptOutputs) -> Computed:
    try:
        return _calculate(request, batches, candidate)
    except StageError as error:
        return Computed({}, error.message, error.reason)


def _data(request: MetricsRequest, batches: Sequence[Batch], candidate: KeptOutputs | None) -> DataSet:
    """Return one set of outputs. Raises StageError(MetricFailed) for one that an earlier version kept unread."""
    batched = request.max_batch_size > 0
    if candidate is None:
        return metrics.gather(batches, batched)
    directory = layout.measurement_directory(candidate.profile)
    try:
        return metrics.gather(batches, batched, _served(request, directory))
    except Exception as error:
        message = f"its kept outputs are broken: {type(error).__name__}: {error}; see {directory}"
        raise StageError(Reason.METRIC_FAILED, message) from error


def _calculate(request: MetricsRequest, batches: Sequence[Batch], candidate: KeptOutputs | None) -> Computed:
    """Return the metrics of one set of outputs; without a candidate, of the framework's."""
    arguments: dict[str, int | str] = {
        "precision": candidate.precision if candidate else FRAMEWORK_PRECISION,
        "output_format": candidate.format if candidate else request.model_format,
        "batch_size": max(1, request.max_batch_size),
    }
    data = _data(request, batches, candidate)
    values = metrics.calculate(published_source(request.source), request.metrics, arguments, data)
    return Computed({name: value if math.isfinite(value) else None for name, value in values.items()})
