"""Publish what was measured, and the outputs that a metrics Job needs."""

import re
from pathlib import Path

from triton_converters.claim_store import served_outputs
from triton_converters.claim_store.replay import read_reference
from triton_converters.contract.measurement_requests import ProfileRequest
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import ProfileResult, ReferenceResult
from triton_converters.gates.candidate import VERDICTS
from triton_converters.incoming import documents, measured, plausible
from triton_converters.incoming.files import unfit
from triton_converters.measuring.load_input import check_mix
from triton_converters.stages import outputs

STAGE = "profile"
_SEEN = re.compile("([0-9a-f]{32})?")


def run(request: ProfileRequest, incoming: Path) -> ProfileResult:
    """Publish ``measurements/<key>/``; raises what ``measured.publish`` raises, and InputMissing (no reference)."""
    reference = read_reference(request.reference)

    def judge(result: ProfileResult, directory: Path) -> None:
        _check(request, reference, result, incoming / documents.RESULT)
        if request.keep_outputs and result.passed:
            folder = f"{measured.FOLDER}/{served_outputs.FOLDER}"
            outputs.take(
                incoming, folder, reference.signature.outputs, reference.samples, directory / served_outputs.FOLDER
            )

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
