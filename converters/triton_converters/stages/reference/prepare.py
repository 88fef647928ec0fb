"""Look for what the reference is made of."""

from pathlib import Path

from triton_converters.claim_store.replay import check_inputs
from triton_converters.contract.conversion_requests import ReferenceRequest


def run(request: ReferenceRequest, incoming: Path) -> tuple[str, ...]:
    """Return the key, which is missing; raises StageError(ResultMissing) if the source is not on the claim."""
    check_inputs(request)
    return (request.key,)
