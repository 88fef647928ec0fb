"""Look for the reference and for what the profiles kept."""

from pathlib import Path

from triton_converters.claim_store.replay import check_inputs, read_reference, read_result
from triton_converters.contract import layout
from triton_converters.contract.failure import StageError
from triton_converters.contract.measurement_requests import MetricsRequest
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import ProfileResult


def run(request: MetricsRequest, incoming: Path) -> tuple[str, ...]:
    """Return the key, which is missing; raises StageError(InputMissing) if an input is not on the claim."""
    check_inputs(request)
    read_reference(request.reference)
    for each in request.candidates:
        directory = layout.measurement_directory(each.profile)
        read_result(directory, "profile", each.profile, ProfileResult)
        if not layout.kept_outputs(each.profile).is_dir():
            message = f"{directory} on the repository claim holds no served outputs"
            raise StageError(Reason.INPUT_MISSING, message, final=False)
    return (request.key,)
