"""Where ``produce`` leaves what ``publish`` judges, below INCOMING_MOUNT. Each folder has batches, as a reference has.

Beside the reference's own batches there are answers that must agree with them, and requests of other sizes.
"""

from collections.abc import Sequence
from itertools import islice

from triton_converters.claim_store.dump import Arrays, Batch
from triton_converters.contract.conversion_requests import ReferenceRequest

OWN = "."
AGAIN = "again"
"""The first batch, run a second time."""
SINGLES = "singles"
"""The first samples of the first batch, each run alone."""
JOINED = "joined"
"""The first two batches, if each is one sample, run as one batch."""
SINGLE_SAMPLES = 4
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
    alike = all(first.inputs[name].shape == second.inputs[name].shape for name in first.inputs)
    return request.model.max_batch_size > 1 and len(first.ids) == 1 and alike


def requests(passed: Sequence[Arrays]) -> list[Arrays]:
    """Return requests of one sample each; ``passed``: batches by the names of their tensors, [samples, ...]."""
    rows = (
        {name: array[index : index + 1] for name, array in inputs.items()}
        for inputs in passed
        for index in range(len(next(iter(inputs.values()))))
    )
    return list(islice(rows, SINGLE_SAMPLES))
