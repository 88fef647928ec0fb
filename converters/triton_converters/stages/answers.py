"""The answers that metrics are computed of: kept by a profile, or given by a converted file outside Triton."""

import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from triton_converters.claim_store.dump import Batch, read_batches, select
from triton_converters.claim_store.replay import published_source, read_reference
from triton_converters.claim_store.served_outputs import read_outputs
from triton_converters.contract import layout
from triton_converters.contract.failure import StageError
from triton_converters.contract.measurement_requests import OUTSIDE_SECONDS, MetricsRequest
from triton_converters.contract.quantization import calibration
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import Signature
from triton_converters.convert import comparison
from triton_converters.user import metrics
from triton_converters.user.metrics import DataSet, Values


def judged_batches(request: MetricsRequest) -> tuple[list[Batch], frozenset[int]]:
    """Return the reference's batches without the samples that calibrate, and the numbers of these, from 0.

    A candidate was calibrated by those samples: it has seen them.
    """
    left_out = calibration(read_reference(request.reference).samples, request.calibration_samples)
    dumped = read_batches(layout.reference_directory(request.reference))
    return list(select(dumped, request.max_batch_size > 0, lambda number: number not in left_out)), left_out


def served(batches: Sequence[Batch], batched: bool, left_out: Collection[int], profile: str) -> DataSet:
    """Return the outputs that a profile kept. Raises StageError(MetricFailed) if they are broken.

    ``batches``: without the samples of ``left_out``, which are numbers of samples from 0.
    """
    directory = layout.kept_outputs(profile)
    try:
        found = [each for number, each in enumerate(read_outputs(directory)) if number not in left_out]
        return metrics.gather(batches, batched, found)
    except Exception as error:
        message = f"its kept outputs are broken: {type(error).__name__}: {error}; see {directory}"
        raise StageError(Reason.METRIC_FAILED, message) from error


def outside(
    batches: Iterable[Batch], format_name: str, signature: Signature, directory: Path, ends: float
) -> list[Batch]:
    """Return the batches with the outputs of the converted file in ``directory``, in its format's own runtime.

    ``signature``: the one that the file was converted for. ``ends``: when no other batch is answered, by the monotonic
    clock. Raises TimeoutError, and what the runtime raises.
    """
    answer = comparison.runtime(format_name, signature, directory)
    answered = []
    for batch in batches:
        if time.monotonic() > ends:
            message = f"no metrics, because all files together had {OUTSIDE_SECONDS} s"
            raise TimeoutError(message)
        answered.append(replace(batch, outputs=answer(batch.inputs)))
    return answered


def calculate(request: MetricsRequest, data: DataSet, precision: str, output_format: str) -> Values:
    """Return the user's metrics by name. Raises what ``metrics.calculate`` raises."""
    arguments: dict[str, int | str] = {
        "precision": precision,
        "output_format": output_format,
        "batch_size": max(1, request.max_batch_size),
    }
    return metrics.calculate(published_source(request.source), request.metrics, arguments, data)


def reason_of(error: Exception) -> str:
    """Return why an answer could not be had, or metrics of it, in words."""
    return error.message if isinstance(error, StageError) else f"{type(error).__name__}: {error}"
