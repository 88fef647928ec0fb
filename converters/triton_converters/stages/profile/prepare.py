"""Look for the reference."""

from pathlib import Path

from triton_converters.claim_store.replay import read_reference
from triton_converters.contract.measurement_requests import ProfileRequest


def run(request: ProfileRequest, incoming: Path) -> tuple[str, ...]:
    """Return the key, which is missing; raises StageError(InputMissing) if the reference is not on the claim."""
    read_reference(request.reference)
    return (request.key,)
