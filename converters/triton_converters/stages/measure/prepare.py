"""Look for the reference."""

from pathlib import Path

from triton_converters.claim_store.replay import read_result
from triton_converters.contract import layout
from triton_converters.contract.measurement_requests import MeasureRequest
from triton_converters.contract.results import ReferenceResult


def run(request: MeasureRequest, incoming: Path) -> tuple[str, ...]:
    """Return the key, which is missing; raises StageError(ResultMissing) if the reference is not on the claim."""
    read_result(layout.reference_directory(request.reference), "reference", request.reference, ReferenceResult)
    return (request.key,)
