"""Requests of the flattened form: a row that holds every sample's two keys."""

from collections.abc import Callable, Iterator

import numpy as np

SAMPLES = 32
Batch = tuple[np.ndarray, dict[str, np.ndarray], dict[str, np.ndarray]]


def get_dataloader_fn(batch_size: int = 8) -> Callable[[], Iterator[Batch]]:
    """Requests of ``batch_size`` samples, as many as are whole."""
    keys = np.random.default_rng(1).integers(0, 50, size=(2, SAMPLES))

    def batches() -> Iterator[Batch]:
        for start in range(0, SAMPLES - batch_size + 1, batch_size):
            row = keys[:, start : start + batch_size].reshape(1, -1)
            inputs = {"KEYS": np.ascontiguousarray(row), "COUNTS": np.full((1, 2), batch_size, np.int32)}
            yield np.arange(start, start + batch_size), inputs, {}

    return batches
