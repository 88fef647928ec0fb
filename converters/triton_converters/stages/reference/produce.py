"""Run the framework over the dataloader or over generated inputs, and leave its answers to be judged."""

import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path

import numpy

from triton_converters.claim_store.dump import Array, Arrays, Batch, read_batches, write_batch
from triton_converters.claim_store.origins import ASKED
from triton_converters.claim_store.replay import published_source
from triton_converters.contract.conversion_requests import ReferenceRequest, Step
from triton_converters.contract.envelope import FEWER_TENSORS, MessageTooLongError, Outcome
from triton_converters.contract.failure import StageError
from triton_converters.contract.formats import SOURCE_FORMATS
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import ReferenceResult, Signature, Tensor
from triton_converters.gates.samples import cut
from triton_converters.incoming import documents
from triton_converters.incoming.documents import Dump, Leaves, Names
from triton_converters.load import framework, gpu, hub_files
from triton_converters.load.called import KeptRequest
from triton_converters.load.ensemble import Ensemble, Passage
from triton_converters.load.framework import Framework
from triton_converters.load.graph_inputs import DeclaresInputs, KnowsRows
from triton_converters.load.mixing import KnowsMixing
from triton_converters.load.randomness import KnowsRandomness
from triton_converters.load.triton_python import PythonStep
from triton_converters.model_config.data_types import NUMPY_BY_TRITON, alike
from triton_converters.stages.reference import evidence, generated, soundness
from triton_converters.stages.reference.progress import with_progress
from triton_converters.stages.reference.step_checks import check_step
from triton_converters.user import dataloader, rehearsal


def run(request: ReferenceRequest, missing: tuple[str, ...], incoming: Path) -> None:
    """Write every batch with its answers, and those that are compared with them.

    Raises StageError: CheckpointInvalid of a file, or EntrypointInvalid of code, whose tensors' names do not fit into a
    result; what the model's loader, ``dataloader.batches`` and ``generated.batches`` raise, FrameworkFailed,
    ReferenceNotFinite.
    """
    source = published_source(request.source)
    with hub_files.offered(source, [request.model]):
        started = time.monotonic()
        model = framework.load(source, request.model, request.model.format)
        _check_length(model, request)
        record(model, request, source, incoming)
        if isinstance(model, Ensemble):
            _record_members(model, request, incoming)
    members = tuple(map(_names, model.models)) if isinstance(model, Ensemble) else ()
    seconds = round(time.monotonic() - started, 3)
    leaves = Leaves(*found) if isinstance(model, KnowsRows) and (found := model.leaves) else None
    mixing = model.mixing if isinstance(model, KnowsMixing) else ""
    dump = Dump(_names(model), members, seconds, rehearsal.took_place(), gpu.device_name(), leaves, mixing)
    documents.write(incoming, documents.DUMP, dump)


def _names(model: Framework) -> Names:
    contradicted = model.contradicted if isinstance(model, PythonStep) else {}
    return Names(model.inputs, model.outputs, model.open_axes, contradicted)


def _check_length(model: Framework, request: ReferenceRequest) -> None:
    """End early with more names of tensors than a result can hold, at the shortest that it can be."""
    inputs, outputs = (tuple(Tensor(name, "FP32", ()) for name in side) for side in (model.inputs, model.outputs))
    try:
        Outcome("reference", request.key, ReferenceResult(Signature(inputs, outputs, 1), 1, 1, 0.0)).to_json()
    except MessageTooLongError as error:
        reason = (
            Reason.CHECKPOINT_INVALID if SOURCE_FORMATS[request.model.format].is_file else Reason.ENTRYPOINT_INVALID
        )
        has = f"{model.path} has {len(inputs)} inputs and {len(outputs)} outputs"
        raise StageError(reason, f"{has}, whose names do not fit into a Job's result: {FEWER_TENSORS}") from error


def record(model: Framework, request: ReferenceRequest, source: Path, incoming: Path) -> None:
    """Run and write every batch, what must agree with the first two, and requests of other sizes."""
    batched = request.model.max_batch_size > 0
    answered = with_progress(_answered(model, request, source, incoming), batched, request.max_samples)
    _record_evidence(model, request, answered, incoming)
    for _ in answered:
        pass
    _record_sizes(model, request, source, incoming)


def _answered(model: Framework, request: ReferenceRequest, source: Path, incoming: Path) -> Iterator[Batch]:
    """Yield every batch with its answers, once it is written."""
    batched = request.model.max_batch_size > 0
    start = 0
    given = (
        generated.batches(model, request)
        if request.dataloader is None
        else dataloader.batches(request, source, model.inputs, types=_types(model))
    )
    for number, batch in enumerate(given):
        samples = range(start, start + batch.samples(batched))
        start = samples.stop
        answered = replace(batch, outputs=_answer_to(model, batch, request, samples))
        # Only so that a broken model ends the Job early: the publisher judges.
        soundness.check_outputs(answered, batched, _halves(request))
        write_batch(incoming, number, answered)
        yield answered


def _record_evidence(model: Framework, request: ReferenceRequest, answered: Iterator[Batch], incoming: Path) -> None:
    """Take the first two batches, and write the answers that must agree with theirs."""
    batched = request.model.max_batch_size > 0
    first = next(answered)
    samples = range(first.samples(batched))
    again = _run(model, first.inputs, samples)
    _check_again(model, again, first)
    _write_answer(incoming / evidence.AGAIN, 0, again)
    for number in samples[: evidence.singles(request, first)]:
        _write_answer(incoming / evidence.SINGLES, number, _alone(model, first, number))
    second = next(answered, None)
    if second is not None and evidence.are_joined(request, first, second):
        ids = numpy.concatenate(alike(first.ids, second.ids))
        joined = Batch(ids, evidence.joined(first.inputs, second.inputs), {}, {})
        _write_answer(incoming / evidence.JOINED, 0, _answer(model, joined, batched, range(len(joined.ids))))


def _run(model: Framework, inputs: Arrays, samples: range) -> dict[str, Array]:
    """Return the outputs of the samples with these numbers, which an ensemble keeps with what its steps ask."""
    return model(inputs, samples) if isinstance(model, Ensemble) else model(inputs)


def _answer_to(model: Framework, batch: Batch, request: ReferenceRequest, samples: range) -> dict[str, Array]:
    """Return the outputs. Raises what ``generated.refused`` returns for inputs that no dataloader gave.

    A batch of another size than the one that was tried may also fail for its size.
    """
    batched = request.model.max_batch_size > 0
    try:
        return _answer(model, batch, batched, samples)
    except StageError as error:
        was_tried = not batched or len(batch.ids) == request.largest_batch_size
        is_refused = error.reason in (Reason.FRAMEWORK_FAILED, Reason.BATCHING_UNSUPPORTED) and was_tried
        if request.dataloader is not None or not is_refused:
            raise
        raise generated.refused(model, batch, error) from error


def _answer(model: Framework, batch: Batch, batched: bool, samples: range) -> dict[str, Array]:
    """Return the outputs; ``samples``: their numbers. Raises what ``_blamed`` finds, if it finds anything."""
    try:
        return _run(model, batch.inputs, samples)
    except StageError as error:
        found = _blamed(model, batch, batched, samples, error) if error.reason is Reason.FRAMEWORK_FAILED else None
        if found is None:
            raise
        raise found from error


def _blamed(model: Framework, batch: Batch, batched: bool, samples: range, error: StageError) -> StageError | None:
    """Return what a batch failed for: the first sample that fails alone or, if none does, the batch itself.

    None: no sample is to blame, because the very first one fails and so does all else that was tried. ``error``: how
    the batch ended; ``samples``: their numbers.
    """
    names = [sample.name for sample in cut([batch], batched)]
    if len(samples) == 1:
        return _of_sample(names[0], samples.start, error) if samples.start else None
    failures = ((index, _failure(model, batch, index)) for index in range(len(samples)))
    index, failure = next((pair for pair in failures if pair[1] is not None), (0, None))
    if failure is None:
        return soundness.no_batch(error, len(samples))
    if index or _failure(model, batch, len(samples) - 1) is None:
        return _of_sample(names[index], samples[index], failure)
    # The model may be broken by one of them.
    if not samples.start:
        return None
    span = f"{samples[0]} to {samples[-1]}"
    message = f"a sample of number {span} of the dataloader, counted from 0, fails, and then all do: {failure.message}"
    return StageError(failure.reason, message, final=failure.final)


def _of_sample(name: str, number: int, failure: StageError) -> StageError:
    """Return the failure of a sample with its name, and with its number if that is another one."""
    where = "" if name == str(number) else f" (number {number} of the dataloader, counted from 0)"
    return StageError(failure.reason, f"sample {name:.60}{where} fails: {failure.message}", final=failure.final)


def _failure(model: Framework, batch: Batch, index: int) -> StageError | None:
    """Return how a sample of a batch fails alone; None: it does not."""
    try:
        model(_row(batch, index))
    except StageError as error:
        return error
    return None


def _row(batch: Batch, index: int) -> Arrays:
    return {name: array[index : index + 1] for name, array in batch.inputs.items()}


def _check_again(model: Framework, again: Arrays, first: Batch) -> None:
    """End early with what only the model's own graph tells of randomness; the publisher judges again.

    Raises StageError(ReferenceNotReproducible).
    """
    try:
        soundness.check_reproducible(again, first)
    except StageError as error:
        random = model.random if isinstance(model, KnowsRandomness) else ()
        if not random:
            raise
        advice = "give 0 for an input that scales the noise, or export the model with the noise as an input"
        raise StageError(
            error.reason, f"{model.path} draws random numbers by {', '.join(random[:4])}: {advice} ({error.message})"
        ) from error


def _types(model: Framework) -> dict[str, str]:
    """Return the types of the inputs that are declared as one of ``dataloader.DECLARED``, by their names."""
    if isinstance(model, Ensemble):
        types = {each.name: NUMPY_BY_TRITON.get(each.data_type, "") for each in model.code.inputs}
    else:
        types = {each.name: each.type for each in (model.declared if isinstance(model, DeclaresInputs) else ())}
    return {name: kind for name, kind in types.items() if kind in dataloader.DECLARED}


def _halves(request: ReferenceRequest) -> bool:
    return SOURCE_FORMATS[request.model.format].halves


def _alone(model: Framework, batch: Batch, number: int) -> dict[str, Array]:
    """Return the outputs of one sample of the first batch."""
    try:
        return _run(model, _row(batch, number), range(number, number + 1))
    except StageError as error:
        message = f"a batch of {len(batch.ids)} works, but a batch of 1 fails: {error.message}"
        if error.reason is Reason.FRAMEWORK_FAILED:
            raise soundness.unbatched(message) from error
        raise StageError(error.reason, message) from error


def _write_answer(folder: Path, number: int, outputs: Arrays) -> None:
    write_batch(folder, number, Batch(numpy.arange(1), {}, {}, outputs))


def _record_sizes(model: Framework, request: ReferenceRequest, source: Path, incoming: Path) -> None:
    """Ask the dataloader for requests of every other size, for a model without a batch dimension.

    Triton and perf_analyzer cannot batch for such a model: only the dataloader knows what a request of 256 samples
    looks like.
    """
    for number, size in enumerate(request.other_batch_sizes):
        requests = dataloader.batches(request, source, model.inputs, size, _types(model))
        for index, batch in enumerate(islice(requests, evidence.SIZE_REQUESTS)):
            if index == 0:
                answered = replace(batch, outputs=model(batch.inputs))
                soundness.check_outputs(answered, False, _halves(request))
                write_batch(incoming / evidence.size_folder(number), 0, answered)
            else:
                write_batch(incoming / evidence.more_folder(number), index - 1, batch)


def _record_members(model: Ensemble, request: ReferenceRequest, incoming: Path) -> None:
    """Run some batches through an ensemble's models once more, and write what went through each of them.

    What Python steps asked other models was kept while the reference ran. Raises StageError(DataloaderInvalid) if no
    step asked one of them.
    """
    if request.model.max_batch_size:
        _ask_alone(model, incoming)
    asked = {name: tuple(called.kept) for name, called in model.called.items()}
    sizes = (read_batches(incoming / evidence.size_folder(each)) for each in range(len(request.other_batch_sizes)))
    given: list[list[Arrays]] = [[] for _ in model.members]
    for number, batch in enumerate(chain(islice(read_batches(incoming), evidence.MEMBER_BATCHES), *sizes)):
        for index, passage in enumerate(model.passages(batch.inputs)):
            dumped = Batch(_ids(batch, passage), passage.inputs, {}, passage.outputs)
            write_batch(incoming / evidence.member_folder(index), number, dumped)
            given[index].append(passage.inputs)
    for member, inputs in zip(model.members, given, strict=True):
        check_step(model, member, inputs)
    for index, step in enumerate(model.code.models):
        first = len(given[index]) if index < len(given) else 0
        requests = asked.get(step.model, ())
        if not first and not requests:
            message = f"no step asked model {step.model} anything, so nothing shows how to convert it"
            advice = "let the dataloader yield samples for which a step asks it, or remove it from calls"
            raise StageError(Reason.DATALOADER_INVALID, f"{message}: {advice}")
        for number, each in enumerate(requests, start=first):
            batch = Batch(_rows(step, each.inputs), each.inputs, _origin(step, each), each.outputs)
            write_batch(incoming / evidence.member_folder(index), number, batch)


def _ask_alone(model: Ensemble, incoming: Path) -> None:
    """Run samples alone, of which a step asked another model together: INT8 needs to know whose rows calibrate."""
    unclear = {each.start for called in model.called.values() for each in called.unclear}
    if not unclear:
        return
    start, left = 0, evidence.ALONE_SAMPLES
    for batch in read_batches(incoming):
        for index in range(min(left, len(batch.ids))) if start in unclear else ():
            model(_row(batch, index), range(start + index, start + index + 1), alone=True)
            left -= 1
        start += len(batch.ids)


def _origin(step: Step, asked: KeptRequest) -> Arrays:
    """Return the label of a request that tells of which samples its rows may be."""
    rows = len(_rows(step, asked.inputs))
    samples = asked.samples
    each = samples if rows == len(samples) else [samples.start] * rows
    ends = [start + 1 for start in each] if rows == len(samples) else [samples.stop] * rows
    return {ASKED: numpy.array([each, ends], numpy.int64).T}


def _ids(batch: Batch, passage: Passage) -> Array:
    """Return one id for each row of the member's own batch, which may differ from the ensemble's."""
    if passage.member.step.code.max_batch_size == 0:
        return batch.ids
    return _rows(passage.member.step, passage.inputs)


def _rows(step: Step, inputs: Arrays) -> Array:
    """Return a number for each row of a batch; a single one without a batch dimension."""
    return numpy.arange(len(next(iter(inputs.values()))) if step.code.max_batch_size else 1)
