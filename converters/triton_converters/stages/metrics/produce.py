"""Run the user's MetricsCalculator on every set of outputs."""

import math
from collections.abc import Collection, Sequence
from pathlib import Path

from triton_converters.claim_store.dump import Batch, read_batches, select
from triton_converters.claim_store.replay import published_source, read_reference
from triton_converters.claim_store.served_outputs import read_outputs
from triton_converters.contract import layout
from triton_converters.contract.failure import StageError
from triton_converters.contract.measurement_requests import KeptOutputs, MetricsRequest
from triton_converters.contract.quantization import calibration
from triton_converters.contract.reasons import Reason
from triton_converters.incoming import documents
from triton_converters.incoming.documents import AllComputed, Computed
from triton_converters.stages.metrics import kept
from triton_converters.user import metrics
from triton_converters.user.metrics import DataSet

FRAMEWORK_PRECISION = "fp32"


def run(request: MetricsRequest, missing: tuple[str, ...], incoming: Path) -> None:
    """Write all metrics. What fails for one candidate is that candidate's own.

    Raises StageError: MetricFailed (the framework's), and what ``user_code.call`` raises.
    """
    # A candidate was calibrated by these samples: it has seen them.
    left_out = calibration(read_reference(request.reference).samples, request.calibration_samples)
    dumped = read_batches(layout.reference_directory(request.reference))
    batches = list(select(dumped, request.max_batch_size > 0, lambda number: number not in left_out))
    framework = _calculate(request, batches, left_out, None)
    candidates = tuple(_judged(request, batches, left_out, each) for each in request.candidates)
    documents.write(incoming, documents.METRICS, AllComputed(framework, candidates))


def _judged(
    request: MetricsRequest, batches: Sequence[Batch], left_out: Collection[int], candidate: KeptOutputs
) -> Computed:
    try:
        return _calculate(request, batches, left_out, candidate)
    except StageError as error:
        return Computed({}, kept.message(error.message), error.reason)


def _data(batches: Sequence[Batch], batched: bool, left_out: Collection[int], candidate: KeptOutputs | None) -> DataSet:
    """Return one set of outputs. Raises StageError(MetricFailed) for one that is broken.

    ``batches``: without the samples of ``left_out``, which are numbers of samples from 0.
    """
    if candidate is None:
        return metrics.gather(batches, batched)
    directory = layout.measurement_directory(candidate.profile)
    try:
        served = [each for number, each in enumerate(read_outputs(directory)) if number not in left_out]
        return metrics.gather(batches, batched, served)
    except Exception as error:
        message = f"its kept outputs are broken: {type(error).__name__}: {error}; see {directory}"
        raise StageError(Reason.METRIC_FAILED, message) from error


def _calculate(
    request: MetricsRequest, batches: Sequence[Batch], left_out: Collection[int], candidate: KeptOutputs | None
) -> Computed:
    """Return the metrics of one set of outputs; without a candidate, of the framework's."""
    arguments: dict[str, int | str] = {
        "precision": candidate.precision if candidate else FRAMEWORK_PRECISION,
        "output_format": candidate.format if candidate else request.model_format,
        "batch_size": max(1, request.max_batch_size),
    }
    data = _data(batches, request.max_batch_size > 0, left_out, candidate)
    values = metrics.calculate(published_source(request.source), request.metrics, arguments, data)
    names = kept.names(values, request.required)
    if len(names) < len(values):
        said = f"{request.metrics.path}: {metrics.CLASS} returned {len(values)} metrics, of which {len(names)} are kept"
        print(said, flush=True)
    return Computed({name: values[name] if math.isfinite(values[name]) else None for name in names})
