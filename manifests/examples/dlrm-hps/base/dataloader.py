"""Held-out impressions in the flattened form of NVIDIA's hps backend: a request is one row that holds them all."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from clicks import OFFSETS

Batch = tuple[np.ndarray, dict[str, np.ndarray], dict[str, np.ndarray]]


def get_dataloader_fn(data_dir: str, batch_size: int = 1024) -> Callable[[], Iterator[Batch]]:
    """Read held-out.npz below ``data_dir``; the function returned yields requests of ``batch_size`` impressions.

    A request is ids, {"EMB_KEY": int64 (1, 26 n), all keys of the first category, then of the second, ...; "EMB_N_KEY":
    int32 (1, 1), how many those are; "numerical_features": float32 (1, 13 n)} and {"clicks": float32 (n,)}. They
    all have one size: what is left at the end is not used, and a log that is too short is repeated.
    """
    with np.load(Path(data_dir) / "held-out.npz") as file:
        numbers, categories, clicks = file["numbers"], file["categories"], file["clicks"]

    def batches() -> Iterator[Batch]:
        count = max(len(clicks), batch_size)
        for start in range(0, count - batch_size + 1, batch_size):
            rows = np.arange(start, start + batch_size) % len(clicks)
            keys = (categories[rows] + OFFSETS).T.reshape(1, -1)
            inputs = {
                "EMB_KEY": np.ascontiguousarray(keys),
                "EMB_N_KEY": np.array([[keys.size]], np.int32),
                "numerical_features": numbers[rows].reshape(1, -1),
            }
            yield rows, inputs, {"clicks": clicks[rows]}

    return batches
