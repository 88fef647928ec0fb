"""Judge what the pod's own server answers, measure it, and leave the figures to be published."""

from dataclasses import dataclass, replace
from pathlib import Path

from triton_converters.claim_store.dump import read_all, read_batches, read_sizes
from triton_converters.claim_store.replay import read_reference
from triton_converters.claim_store.repository import model_file
from triton_converters.claim_store.revision import check_content, stat_digest
from triton_converters.claim_store.served_outputs import write_outputs
from triton_converters.contract import layout
from triton_converters.contract.failure import StageError
from triton_converters.contract.measurement_requests import ProfileRequest, ServedModel
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import ProfileResult, ReferenceResult
from triton_converters.contract.text import shortened
from triton_converters.gates import verify
from triton_converters.gates.precision import check_precision
from triton_converters.gates.verify import Served
from triton_converters.incoming import documents, measured
from triton_converters.measuring import load_input
from triton_converters.measuring.bench import Bench
from triton_converters.measuring.environment import observe
from triton_converters.measuring.server import START_SECONDS, Server
from triton_converters.stages.profile import GATES

MESSAGE_BYTES = 700
"""Longest message of a gate: it shares the termination message with the sweeps and the environment."""


@dataclass
class Verdict:
    """The gates' findings, filled in one by one."""

    reason: Reason = Reason.PASSED
    message: str = ""
    served: Served | None = None


def run(request: ProfileRequest, missing: tuple[str, ...], incoming: Path) -> None:
    """Write the verdict and, for a candidate that passed, the sweeps.

    Raises StageError: ResultMissing (no reference), RepositoryDamaged, InvalidSpec (input shapes), ServerCrashed,
    ServerUnreachable, MeasurementFailed; OSError if the node's disk is full.
    """
    directory = incoming / measured.FOLDER
    directory.mkdir(exist_ok=True)
    documents.write(incoming, documents.RESULT, _profile(request, directory))


def _profile(request: ProfileRequest, directory: Path) -> ProfileResult:
    home = layout.reference_directory(request.reference)
    reference = read_reference(request.reference)
    load_input.check_shapes(request.load.input_shapes, reference.signature)
    # The attributes come first: what changes while the content is read differs from them later.
    seen = stat_digest(layout.revision_directory(request.revision))
    check_content(request.revision, request.content)
    server = Server(request.load, request.model_name)
    server.wait_ready(START_SECONDS)
    verdict = _judge(request, server, reference)
    print(f"gates: {verdict.reason}: {verdict.message}", flush=True)
    served = verdict.served
    result = ProfileResult(
        passed=verdict.reason is Reason.PASSED,
        reason=str(verdict.reason),
        message=shortened(verdict.message, MESSAGE_BYTES),
        max_absolute_error=served.max_absolute_error if served else 0.0,
        samples=served.samples if served else 0,
        offline=(),
        online=(),
        environment=observe(server, ()),
        seen=seen,
    )
    if result.passed and served:
        if request.keep_outputs:
            write_outputs(directory, served.outputs)
        result = _measure(request, Bench(server, request.load, reference.signature, home, directory), served, result)
    return result


def _judge(request: ProfileRequest, server: Server, reference: ReferenceResult) -> Verdict:
    """Run every gate in turn, the cheap ones first."""
    verdict, signature = Verdict(), replace(reference.signature, max_batch_size=request.max_batch_size)
    home = layout.reference_directory(request.reference)
    try:
        for model in request.members or (ServedModel(request.model_name, request.format, request.precision),):
            check_precision(model_file(request.revision, model.name, model.format), model.format, model.precision)
        verify.check_signature(server.signature(), signature, request.max_batch_size)
        tolerance, precision = request.tolerance, request.precision
        scales = verify.scales_of(read_all(home), signature.max_batch_size > 0, tolerance, precision)
        served = verdict.served = verify.serve(
            server.infer, read_batches(home), signature, tolerance, request.keep_outputs, scales=scales
        )
        if served.samples != reference.samples:
            message = f"{home} holds {served.samples} samples, but its result says {reference.samples}"
            raise StageError(
                Reason.RESULT_MISSING, f"{message}; delete the directory, and the operator makes it again", final=False
            )
        served.include(verify.serve(server.infer, read_sizes(home), signature, tolerance, scales=scales))
        verify.check(served, precision, tolerance)
        verdict.message = served.describe()
    except StageError as error:
        if error.reason not in GATES:
            raise
        verdict.reason, verdict.message = error.reason, error.message
    return verdict


def _measure(request: ProfileRequest, bench: Bench, served: Served, result: ProfileResult) -> ProfileResult:
    """Run the sweeps: static batches through shared memory, concurrent requests for the dynamic batcher, and rates."""
    largest = max(served.output_bytes.values())
    offline = bench.sweep("offline", request.offline, largest)
    online = bench.sweep("online", request.online, largest)
    rates = bench.at_rates(request.open_loop, request.online, online.rows)
    commands = tuple(each.command for each in (offline, online, rates) if each.command)
    environment = replace(result.environment, perf_analyzer=commands)
    return replace(result, offline=offline.rows, online=online.rows, request_rate=rates.rows, environment=environment)
