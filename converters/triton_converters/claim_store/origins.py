"""Which samples of an object those of one of its models are made of."""

from triton_converters.claim_store.dump import read_batches, read_sizes
from triton_converters.claim_store.replay import read_reference
from triton_converters.contract import layout


def origins(reference: str, batched: bool) -> tuple[int, list[range]]:
    """Return how many samples the object's reference has, and for each sample of a model the numbers of those it is of.

    ``reference``: the key of the model's reference; ``batched``: whether the model has a batch dimension. Without an
    ensemble, both are the same samples. A model of an ensemble has the first batches, and then requests of other sizes.
    These are left out, because nobody can tell of which samples they are. Raises StageError(ResultMissing).
    """
    key = layout.whole_key(reference)
    home, whole = map(layout.reference_directory, (reference, key))
    by_rows = read_reference(key).signature.max_batch_size > 0
    counts = [len(each.ids) if batched else 1 for each in read_batches(home)]
    of_whole = [len(each.ids) if by_rows else 1 for each in read_batches(whole)]
    known = counts if key == reference else counts[: len(counts) - sum(1 for _ in read_sizes(whole))]
    found, start = list[range](), 0
    for count, samples in zip(known, of_whole, strict=False):
        alone = [range(start + row, start + row + 1) for row in range(samples)]
        found += alone if count == samples else [range(start, start + samples)] * count
        start += samples
    return sum(of_whole), found
