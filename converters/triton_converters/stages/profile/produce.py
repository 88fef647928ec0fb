"""Judge what the pod's own server answers, measure it, and leave the figures to be published."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from triton_converters.claim_store.dump import Batch, read_all, read_batches, read_sizes
from triton_converters.claim_store.replay import published_types, read_reference
from triton_converters.claim_store.revision import check_content, model_file, stat_digest
from triton_converters.claim_store.served_outputs import FOLDER, write_outputs
from triton_converters.contract import layout
from triton_converters.contract.failure import StageError
from triton_converters.contract.measurement_requests import ProfileRequest, ServedModel
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import ProfileResult, ReferenceResult
from triton_converters.contract.text import shortened
from triton_converters.gates import engines
from triton_converters.gates.answers import Answers, scales_of
from triton_converters.gates.candidate import ServedCandidate, judge
from triton_converters.incoming import documents, measured
from triton_converters.measuring import load_input
from triton_converters.measuring.bench import Bench
from triton_converters.measuring.budget import FEWEST_POINTS
from triton_converters.measuring.environment import observe
from triton_converters.measuring.server import Server
from triton_converters.measuring.sweep import points

MESSAGE_BYTES = 700
"""Longest message of a gate: it shares the termination message with the sweeps and the environment."""


def run(request: ProfileRequest, missing: tuple[str, ...], incoming: Path) -> None:
    """Write the verdict and, for a candidate that passed, the sweeps.

    Raises StageError: InputMissing (no reference), RepositoryDamaged, InvalidSpec (input shapes, shared memory),
    ServerCrashed, ServerUnreachable, MeasurementFailed; OSError if the node's disk is full.
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
    server = Server(request.load, request.model_name, [each.name for each in request.members])
    server.wait_ready()
    candidate = _candidate(request, server, reference)
    failed = judge(candidate)
    answers = candidate.answers
    message = failed.message if failed else answers.describe() if answers else ""
    reason = failed.reason if failed else Reason.PASSED
    print(f"gates: {reason}: {message}", flush=True)
    result = ProfileResult(
        passed=failed is None,
        reason=str(reason),
        message=shortened(message, MESSAGE_BYTES),
        max_absolute_error=answers.max_absolute_error if answers else 0.0,
        samples=answers.samples if answers else 0,
        offline=(),
        online=(),
        environment=observe(server, ()),
        stat_digest=seen,
    )
    if result.passed and answers:
        if request.keep_outputs:
            write_outputs(directory / FOLDER, answers.outputs)
        bench = Bench(server, request.load, reference.signature, home, directory, seconds=request.seconds)
        result = _measure(request, bench, answers, result)
    return result


def _candidate(request: ProfileRequest, server: Server, reference: ReferenceResult) -> ServedCandidate:
    """Try the candidate on the whole reference."""
    home = layout.reference_directory(request.reference)
    batched = request.max_batch_size > 0
    models = request.members or (ServedModel(request.model_name, request.format, request.precision),)
    return ServedCandidate(
        declared=server.signature,
        infer=server.infer,
        signature=replace(reference.signature, max_batch_size=request.max_batch_size),
        precision=request.precision,
        tolerance=request.tolerance,
        scales=lambda: scales_of(read_all(home), batched, request.tolerance, request.precision),
        batches=_complete(home, batched, reference.samples),
        sizes=read_sizes(home),
        files=((model_file(request.revision, model.name, model.format), model) for model in models),
        keep_outputs=request.keep_outputs,
        published_types=published_types(request.revision),
        engine_caches=engines.directories(layout.model_repository(request.revision)),
    )


def _complete(home: Path, batched: bool, samples: int) -> Iterator[Batch]:
    """Yield the reference's batches; raises StageError(ResultMissing) after the last if some are missing."""
    found = 0
    for batch in read_batches(home):
        yield batch
        found += batch.samples(batched)
    if found != samples:
        message = f"{home} holds {found} samples, but its result says {samples}"
        raise StageError(
            Reason.RESULT_MISSING, f"{message}; delete the directory, and the operator makes it again", final=False
        )


def _measure(request: ProfileRequest, bench: Bench, answers: Answers, result: ProfileResult) -> ProfileResult:
    """Run the sweeps: static batches, concurrent requests for the dynamic batcher, and rates."""
    largest = max(answers.output_bytes.values())
    is_batched = bench.signature.max_batch_size > 0
    concurrent = points("online", request.online, is_batched)
    later = concurrent[:FEWEST_POINTS] if request.seconds else concurrent
    offline = bench.sweep("offline", request.offline, largest, later)
    online = bench.sweep("online", request.online, largest)
    rates = bench.at_rates(request.open_loop, request.online, online.rows, largest)
    commands = tuple(each.command for each in (offline, online, rates) if each.command)
    environment = replace(result.environment, perf_analyzer=commands)
    return replace(
        result,
        offline=offline.rows,
        online=online.rows,
        request_rate=rates.rows,
        environment=environment,
        mix=load_input.describe(bench.reference, request.load.input_shapes, bench.signature, request.online),
    )
