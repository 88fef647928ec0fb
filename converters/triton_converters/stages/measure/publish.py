"""Publish what was measured."""

from pathlib import Path

from triton_converters.contract.measurement_requests import MeasureRequest
from triton_converters.contract.results import MeasureResult
from triton_converters.incoming import documents, measured, plausible
from triton_converters.measuring.load_input import check_mix

STAGE = "measure"


def run(request: MeasureRequest, incoming: Path) -> MeasureResult:
    """Publish ``measurements/<key>/``; raises what ``measured.publish`` raises."""

    def judge(result: MeasureResult, directory: Path) -> None:
        plausible.check_environment(result.environment, incoming / documents.RESULT)
        plausible.check_sweep(result.online, request.online, incoming / documents.RESULT)
        plausible.check_steps(result.steps, incoming / documents.RESULT)
        check_mix(result.mix, request.reference, request.load, request.online, incoming / documents.RESULT)

    return measured.publish(STAGE, request.key, MeasureResult, incoming, judge)
