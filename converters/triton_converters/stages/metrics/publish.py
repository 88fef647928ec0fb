"""Publish the metrics that the user's code computed, as far as they fit into a termination message."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from triton_converters.claim_store.replay import publish_result, read_reference
from triton_converters.claim_store.served_outputs import file_name
from triton_converters.contract import layout
from triton_converters.contract.envelope import MessageTooLongError, Outcome
from triton_converters.contract.measurement_requests import KeptOutputs, MetricsRequest
from triton_converters.contract.quantization import calibration
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import CandidateMetrics, MetricsResult
from triton_converters.contract.stages import STAGES
from triton_converters.incoming import documents, files
from triton_converters.incoming.documents import AllComputed, Computed
from triton_converters.incoming.files import unfit
from triton_converters.stages import outputs
from triton_converters.stages.metrics import kept

STAGE = "metrics"


def run(request: MetricsRequest, incoming: Path) -> MetricsResult:
    """Publish ``measurements/<key>/``.

    Raises StageError: that with which the user's code ended; Crashed for what is not published.
    """
    documents.check_end(incoming, STAGE)
    found = documents.read(incoming, documents.METRICS, AllComputed)
    if len(found.candidates) != len(request.candidates):
        raise unfit(incoming / documents.METRICS, "it has another number of candidates")
    result = fit(request.key, collect(request, found), request.required)
    directory = layout.measurement_directory(request.key)

    def fill(target: Path) -> MetricsResult:
        _keep_outputs(request, incoming, target)
        return result

    return publish_result(directory, STAGE, request.key, MetricsResult, fill)


def _keep_outputs(request: MetricsRequest, incoming: Path, target: Path) -> None:
    """Write the outputs of the converted files anew. Raises StageError: Crashed for other ones, StorageFull."""
    folders = [f"{layout.CONVERTED}/{each.profile}" for each in request.candidates]
    left = [each for each in folders if files.exists(incoming, f"{each}/{file_name(0)}")]
    if not left:
        return
    reference = read_reference(request.reference)
    samples = reference.samples - len(calibration(reference.samples, request.calibration_samples))
    for folder in left:
        outputs.take(incoming, folder, reference.signature.outputs, samples, target / folder)


def collect(request: MetricsRequest, found: AllComputed) -> MetricsResult:
    """Return the metrics as a table: their names once, then the values of each set of outputs."""
    names = kept.names({*chain(found.framework.values, *(each.values for each in found.candidates))}, request.required)

    def values(computed: Mapping[str, Any]) -> tuple[float | None, ...]:
        return tuple(documents.number(computed.get(name), 17 if name in request.required else 7) for name in names)

    def candidate(asked: KeptOutputs, computed: Computed) -> CandidateMetrics:
        if computed.reason is None:
            converted = values(computed.converted) if computed.converted else ()
            return CandidateMetrics(asked.profile, values(computed.values), converted=converted)
        reason = computed.reason if computed.reason in STAGES[STAGE].run_reasons else Reason.CRASHED
        return CandidateMetrics(asked.profile, (), str(reason), kept.message(computed.message))

    candidates = tuple(map(candidate, request.candidates, found.candidates))
    return MetricsResult(names, values(found.framework.values), candidates)


def fit(key: str, result: MetricsResult, required: Sequence[str]) -> MetricsResult:
    """Drop metrics that are not required, the last first, until the result fits into a termination message."""
    free = [name for name in result.metrics if name not in required]
    while True:
        try:
            Outcome(STAGE, key, result).to_json()
        except MessageTooLongError:
            if not free:
                return result
            result = _without(result, result.metrics.index(free.pop()))
        else:
            return result


def _without(result: MetricsResult, index: int) -> MetricsResult:
    def cut(values: tuple[Any, ...]) -> tuple[Any, ...]:
        return values[:index] + values[index + 1 :]

    candidates = tuple(
        replace(each, values=cut(each.values), converted=cut(each.converted)) for each in result.candidates
    )
    return MetricsResult(cut(result.metrics), cut(result.framework), candidates)
