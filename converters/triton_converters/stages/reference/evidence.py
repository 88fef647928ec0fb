"""Where ``produce`` leaves what ``publish`` judges, below INCOMING_MOUNT. Each folder has batches, as a reference has.

Beside the reference's own batches there are answers that must agree with them, and requests of other sizes.
"""

from collections.abc import Sequence
from itertools import islice, pairwise

import numpy

from triton_converters.claim_store.dump import Array, Arrays, Batch
from triton_converters.contract.conversion_requests import ReferenceRequest
from triton_converters.model_config.data_types import alike

OWN = "."
AGAIN = "again"
"""The first batch, run a second time."""
SINGLES = "singles"
"""The first samples of the first batch, each run alone."""
JOINED = "joined"
"""The first two batches, if each is one sample, run as one batch."""
SINGLE_SAMPLES = 4
UNEQUAL_ROWS = (1, 2, 1)
"""Rows of requests that a Python step gets at once. Of two alone, the second begins where the first ends, whatever a
step takes for the rows of each."""
SIZE_REQUESTS = 4
"""Number of different requests of a size, which perf_analyzer sends in turn."""
MEMBER_BATCHES = 2
"""Batches of an ensemble that run through its models once more, besides requests of other sizes: enough to trace and to
see what varies."""

ALONE_SAMPLES = 16
"""Samples of an ensemble that are run alone, so that it is known of which sample a request to another model is."""


def size_folder(number: int) -> str:
    """Return the folder of the first request of another size."""
    return f"sizes/{number}"


def more_folder(number: int) -> str:
    """Return the folder of the other requests of that size, which have no outputs."""
    return f"{size_folder(number)}/more"


def member_folder(number: int) -> str:
    """Return the folder of what went through one model of an ensemble."""
    return f"members/{number}"


def singles(request: ReferenceRequest, first: Batch) -> int:
    """Return how many samples of the first batch are run alone."""
    batched = request.model.max_batch_size > 0
    return min(SINGLE_SAMPLES, len(first.ids)) if batched and len(first.ids) > 1 else 0


def are_joined(request: ReferenceRequest, first: Batch, second: Batch) -> bool:
    """Whether the first two batches are single samples that fit into one batch."""
    return request.model.max_batch_size > 1 and len(first.ids) == 1 and _have_one_shape(first.inputs, second.inputs)


def joined(first: Arrays, second: Arrays) -> dict[str, Array]:
    """Return the inputs of both as one batch."""
    return {name: numpy.concatenate(alike(array, second[name])) for name, array in first.items()}


def _have_one_shape(first: Arrays, second: Arrays) -> bool:
    return all(array.shape == second[name].shape for name, array in first.items())


def requests(passed: Sequence[Arrays]) -> list[Arrays]:
    """Return requests of one sample each; ``passed``: batches by the names of their tensors, [samples, ...]."""
    rows = (
        {name: array[index : index + 1] for name, array in inputs.items()}
        for inputs in passed
        for index in range(len(next(iter(inputs.values()))))
    )
    return list(islice(rows, SINGLE_SAMPLES))


def unequal(singles: Sequence[Arrays], largest: int) -> list[Arrays]:
    """Return requests of UNEQUAL_ROWS, made of two neighbours of ``singles``, which are requests of one row each.

    None if no two have one shape, or if the ``largest`` batch has fewer rows than all of them.
    """
    fitting = (pair for pair in pairwise(singles) if sum(UNEQUAL_ROWS) <= largest and _have_one_shape(*pair))
    return next(([second, joined(first, second), first] for first, second in fitting), [])
