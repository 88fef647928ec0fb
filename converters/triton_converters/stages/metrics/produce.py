"""Run the user's MetricsCalculator on every set of outputs."""

import math
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from triton_converters.claim_store.dump import Batch
from triton_converters.claim_store.replay import read_reference
from triton_converters.claim_store.revision import model_file
from triton_converters.claim_store.served_outputs import write_outputs
from triton_converters.contract import layout
from triton_converters.contract.failure import StageError
from triton_converters.contract.measurement_requests import OUTSIDE_SECONDS, KeptOutputs, MetricsRequest
from triton_converters.contract.results import Signature
from triton_converters.incoming import documents
from triton_converters.incoming.documents import AllComputed, Computed
from triton_converters.stages import answers, outputs
from triton_converters.stages.metrics import kept
from triton_converters.user import metrics
from triton_converters.user.metrics import DataSet

FRAMEWORK_PRECISION = "fp32"
KEPT_BYTES = 256 * 2**20
"""Most bytes of the converted files' outputs, in memory, that are kept: the claim has the served ones already, which
differ little."""


def run(request: MetricsRequest, missing: tuple[str, ...], incoming: Path) -> None:
    """Write all metrics. What fails for one candidate is that candidate's own.

    Raises StageError: MetricFailed (the framework's), and what ``user_code.call`` raises.
    """
    signature = read_reference(request.reference).signature
    batches, left_out = answers.judged_batches(request)
    framework = _calculate(request, batches, left_out, None)
    outside = _OutsideTriton(request, signature, batches, incoming)
    candidates = tuple(_judged(request, batches, left_out, each, outside) for each in request.candidates)
    documents.write(incoming, documents.METRICS, AllComputed(framework, candidates))


def _judged(
    request: MetricsRequest,
    batches: Sequence[Batch],
    left_out: Collection[int],
    candidate: KeptOutputs,
    outside: "_OutsideTriton",
) -> Computed:
    try:
        served = _calculate(request, batches, left_out, candidate)
    except StageError as error:
        return Computed({}, kept.message(error.message), error.reason)
    return replace(served, converted=outside.metrics(candidate))


class _OutsideTriton:
    """Runs the candidates' files in their formats' own runtimes, which tells a fault of a file from one of its server.

    It judges nothing, so that what fails here costs a figure and a line of the log.
    """

    def __init__(self, request: MetricsRequest, signature: Signature, batches: Sequence[Batch], incoming: Path) -> None:
        """``signature``: the reference's. ``batches``: those that metrics are computed of."""
        self._request = request
        self._signature = signature
        self._batches = batches
        self._incoming = incoming
        self._ends = time.monotonic() + OUTSIDE_SECONDS
        self._kept_bytes = 0

    def metrics(self, candidate: KeptOutputs) -> Mapping[str, float | None]:
        """Return the metrics of a candidate's file, and keep its outputs; none: it did not run."""
        if not candidate.revision:
            return {}
        file = model_file(candidate.revision, self._request.model_name, candidate.format)
        if not file.exists():
            return {}
        try:
            answered = answers.outside(self._batches, candidate.format, self._signature, file.parent, self._ends)
            data = metrics.gather(answered, self._request.max_batch_size > 0)
            values = _values(self._request, data, candidate)
            self._keep(answered, candidate)
        except Exception as error:
            print(f"{candidate.format} {candidate.precision}, outside Triton: {answers.reason_of(error)}", flush=True)
            return {}
        return values

    def _keep(self, answered: Sequence[Batch], candidate: KeptOutputs) -> None:
        """Write the outputs that are published: of a file that answers as the signature says, within KEPT_BYTES."""
        self._kept_bytes += sum(array.nbytes for batch in answered for array in batch.outputs.values())
        if self._kept_bytes > KEPT_BYTES:
            return
        batched = self._request.max_batch_size > 0
        samples = [
            {name: array[index] if batched else array for name, array in batch.outputs.items()}
            for batch in answered
            for index in range(batch.samples(batched))
        ]
        tensors = self._signature.outputs
        if all(outputs.fits(tensor, each[tensor.name]) for each in samples for tensor in tensors):
            write_outputs(self._incoming / layout.CONVERTED / candidate.profile, samples)


def _calculate(
    request: MetricsRequest, batches: Sequence[Batch], left_out: Collection[int], candidate: KeptOutputs | None
) -> Computed:
    """Return the metrics of one set of outputs; without a candidate, of the framework's."""
    batched = request.max_batch_size > 0
    if candidate is None:
        data = metrics.gather(batches, batched)
    else:
        data = answers.served(batches, batched, left_out, candidate.profile)
    return Computed(_values(request, data, candidate))


def _values(request: MetricsRequest, data: DataSet, candidate: KeptOutputs | None) -> Mapping[str, float | None]:
    """Return the metrics to keep by name; None: not finite."""
    kind = (candidate.precision, candidate.format) if candidate else (FRAMEWORK_PRECISION, request.model_format)
    values = answers.calculate(request, data, *kind)
    names = kept.names(values, request.required)
    if len(names) < len(values):
        said = f"{request.metrics.path}: {metrics.CLASS} returned {len(values)} metrics, of which {len(names)} are kept"
        print(said, flush=True)
    return {name: values[name] if math.isfinite(values[name]) else None for name in names}
