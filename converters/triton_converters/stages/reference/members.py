"""The references of an ensemble's models: what went through each model, with which it is then converted.

``references/<key>/members/<model>/`` has the form of ``references/<key>/``, without what only the ensemble has: labels
and perf_analyzer's input.
"""

from pathlib import Path

from triton_converters.claim_store import embedding_tables
from triton_converters.claim_store.dump import write_batch
from triton_converters.claim_store.replay import write_result
from triton_converters.contract.conversion_requests import MOST_ASKED, EnsembleCode, ReferenceRequest, Step
from triton_converters.contract.failure import StageError
from triton_converters.contract.formats import HPS, TRITON_PYTHON
from triton_converters.contract.layout import member_key
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import ReferenceResult, Signature
from triton_converters.gates.signature import fits
from triton_converters.incoming import arrays, documents
from triton_converters.incoming.documents import Names
from triton_converters.incoming.files import unfit
from triton_converters.stages.reference import evidence
from triton_converters.stages.reference.observed_signature import (
    Observed,
    ObservedTensors,
    as_answered,
    observed_signature,
)


def record(
    request: ReferenceRequest, members: tuple[Names, ...], served: Signature, incoming: Path, directory: Path
) -> tuple[str, ...]:
    """Write each member's own reference; ``members``: their names, in the order of ``code.models``.

    ``served``: the ensemble's signature. Returns a notice for each output of a Python step that is served otherwise
    than declared, unless an output of the ensemble is, and tells of it. Raises StageError: FrameworkFailed if a tensor
    changes type or rank, Crashed for what is not published.
    """
    assert request.model.ensemble is not None
    models = request.model.ensemble.models
    if len(members) != len(models):
        raise unfit(incoming / documents.DUMP, f"it names {len(members)} models, not {len(models)}")
    told = {each.name for each in {*served.outputs} - {*request.model.ensemble.outputs}}
    notices = []
    for number, (step, names) in enumerate(zip(models, members, strict=True)):
        said = {each.name: each for each in (step.code.declared.outputs if step.code.declared else ())}
        for each in _record(number, step, names, request, incoming, directory).outputs:
            if step.outputs.get(each.name) not in told and each.name in names.contradicted:
                # The batches that are kept here need not be those that showed it.
                dims = f"always {list(said[each.name].dims)}" if each.name in said else "as its file declares it"
                what = f"output {each.name} of model {step.model}"
                notices.append(f"{what} is not {dims}, so it is served as {list(each.dims)}")
    return tuple(notices)


def _record(
    number: int, step: Step, names: Names, request: ReferenceRequest, incoming: Path, directory: Path
) -> Signature:
    batched = step.code.max_batch_size > 0
    folder = evidence.member_folder(number)
    inputs, outputs = ({name: Observed(name, batched) for name in side} for side in (names.inputs, names.outputs))
    limit = evidence.MEMBER_BATCHES + len(request.other_batch_sizes) + MOST_ASKED
    count = 0
    for batch in arrays.read_batches(incoming, folder, names, directory, limit):
        for observed, arrays_of_side in ((inputs, batch.inputs), (outputs, batch.outputs)):
            for name, array in arrays_of_side.items():
                if batched and not array.ndim:
                    raise unfit(incoming / folder, f"{name} has no batch dimension")
                observed[name].add(array)
        write_batch(directory / "members" / step.model, count, batch)
        count += 1
    if not count:
        raise unfit(incoming / folder, "it holds no batch")
    try:
        signature = _signature(step, names, (inputs, outputs))
    except StageError as error:
        raise StageError(error.reason, f"model {step.model}: {error.message}", final=error.final) from error
    result = ReferenceResult(signature, count, count, 0.0)
    write_result(directory / "members" / step.model, "reference", member_key(request.key, step.model), result)
    return signature


def declared(code: EnsembleCode, found: Signature) -> tuple[Signature, tuple[str, ...]]:
    """Return the signature as the spec declares it, after checking that the observed tensors fit it.

    Of what Python steps answer, other sizes are taken, and a notice says so: Triton compares them with nothing. Raises
    StageError: DataloaderInvalid (an input), FrameworkFailed (an output).
    """
    steps = (step for step in code.steps if step.code.format == TRITON_PYTHON)
    answered = {tensor for step in steps for tensor in step.outputs.values()}
    outputs, notices = [], []
    for tensor, actual in zip(code.outputs, found.outputs, strict=True):
        served = tensor
        if tensor.name in answered and tensor.data_type == actual.data_type and not fits(tensor, actual):
            served = as_answered(tensor, actual)
            dims, found_dims, now = (list(each.dims) for each in (tensor, actual, served))
            notices.append(f"output {tensor.name} is declared as {dims}, but is {found_dims}, so it is served as {now}")
        outputs.append(served)
    for kind, reason, tensors, seen in (
        ("input", Reason.DATALOADER_INVALID, code.inputs, found.inputs),
        ("output", Reason.FRAMEWORK_FAILED, outputs, found.outputs),
    ):
        for tensor, actual in zip(tensors, seen, strict=True):
            if not fits(tensor, actual):
                was, said = (f"{each.data_type}{list(each.dims)}" for each in (actual, tensor))
                raise StageError(reason, f"{kind} {tensor.name} is {was}, but spec.ensemble.{kind}s declares {said}")
    return Signature(code.inputs, tuple(outputs), found.max_batch_size), tuple(notices)


def _signature(step: Step, names: Names, observed: tuple[ObservedTensors, ObservedTensors]) -> Signature:
    declared = step.code.declared
    if declared is not None and any(each.request_dims for each in (*declared.inputs, *declared.outputs)):
        message = f"config.pbtxt of {step.model} reshapes, which no model of an ensemble may: remove reshape"
        raise StageError(Reason.MODEL_CONFIG_REFUSED, message)
    if step.code.format == HPS:
        return embedding_tables.signature(step.code.max_batch_size)
    try:
        return observed_signature(names, observed, step.code.max_batch_size, declared)
    except ValueError as error:
        raise StageError(Reason.FRAMEWORK_FAILED, f"model {step.model}: {error} between batches") from error
