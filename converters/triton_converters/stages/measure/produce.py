"""Measure the server of the target revision, and leave the figures to be published."""

from pathlib import Path

from triton_converters.claim_store.replay import read_reference
from triton_converters.contract import layout
from triton_converters.contract.measurement_requests import MeasureRequest
from triton_converters.contract.results import MeasureResult
from triton_converters.gates.signature import check_signature
from triton_converters.incoming import documents, measured
from triton_converters.measuring import load_input
from triton_converters.measuring.bench import Bench
from triton_converters.measuring.environment import observe
from triton_converters.measuring.server import Server
from triton_converters.measuring.step_times import step_times


def run(request: MeasureRequest, missing: tuple[str, ...], incoming: Path) -> None:
    """Write the sweep.

    Raises StageError: InputMissing (no reference), SignatureMismatch (another model answers at that address),
    InvalidSpec (input shapes), ServerCrashed, ServerUnreachable, InferenceFailed, MeasurementFailed; OSError if the
    node's disk is full.
    """
    directory = incoming / measured.FOLDER
    directory.mkdir(exist_ok=True)
    documents.write(incoming, documents.RESULT, _measure(request, directory))


def _measure(request: MeasureRequest, directory: Path) -> MeasureResult:
    home = layout.reference_directory(request.reference)
    signature = read_reference(request.reference).signature
    server = Server(request.load, request.model_name)
    server.wait_ready()
    check_signature(server.signature(), signature, request.max_batch_size)
    online = Bench(server, request.load, signature, home, directory).sweep("online", request.online)
    mix = load_input.describe(home, request.load.input_shapes, signature, request.online)
    environment = observe(server, (online.command,) if online.command else ())
    return MeasureResult(online.rows, environment, mix, step_times(directory, online.rows))
