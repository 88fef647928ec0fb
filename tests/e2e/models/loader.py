"""Seeded random samples for each model, in batches, and the labels that seed.py wrote."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import DataLoader

SAMPLES = 24
BLOCK = 8
"""Samples that are alike: of one sign for the classifier, of one length for the sequence."""
BALLAST_FLOATS = 12 * 2**20
"""What each batch of a worker has besides the samples: 48 MiB, of which the runtime's own /dev/shm holds one alone."""
Batch = tuple[list[str], dict[str, np.ndarray], dict[str, np.ndarray]]


def samples_of(kind: str, start: int, count: int) -> dict[str, np.ndarray]:
    """Samples ``start`` to ``start + count`` of one block; FP32 but for the recommender's INT64 items."""
    block = start // BLOCK
    random = np.random.default_rng(block)
    part = slice(start % BLOCK, start % BLOCK + count)
    match kind:
        case "classifier":
            sign = 1 if block % 2 else -1
            return {"INPUT__0": sign * np.abs(random.normal(size=(BLOCK, 8))).astype(np.float32)[part]}
        case "recommender":
            visitors = random.normal(size=(BLOCK, 8)).astype(np.float32)
            return {"INPUT__0": visitors[part], "INPUT__1": random.integers(0, 32, size=(BLOCK, 3))[part]}
        case "sequence":
            return {"INPUT__0": random.normal(size=(BLOCK, 5 + 2 * block, 6)).astype(np.float32)[part]}
        case "ranking":
            # No batch dimension: a sample is a request.
            return {"INPUT__0": random.normal(size=(BLOCK, 5, 3)).astype(np.float32)[start % BLOCK]}
    raise ValueError(f"no samples of kind {kind}")


class Starts:
    """The number of each batch's first sample, with as much data as pictures have."""

    def __init__(self, starts: range) -> None:
        self.starts = starts

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, index: int) -> tuple[int, torch.Tensor]:
        return self.starts[index], torch.zeros(BALLAST_FLOATS)


def get_dataloader_fn(
    kind: str, batch_size: int = BLOCK, labels: str = "", data_dir: str = "", workers: int = 0
) -> Callable[[], Iterator[Batch]]:
    """Batches of at most eight samples; ``labels`` is a file of the source, or below ``data_dir``.

    With ``workers``, that many processes make them, as in most training code.
    """
    size = 1 if kind == "ranking" else min(batch_size, BLOCK)
    classes = np.load(Path(data_dir) / labels) if labels else None

    def batches() -> Iterator[Batch]:
        starts = range(0, SAMPLES, size)
        loaded = DataLoader(Starts(starts), batch_size=None, num_workers=workers)
        for start in (start for start, _ in loaded) if workers else starts:
            ids = [str(number) for number in range(start, start + size)]
            y_real = {} if classes is None else {"OUTPUT__0": classes[start : start + size]}
            yield ids, samples_of(kind, start, size), y_real

    return batches
