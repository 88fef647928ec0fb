"""Look for what the reference is made of."""

from pathlib import Path

from triton_converters.claim_store.replay import check_inputs, check_step_folders
from triton_converters.contract.conversion_requests import ReferenceRequest


def run(request: ReferenceRequest, incoming: Path) -> tuple[str, ...]:
    """Return the key, which is missing.

    Raises StageError: InputMissing if the source is not on the claim; EntrypointInvalid if it lacks the file of a step
    whose folder is mounted.
    """
    check_inputs(request)
    check_step_folders(request.source, [request.model])
    return (request.key,)
