"""The held-out volumes, in batches."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

Batch = tuple[list[str], dict[str, np.ndarray], dict[str, np.ndarray]]


def get_dataloader_fn(data_dir: str, batch_size: int = 1) -> Callable[[], Iterator[Batch]]:
    """Read held-out.npz below ``data_dir``; the function returned yields batches of at most ``batch_size`` volumes.

    A batch is ids, {"INPUT__0": float32 (batch, 4, depth, height, width)} and {"OUTPUT__0": uint8 (batch, depth,
    height, width), the class of each voxel}.
    """
    with np.load(Path(data_dir) / "held-out.npz") as file:
        volumes, classes = file["volumes"], file["classes"]

    def batches() -> Iterator[Batch]:
        for start in range(0, len(volumes), batch_size):
            part = slice(start, start + batch_size)
            ids = [f"volume-{number}" for number in range(len(volumes))[part]]
            yield ids, {"INPUT__0": volumes[part]}, {"OUTPUT__0": classes[part]}

    return batches
