"""Stage ``measure``: sweep the target revision's server online, through its preview Service."""

from pathlib import Path

from triton_converters.claim_store.replay import publish_result, read_result
from triton_converters.contract import layout
from triton_converters.contract.measurement_requests import MeasureRequest
from triton_converters.contract.results import MeasureResult, ReferenceResult
from triton_converters.gates.verify import check_signature
from triton_converters.measuring.bench import Bench
from triton_converters.measuring.environment import observe
from triton_converters.measuring.server import Server

STAGE = "measure"


def run(request: MeasureRequest) -> MeasureResult:
    """Publish ``measurements/<key>/``.

    Raises StageError: ResultMissing (no reference), SignatureMismatch (another model answers at that address),
    InvalidSpec (input shapes), ServerCrashed, ServerUnreachable, InferenceFailed, MeasurementFailed; OSError if the
    claim is full.
    """
    target = layout.measurement_directory(request.key)
    return publish_result(target, STAGE, request.key, MeasureResult, lambda directory: _measure(request, directory))


def _measure(request: MeasureRequest, directory: Path) -> MeasureResult:
    home = layout.reference_directory(request.reference)
    signature = read_result(home, "reference", request.reference, ReferenceResult).signature
    server = Server(request.load, request.model_name)
    server.wait_ready()
    check_signature(server.signature(), signature, request.max_batch_size)
    online = Bench(server, request.load, signature, home, directory).sweep("online", request.online)
    return MeasureResult(online.rows, observe(server, (online.command,) if online.command else ()))
