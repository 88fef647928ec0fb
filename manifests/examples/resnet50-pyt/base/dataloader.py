"""The held-out pictures, in batches."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

Batch = tuple[list[str], dict[str, np.ndarray], dict[str, np.ndarray]]


def get_dataloader_fn(data_dir: str, batch_size: int = 1) -> Callable[[], Iterator[Batch]]:
    """Read held-out.npz below ``data_dir``; the function returned yields batches of at most ``batch_size`` pictures.

    A batch is ids, {"INPUT__0": float32 (batch, 3, 224, 224)} and {"OUTPUT__0": int64 (batch,), the class}.
    """
    with np.load(Path(data_dir) / "held-out.npz") as file:
        pictures, classes = file["pictures"], file["classes"]

    def batches() -> Iterator[Batch]:
        for start in range(0, len(pictures), batch_size):
            part = slice(start, start + batch_size)
            ids = [f"picture-{number}" for number in range(len(pictures))[part]]
            yield ids, {"INPUT__0": pictures[part]}, {"OUTPUT__0": classes[part]}

    return batches
