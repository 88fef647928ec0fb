"""Sentences of 20 words."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy


def get_dataloader_fn(batch_size: int) -> Callable[[], Iterator[Any]]:
    """Return a function that yields 16 sentences."""

    def batches() -> Iterator[Any]:
        random = numpy.random.default_rng(0)
        for start in range(0, 16, batch_size):
            words = random.integers(0, 1000, (batch_size, 20))
            yield [*range(start, start + batch_size)], {"words": words}, {}

    return batches
