"""The sentences of text.txt, in batches."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from text import encode, read_sentences
from voice import durations, pitches

Batch = tuple[list[str], dict[str, np.ndarray], dict[str, np.ndarray]]


def get_dataloader_fn(length: int = 128, sentences: int = 16, batch_size: int = 1) -> Callable[[], Iterator[Batch]]:
    """Encode the first ``sentences`` lines; the function returned yields batches of at most ``batch_size``.

    A batch is ids, {"INPUT__0": int64 (batch, length)} and what the voice's rule says of each character:
    {"OUTPUT__2": durations in frames, "OUTPUT__4": pitches}, float32 (batch, length) each.
    """
    texts = encode(read_sentences(Path(__file__).with_name("text.txt"))[:sentences], length)

    def batches() -> Iterator[Batch]:
        for start in range(0, len(texts), batch_size):
            part = texts[start : start + batch_size]
            ids = [f"sentence-{start + number}" for number in range(len(part))]
            yield ids, {"INPUT__0": part}, {"OUTPUT__2": durations()[part], "OUTPUT__4": pitches()[part]}

    return batches
