"""Requests of other sizes than the reference's own, for a model without a batch dimension.

Triton and perf_analyzer cannot batch for such a model: only the dataloader knows what a request of 256 samples looks
like. So it is asked for requests of each size that is measured.
"""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from triton_converters.claim_store.dump import SIZES, Batch, write_batch
from triton_converters.contract.request import ReferenceRequest
from triton_converters.load.framework import Framework
from triton_converters.measuring.perf_input import PerfInput, file_name
from triton_converters.user import dataloader

REQUESTS = 4
"""Number of different requests of a size, which perf_analyzer sends in turn."""


def record(model: Framework, request: ReferenceRequest, source: Path, directory: Path) -> Iterator[Batch]:
    """Run and write the first request of every other size, and perf_analyzer's input; yields the batches as written.

    Raises what the dataloader and the model raise.
    """
    for number, size in enumerate(sizes(request)):
        perf_input, first = PerfInput(batched=False), None
        for batch in islice(dataloader.batches(request, source, model.inputs, size), REQUESTS):
            first = first or batch
            perf_input.add(batch.inputs)
        assert first is not None
        answered = Batch(first.ids, first.inputs, first.labels, model(first.inputs))
        write_batch(directory / SIZES, number, answered)
        (directory / file_name(0, size)).write_text(perf_input.to_json(), encoding="utf-8")
        yield answered


def sizes(request: ReferenceRequest) -> tuple[int, ...]:
    """Return the measured sizes except the largest; if that is the only one, half of it: a model serves any size."""
    if request.model.max_batch_size:
        return ()
    largest = dataloader.largest_batch_size(request)
    others = tuple(sorted(set(request.batch_sizes) - {largest}))
    return others or ((largest // 2,) if largest > 1 else ())
