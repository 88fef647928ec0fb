"""The held-out transactions, in batches."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

Batch = tuple[list[str], dict[str, np.ndarray], dict[str, np.ndarray]]
FEATURES = ("amount", "usual", "minute", "chip", "category", "errors", "distance", "since")
"""The columns: dollars, the card's usual dollars, minute of the day, 0 swiped, 1 chip or 2 online, the merchant's
category, 1 if the terminal had an error, kilometres and minutes since the card's last transaction."""


def get_dataloader_fn(data_dir: str, batch_size: int = 64) -> Callable[[], Iterator[Batch]]:
    """Read held-out.npz below ``data_dir``; the function returned yields batches of at most ``batch_size`` samples.

    A batch is ids, {"features": float32 (batch, 8)} and {"prediction": int64 (batch,), 1 for a fraud}.
    """
    with np.load(Path(data_dir) / "held-out.npz") as file:
        features, frauds = file["features"], file["frauds"]

    def batches() -> Iterator[Batch]:
        for start in range(0, len(frauds), batch_size):
            part = slice(start, start + batch_size)
            ids = [str(number) for number in range(len(frauds))[part]]
            yield ids, {"features": features[part]}, {"prediction": frauds[part]}

    return batches
