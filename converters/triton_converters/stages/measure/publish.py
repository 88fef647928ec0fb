"""Publish what was measured."""

from pathlib import Path

from triton_converters.contract.measurement_requests import MeasureRequest
from triton_converters.contract.results import MeasureResult
from triton_converters.incoming import measured

STAGE = "measure"


def run(request: MeasureRequest, incoming: Path) -> MeasureResult:
    """Publish ``measurements/<key>/``; raises what ``measured.publish`` raises."""
    return measured.publish(STAGE, request.key, MeasureResult, incoming)
