"""Which samples of an object those of one of its models are made of."""

import numpy

from triton_converters.claim_store.dump import Array, read_batches, read_sizes
from triton_converters.claim_store.replay import read_reference
from triton_converters.contract import layout

ASKED = "samples"
"""In a model's reference, the label of requests that a Python step made: for each row, the number of the first sample
that it may be of, and that after the last one, int64 [rows, 2]."""


def origins(reference: str, batched: bool) -> tuple[int, list[range]]:
    """Return how many samples the object's reference has, and for each sample of a model the numbers of those it is of.

    ``reference``: the key of the model's reference; ``batched``: whether the model has a batch dimension. Without an
    ensemble, both are the same samples. A model of an ensemble has the first batches, then requests of other sizes, and
    then those that Python steps made. Where nobody can tell, it may be any sample. Raises StageError(InputMissing).
    """
    key = layout.whole_key(reference)
    home, whole = map(layout.reference_directory, (reference, key))
    by_rows = read_reference(key).signature.max_batch_size > 0
    of_whole = [each.samples(by_rows) for each in read_batches(whole)]
    total = sum(of_whole)
    counts, asked = list[int](), list[range]()
    for each in read_batches(home):
        rows = each.samples(batched)
        if key != reference and ASKED in each.labels:
            asked += _told(each.labels[ASKED], rows, total)
        else:
            counts.append(rows)
    others = 0 if key == reference else min(len(counts), sum(1 for _ in read_sizes(whole)))
    found = list[range]()
    start = 0
    for count, samples in zip(counts[: len(counts) - others], of_whole, strict=False):
        alone = [range(start + row, start + row + 1) for row in range(samples)]
        found += alone if count == samples else [range(start, start + samples)] * count
        start += samples
    return total, [*found, *[range(total)] * (sum(counts) - len(found)), *asked]


def _told(label: Array, rows: int, total: int) -> list[range]:
    """Return the samples that each row may be of; user code's process wrote the label."""
    if label.dtype != numpy.int64 or label.shape[1:] != (2,) or len(label) < rows:
        return [range(total)] * rows
    pairs = label[:rows].tolist()
    return [range(first, end) if 0 <= first < end <= total else range(total) for first, end in pairs]
