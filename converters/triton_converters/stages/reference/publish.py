"""Judge what the framework answered, and publish it as the reference."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from triton_converters.claim_store.dump import SIZES, Arrays, Batch, write_batch
from triton_converters.claim_store.replay import publish_result
from triton_converters.claim_store.samples import digest
from triton_converters.contract import layout
from triton_converters.contract.conversion_requests import ModelCode, ReferenceRequest
from triton_converters.contract.failure import StageError
from triton_converters.contract.formats import SOURCE_FORMATS
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import ReferenceResult, Signature
from triton_converters.contract.text import shortened
from triton_converters.incoming import arrays, documents
from triton_converters.incoming.documents import Dump, Names
from triton_converters.incoming.files import unfit
from triton_converters.measuring.perf_input import PerfInput, file_name
from triton_converters.model_config.data_types import is_served
from triton_converters.stages.reference import evidence, members, soundness
from triton_converters.stages.reference.observed_signature import Observed, observed_signature
from triton_converters.stages.reference.soundness import Variety

STAGE = "reference"
WARNING_BYTES = 160
"""Most of a warning that is kept, so that several fit into a termination message."""
MIXING_CHARACTERS = 48
"""Most of an operator and its node's name that is kept."""
MOST_OPENED = 4
"""The most outputs of Python steps of which it is told that they are served otherwise than declared."""


def run(request: ReferenceRequest, incoming: Path) -> ReferenceResult:
    """Publish ``references/<key>/``.

    Raises StageError: that with which the user's code ended, FrameworkFailed, ReferenceNotFinite,
    ReferenceNotReproducible, BatchingUnsupported, ReferenceConstant; Crashed and StorageFull for what is not published.
    """
    documents.check_end(incoming, STAGE)
    dump = documents.read(incoming, documents.DUMP, Dump)
    arrays.check_names(dump.names, incoming / documents.DUMP)
    for names in dump.members:
        arrays.check_names(names, incoming / documents.DUMP, may_share=True)

    def fill(directory: Path) -> ReferenceResult:
        mixing = documents.plain(dump.mixing, MIXING_CHARACTERS)
        try:
            signature, samples, batches, warnings = record(request, dump.names, incoming, directory)
        except StageError as error:
            if error.reason is not Reason.BATCHING_UNSUPPORTED or not mixing:
                raise
            raise StageError(error.reason, f"{soundness.mixes(mixing)}; {error.message}") from error
        if mixing and not request.model.max_batch_size:
            warnings += (shortened(f"no batching: {soundness.mixes(mixing)}", WARNING_BYTES),)
        if request.model.ensemble is not None:
            signature, opened = members.declared(request.model.ensemble, signature)
            opened += members.record(request, dump.members, signature, incoming, directory)
            warnings += tuple(shortened(each, WARNING_BYTES) for each in opened[:MOST_OPENED])
        if dump.leaves is not None:
            warnings += (f"the samples reach {dump.leaves.reached} of {dump.leaves.total} leaves of the trees",)
        seconds = documents.amount(dump.seconds)
        gpu = documents.plain(dump.gpu, documents.GPU_CHARACTERS)
        found = digest(directory)
        return ReferenceResult(signature, samples, batches, seconds, warnings, dump.rehearsed, gpu, found)

    return publish_result(layout.reference_directory(request.key), STAGE, request.key, ReferenceResult, fill)


def record(
    request: ReferenceRequest, names: Names, incoming: Path, directory: Path
) -> tuple[Signature, int, int, tuple[str, ...]]:
    """Judge every batch and write it anew; returns the signature, the numbers of samples and batches, and warnings.

    Raises StageError(Crashed) if the batches hold no samples, or more than were asked for.
    """
    batched = request.model.max_batch_size > 0
    halves = SOURCE_FORMATS[request.model.format].halves
    observed = {name: Observed(name, batched) for name in (*names.inputs, *names.outputs)}
    perf_input = _perf_input(request, batched)
    variety = Variety(batched)
    samples = 0
    batches = 0
    previous: Batch | None = None
    for batch in arrays.read_batches(incoming, evidence.OWN, names, directory, request.max_samples):
        _check_inputs(batch, batched, halves, incoming)
        soundness.check_outputs(batch, batched, halves)
        others = _check_others(request, names, previous, batch, incoming, directory) if batches < 2 else []
        _observe(observed, (batch.inputs, batch.outputs, *others))
        variety.add(batch)
        perf_input.add(batch.inputs)
        write_batch(directory, batches, batch)
        samples += batch.samples(batched)
        batches += 1
        previous = batch
    if not 0 < samples <= request.max_samples:
        raise unfit(incoming / "batches", f"it holds {samples} samples, not 1 to {request.max_samples}")
    for number in range(len(request.other_batch_sizes)):
        first = _record_size(request, number, names, incoming, directory)
        _observe(observed, (first.inputs, first.outputs))
    if request.dataloader is not None:
        variety.check()
    made = [observed[name] for name in names.inputs if request.dataloader is None]
    file = file_name(request.model.max_batch_size, request.largest_batch_size)
    (directory / file).write_text(perf_input.to_json(), encoding="utf-8")
    return _signature(names, observed, request.model), samples, batches, tuple(_warnings(made, variety))


def _warnings(generated: Sequence[Observed], variety: Variety) -> Iterator[str]:
    """Yield what ``generated`` inputs were like, and what the answers to the reference's do not prove."""
    if generated:
        # The narrowest integers first, so that no limit cuts them.
        in_turn = sorted(generated, key=lambda each: (not each.ends, each.ends[-1:]))
        made = ", ".join(each.described() for each in in_turn)
        yield shortened(f"inputs were generated: {made}", WARNING_BYTES)
    if nothing := variety.nothing:
        found = (
            "the model finds nothing in them" if generated else "the model finds nothing in the dataloader's samples"
        )
        advice = "so nothing is compared there; write a dataloader whose samples hold something"
        yield shortened(f"{found} ({', '.join(nothing)} empty), {advice}", WARNING_BYTES)
    complaint = variety.complaint()
    if complaint and not nothing:
        yield shortened(f"{complaint}: agreement proves nothing there", WARNING_BYTES)
    if infinite := variety.infinite:
        words = "hold infinities, which a candidate must have in the same places"
        yield shortened(f"the framework's answers in {', '.join(infinite)} {words}", WARNING_BYTES)


def _check_others(
    request: ReferenceRequest, names: Names, previous: Batch | None, batch: Batch, incoming: Path, directory: Path
) -> list[Arrays]:
    """Compare one of the first two batches with the answers that must agree with it.

    Returns those for other batch sizes: lengths may depend on the batch.
    """

    def answers(folder: str, count: int) -> list[Arrays]:
        found = arrays.read_batches(incoming, folder, Names((), names.outputs), directory, count)
        given = [answer.outputs for answer in found]
        if len(given) != count:
            raise unfit(incoming / folder, f"it holds {len(given)} answers, not {count}")
        return given

    if previous is None:
        soundness.check_reproducible(answers(evidence.AGAIN, 1)[0], batch)
        alone = answers(evidence.SINGLES, evidence.singles(request, batch))
        soundness.check_alone(alone, batch)
        return alone
    if not evidence.are_joined(request, previous, batch):
        return []
    joined = answers(evidence.JOINED, 1)
    soundness.check_joined(joined[0], previous, batch)
    return joined


def _perf_input(request: ReferenceRequest, batched: bool) -> PerfInput:
    declared = request.model.declared
    return PerfInput(batched, declared.inputs if declared else ())


def _record_size(request: ReferenceRequest, number: int, names: Names, incoming: Path, directory: Path) -> Batch:
    """Write the first request of another size, and perf_analyzer's input; returns the request."""
    size = request.other_batch_sizes[number]
    halves = SOURCE_FORMATS[request.model.format].halves
    perf_input = _perf_input(request, batched=False)
    own, more = evidence.size_folder(number), evidence.more_folder(number)
    first = next(arrays.read_batches(incoming, own, names, directory, 1), None)
    if first is None:
        raise unfit(incoming / own, "it holds no request")
    rest = arrays.read_batches(incoming, more, Names(names.inputs, ()), directory, evidence.SIZE_REQUESTS - 1)
    for each in (first, *rest):
        _check_inputs(each, False, halves, incoming)
        perf_input.add(each.inputs)
    soundness.check_outputs(first, False, halves)
    write_batch(directory / SIZES, number, first)
    (directory / file_name(0, size)).write_text(perf_input.to_json(), encoding="utf-8")
    return first


def _check_inputs(batch: Batch, batched: bool, halves: bool, incoming: Path) -> None:
    """Check what the dataloader's own checks have seen to, unless user code wrote the batch itself."""
    for name, array in batch.inputs.items():
        if not is_served(array.dtype, halves):
            raise unfit(incoming / "batches", f"input {name} is {array.dtype}, a type that no model input can have")
    sizes = {array.shape[:1] for group in (batch.inputs, batch.labels) for array in group.values()}
    if batched and (not len(batch.ids) or sizes != {(len(batch.ids),)}):
        raise unfit(incoming / "batches", "the sizes of a batch's arrays differ")


def _observe(observed: dict[str, Observed], groups: Iterable[Arrays]) -> None:
    for arrays_by_name in groups:
        for name, array in arrays_by_name.items():
            observed[name].add(array)


def _signature(names: Names, observed: dict[str, Observed], model: ModelCode) -> Signature:
    try:
        return observed_signature(names, (observed, observed), model.max_batch_size, model.declared)
    except ValueError as error:
        message = f"{error} between batches, but one signature is served"
        raise StageError(Reason.FRAMEWORK_FAILED, message) from error
