"""Yields the pictures that the network was not trained on, with what they show."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy

Arrays = dict[str, numpy.ndarray]


def get_dataloader_fn(batch_size: int = 32) -> Callable[[], Iterator[tuple[numpy.ndarray, Arrays, Arrays]]]:
    """Return a function that yields ids, inputs X float32 [batch, 64] of 0 to 1, and labels int64 [batch]."""
    with numpy.load(Path(__file__).parent / "digits.npz") as data:
        pictures, labels = data["pictures"].astype(numpy.float32) / 16, data["labels"]

    def batches() -> Iterator[tuple[numpy.ndarray, Arrays, Arrays]]:
        for start in range(0, len(pictures), batch_size):
            rows = slice(start, start + batch_size)
            yield numpy.arange(len(pictures))[rows], {"X": pictures[rows]}, {"label": labels[rows]}

    return batches
