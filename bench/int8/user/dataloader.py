"""Yields what `data.npz` next to this file holds, in its order."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy
from numpy.typing import NDArray

Arrays = dict[str, NDArray[Any]]


def get_dataloader_fn(batch_size: int = 1) -> Callable[[], Iterator[tuple[NDArray[Any], Arrays, Arrays]]]:
    """Return a function that yields ids, inputs and labels of ``batch_size`` samples at a time."""
    with numpy.load(Path(__file__).parent / "data.npz") as data:
        arrays = {name: data[name] for name in data.files}
    samples = len(next(iter(arrays.values())))

    def part(kind: str, rows: slice) -> Arrays:
        return {name.removeprefix(kind): array[rows] for name, array in arrays.items() if name.startswith(kind)}

    def batches() -> Iterator[tuple[NDArray[Any], Arrays, Arrays]]:
        for start in range(0, samples, batch_size):
            rows = slice(start, start + batch_size)
            yield numpy.arange(samples)[rows], part("inputs/", rows), part("labels/", rows)

    return batches
