"""Look for what the reference is made of."""

from pathlib import Path

from triton_converters.claim_store.replay import published_source
from triton_converters.contract.request import ReferenceRequest


def run(request: ReferenceRequest, incoming: Path) -> tuple[str, ...]:
    """Return the key, which is missing; raises StageError(ResultMissing) if the source is not on the claim."""
    published_source(request.source)
    return (request.key,)
