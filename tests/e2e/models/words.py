"""A dataloader of single words, for a step that takes text."""

from collections.abc import Callable, Iterator

import numpy as np

WORDS = ("one", "two", "three", "four", "five", "six", "seven", "eight")
Batch = tuple[list[str], dict[str, np.ndarray], dict[str, np.ndarray]]


def get_dataloader_fn(batch_size: int) -> Callable[[], Iterator[Batch]]:
    """Batches of (rows, 1) words."""

    def batches() -> Iterator[Batch]:
        for start in range(0, len(WORDS), batch_size):
            words = WORDS[start : start + batch_size]
            yield list(words), {"WORD": np.array([[each] for each in words], dtype=object)}, {}

    return batches
