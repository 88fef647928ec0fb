"""Inputs to trace with, made of real samples so that no dimension looks special. Pure."""

from collections.abc import Iterable

import numpy

from triton_converters.claim_store.dump import Arrays, Batch
from triton_converters.contract.results import Signature

_BATCH_SIZES = (3, 5, 7, 2)
"""Sizes to trace with, the preferred ones first: no tensor's other dimension is likely to be one of them by chance."""


def example_inputs(batches: Iterable[Batch], signature: Signature, at_least_two: bool = False) -> Arrays:
    """Return inputs by name, from a batch whose varying dimensions are all larger than 1 if there is one.

    Exporters take a dimension of 1 for a constant, and two dimensions of the same size for the same one; so the batch
    is 3, 5, 7 or 2 samples, a size no other dimension has, as far as max_batch_size permits. ``at_least_two``: use
    two even if max_batch_size is 1, for an exporter that would fix a size of 1.
    """
    first: Batch | None = None
    for batch in batches:
        first = first or batch
        if _is_general(batch, signature):
            first = batch
            break
    assert first is not None
    if signature.max_batch_size == 0:
        return first.inputs
    limit = max(signature.max_batch_size, 2 if at_least_two else 1)
    taken = {size for array in first.inputs.values() for size in array.shape[1:]}
    allowed = [size for size in _BATCH_SIZES if size <= limit] or [1]
    size = next((size for size in allowed if size not in taken), allowed[0])
    rows = numpy.arange(size) % len(first.ids)
    return {name: array[rows] for name, array in first.inputs.items()}


def _is_general(batch: Batch, signature: Signature) -> bool:
    skipped = 1 if signature.max_batch_size else 0
    return all(
        size > 1
        for tensor in signature.inputs
        for dim, size in zip(tensor.dims, batch.inputs[tensor.name].shape[skipped:], strict=True)
        if dim == -1
    )
