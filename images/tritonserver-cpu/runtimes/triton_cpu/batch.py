"""Requests joined along the batch dimension, and results split again. Pure: arrays in, arrays out."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Arrays = Mapping[str, Array]


class BatchError(Exception):
    """Outputs that cannot be split among the requests."""


def groups(requests: Sequence[Arrays], batched: bool) -> list[list[int]]:
    """Group the indices of requests that one call can serve: same inputs of the same non-batch shapes.

    Without a batch dimension every request is a group of its own.
    """
    if not batched:
        return [[index] for index in range(len(requests))]
    if len(requests) == 1:
        return [[0]]
    found: dict[Any, list[int]] = {}
    for index, inputs in enumerate(requests):
        key = tuple((name, array.shape[1:]) for name, array in sorted(inputs.items()))
        found.setdefault(key, []).append(index)
    return list(found.values())


def join(requests: Sequence[Arrays]) -> Arrays:
    """Concatenate the inputs of requests along their first dimension; one request's arrays are not copied."""
    if len(requests) == 1:
        return requests[0]
    return {name: np.concatenate([inputs[name] for inputs in requests]) for name in requests[0]}


def sizes(requests: Sequence[Arrays]) -> list[int]:
    """Batch size of each request: the first dimension of its first input."""
    return [next(iter(inputs.values())).shape[0] for inputs in requests]


def split(outputs: Arrays, counts: Sequence[int]) -> list[Arrays]:
    """Split outputs of shape [sum(counts), ...] into views, one per request.

    Raises BatchError if an output's first dimension is something else.
    """
    total = sum(counts)
    for name, array in outputs.items():
        if array.ndim == 0 or array.shape[0] != total:
            raise BatchError(
                f"failed to split the output tensor '{name}' in responses: expected batch size of {total} "
                f"in model output, got shape {list(array.shape)}"
            )
    if len(counts) == 1:
        return [outputs]
    ends = np.cumsum(counts)
    return [
        {name: array[end - count : end] for name, array in outputs.items()}
        for end, count in zip(ends.tolist(), counts, strict=True)
    ]
