"""Yields texts that neither the tokenizer nor the network was trained on, with their languages."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy

Arrays = dict[str, numpy.ndarray]


def get_dataloader_fn(batch_size: int = 32) -> Callable[[], Iterator[tuple[numpy.ndarray, Arrays, Arrays]]]:
    """Return a function that yields ids, inputs TEXT of text [batch, 1], and labels text [batch]."""
    lines = (Path(__file__).parent / "texts.tsv").read_text(encoding="utf-8").splitlines()
    labels, texts = (numpy.array(column) for column in zip(*(line.split("\t") for line in lines), strict=True))

    def batches() -> Iterator[tuple[numpy.ndarray, Arrays, Arrays]]:
        for start in range(0, len(texts), batch_size):
            rows = slice(start, start + batch_size)
            yield numpy.arange(len(texts))[rows], {"TEXT": texts[rows][:, None]}, {"label": labels[rows]}

    return batches
