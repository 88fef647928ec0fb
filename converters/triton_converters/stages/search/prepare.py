"""Look for the reference, the profile, and the points that earlier parts of the search measured."""

from pathlib import Path

from triton_converters.claim_store.replay import read_reference, read_result
from triton_converters.contract import layout
from triton_converters.contract.measurement_requests import SearchRequest
from triton_converters.contract.results import ProfileResult
from triton_converters.search import journal


def run(request: SearchRequest, incoming: Path) -> tuple[str, ...]:
    """Return the key, which is missing, and leave the points in ``incoming``.

    Raises StageError(InputMissing) if the reference or the profile is not on the claim.
    """
    read_reference(request.reference)
    read_result(layout.measurement_directory(request.profile), "profile", request.profile, ProfileResult)
    journal.copy(layout.search_directory(request.search), incoming / journal.FOLDER)
    return (request.key,)
