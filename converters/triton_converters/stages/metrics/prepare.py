"""Look for the reference and for what the profiles kept."""

from pathlib import Path

from triton_converters.claim_store.replay import check_metrics_inputs
from triton_converters.contract.measurement_requests import MetricsRequest


def run(request: MetricsRequest, incoming: Path) -> tuple[str, ...]:
    """Return the key, which is missing; raises StageError(InputMissing) if an input is not on the claim."""
    check_metrics_inputs(request)
    return (request.key,)
