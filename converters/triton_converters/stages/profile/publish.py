"""Publish what was measured, and the outputs that a metrics Job needs."""

import re
from collections.abc import Mapping
from pathlib import Path

from triton_converters.claim_store import served_outputs
from triton_converters.claim_store.dump import Array
from triton_converters.claim_store.replay import read_reference
from triton_converters.contract.measurement_requests import ProfileRequest
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import ProfileResult, ReferenceResult, Tensor
from triton_converters.gates.candidate import VERDICTS
from triton_converters.gates.signature import fits
from triton_converters.incoming import arrays, documents, measured, plausible
from triton_converters.incoming.files import unfit
from triton_converters.measuring.load_input import check_mix
from triton_converters.model_config.data_types import triton_type

STAGE = "profile"
_SEEN = re.compile("([0-9a-f]{32})?")


def run(request: ProfileRequest, incoming: Path) -> ProfileResult:
    """Publish ``measurements/<key>/``; raises what ``measured.publish`` raises, and InputMissing (no reference)."""
    reference = read_reference(request.reference)

    def judge(result: ProfileResult, directory: Path) -> None:
        _check(request, reference, result, incoming / documents.RESULT)
        if request.keep_outputs and result.passed:
            _keep_outputs(reference, incoming, directory)

    return measured.publish(STAGE, request.key, ProfileResult, incoming, judge)


def _check(request: ProfileRequest, reference: ReferenceResult, result: ProfileResult, what: Path) -> None:
    """Raise StageError(Crashed) if the verdict contradicts itself, or the rows are not those that were asked for."""
    if result.reason not in (VERDICTS, {Reason.PASSED})[result.passed]:
        raise unfit(what, f"it says {result.reason[:100]!r}, which is no verdict of a gate")
    fewest = reference.samples if result.passed else 0
    if not fewest <= result.samples <= reference.samples or result.max_absolute_error < 0:
        raise unfit(what, f"it tells of {result.samples} samples, and the reference has {reference.samples}")
    if not _SEEN.fullmatch(result.stat_digest):
        raise unfit(what, "it tells of attributes that are no digest")
    plausible.check_environment(result.environment, what)
    if result.passed:
        plausible.check_sweep(result.offline, request.offline, what)
        plausible.check_sweep(result.online, request.online, what)
        plausible.check_rates(result.request_rate, request.open_loop, request.online, result.online, what)
        check_mix(result.mix, request.reference, request.load, request.online, what)
    elif result.offline or result.online or result.request_rate or result.mix:
        raise unfit(what, "it has measurements of a candidate that failed")


def _keep_outputs(reference: ReferenceResult, incoming: Path, directory: Path) -> None:
    """Write the outputs of every sample anew. Raises StageError: Crashed for other ones, StorageFull."""
    (directory / served_outputs.FOLDER).mkdir()
    tensors = reference.signature.outputs
    for number, start in enumerate(range(0, reference.samples, served_outputs.CHUNK)):
        count = min(served_outputs.CHUNK, reference.samples - start)
        name = f"{measured.FOLDER}/{served_outputs.file_name(number)}"
        # Strings that are no text are two arrays of the file.
        found = arrays.read_arrays(incoming, name, directory, 2 * count * len(tensors))
        wanted = {f"{index}/{tensor.name}": tensor for index in range(count) for tensor in tensors}
        if found.keys() != wanted.keys() or not all(_fits(wanted[each], array) for each, array in found.items()):
            raise unfit(incoming / name, f"it does not hold the outputs of {count} samples")
        samples: list[Mapping[str, Array]] = [
            {tensor.name: found[f"{index}/{tensor.name}"] for tensor in tensors} for index in range(count)
        ]
        served_outputs.write_chunk(directory, number, samples)


def _fits(tensor: Tensor, array: Array) -> bool:
    return fits(tensor, Tensor(tensor.name, triton_type(array.dtype) or "", array.shape))
