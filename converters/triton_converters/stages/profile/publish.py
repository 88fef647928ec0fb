"""Publish what was measured, and the outputs that a metrics Job needs."""

from pathlib import Path

from triton_converters.contract.measurement_requests import ProfileRequest
from triton_converters.contract.results import ProfileResult
from triton_converters.incoming import measured

STAGE = "profile"


def run(request: ProfileRequest, incoming: Path) -> ProfileResult:
    """Publish ``measurements/<key>/``; raises what ``measured.publish`` raises."""
    return measured.publish(STAGE, request.key, ProfileResult, incoming)
