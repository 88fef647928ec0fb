"""The references of an ensemble's models: what went through each model, with which it is then converted.

``references/<key>/members/<model>/`` has the form of ``references/<key>/``, without what only the ensemble has: labels
and perf_analyzer's input.
"""

from itertools import chain, islice
from pathlib import Path

import numpy

from triton_converters.claim_store import embedding_tables
from triton_converters.claim_store.dump import Array, Batch, read_batches, read_sizes, write_batch
from triton_converters.claim_store.replay import write_result
from triton_converters.contract.failure import StageError
from triton_converters.contract.layout import member_key
from triton_converters.contract.reasons import Reason
from triton_converters.contract.request import EnsembleCode, Step
from triton_converters.contract.results import ReferenceResult, Signature, Tensor
from triton_converters.load.ensemble import Ensemble, Passage
from triton_converters.user.signature import Observed

BATCHES = 2
"""Batches taken from the ensemble's reference, besides requests of other sizes: enough to trace and to see what
varies."""


def record_members(model: Ensemble, directory: Path, key: str) -> None:
    """Run the batches in ``directory`` through the members once more, and write each member's own reference.

    ``key``: the key of the ensemble's reference. Raises what the members raise, and FrameworkFailed if a tensor changes
    type or rank.
    """
    observed: dict[str, dict[str, Observed]] = {}
    counts = 0
    for batch in chain(islice(read_batches(directory), BATCHES), read_sizes(directory)):
        for passage in model.passages(batch.inputs):
            step = passage.member.step
            tensors = observed.setdefault(step.model, _observers(passage))
            for name, array in {**passage.inputs, **passage.outputs}.items():
                tensors[name].add(array)
            dumped = Batch(_ids(batch, passage), passage.inputs, {}, passage.outputs)
            write_batch(directory / "members" / step.model, counts, dumped)
        counts += 1
    for member in model.members:
        own = member_key(key, member.step.model)
        signature = _signature(member.step, member.model.inputs, member.model.outputs, observed[member.step.model])
        result = ReferenceResult(signature, counts, counts, 0.0)
        write_result(directory / "members" / member.step.model, "reference", own, result)


def declared(code: EnsembleCode, found: Signature) -> Signature:
    """Return the signature as the spec declares it, after checking that the observed tensors fit it.

    Raises StageError: DataloaderInvalid (an input), FrameworkFailed (an output).
    """
    for kind, reason, tensors, seen in (
        ("input", Reason.DATALOADER_INVALID, code.inputs, found.inputs),
        ("output", Reason.FRAMEWORK_FAILED, code.outputs, found.outputs),
    ):
        for tensor, actual in zip(tensors, seen, strict=True):
            if not _fits(tensor, actual):
                was, said = (f"{each.data_type}{list(each.dims)}" for each in (actual, tensor))
                raise StageError(reason, f"{kind} {tensor.name} is {was}, but spec.ensemble.{kind}s declares {said}")
    return Signature(code.inputs, code.outputs, found.max_batch_size)


def _fits(tensor: Tensor, actual: Tensor) -> bool:
    return (tensor.data_type, len(tensor.dims)) == (actual.data_type, len(actual.dims)) and all(
        wanted in (-1, size) for wanted, size in zip(tensor.dims, actual.dims, strict=True)
    )


def _observers(passage: Passage) -> dict[str, Observed]:
    batched = passage.member.step.code.max_batch_size > 0
    return {name: Observed(name, batched) for name in (*passage.inputs, *passage.outputs)}


def _ids(batch: Batch, passage: Passage) -> Array:
    """Return one id for each row of the member's own batch, which may differ from the ensemble's."""
    if passage.member.step.code.max_batch_size == 0:
        return batch.ids
    rows = len(next(iter(passage.inputs.values())))
    return numpy.arange(rows)


def _signature(
    step: Step, inputs: tuple[str, ...], outputs: tuple[str, ...], observed: dict[str, Observed]
) -> Signature:
    if step.code.format == "hps":
        return embedding_tables.signature(step.code.max_batch_size)
    try:
        tensors = {name: each.tensor() for name, each in observed.items()}
    except ValueError as error:
        raise StageError(Reason.FRAMEWORK_FAILED, f"model {step.model}: {error} between batches") from error
    return Signature(
        tuple(tensors[name] for name in inputs), tuple(tensors[name] for name in outputs), step.code.max_batch_size
    )
