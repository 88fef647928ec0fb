"""Cut the reference into single samples, and join samples into requests of chosen sizes. Pure NumPy."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Any

import numpy

from triton_converters.claim_store.dump import Array, Arrays, Batch
from triton_converters.model_config.data_types import alike


@dataclass(frozen=True)
class Sample:
    """One sample of the reference; for a model without a batch dimension, one whole request."""

    number: int
    """Position in the reference, from 0."""
    name: str
    """The sample's id, as the dataloader gave it."""
    inputs: Arrays
    """The inputs without the batch dimension."""
    outputs: Arrays
    """The framework's outputs without the batch dimension."""

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shapes of the inputs and outputs, since both are joined."""
        return tuple(array.shape for group in (self.inputs, self.outputs) for array in group.values())


def cut(batches: Iterable[Batch], batched: bool) -> Iterator[Sample]:
    """Yield every sample of the reference in order; ``batched``: the first dimension of every array is the batch."""
    number = 0
    for batch in batches:
        for index in range(batch.samples(batched)):
            name = _word(batch.ids[index]) if batched else ",".join(_word(each) for each in batch.ids[:4])
            yield Sample(number, name, _pick(batch.inputs, index, batched), _pick(batch.outputs, index, batched))
            number += 1


def request_sizes(max_batch_size: int) -> tuple[int, ...]:
    """Return the request sizes: one sample, the maximum, and one between that is no power of two if possible.

    A converter chooses the batch size that it traces; a model that froze it fails at another size.
    """
    return tuple(sorted({1, max_batch_size // 2 + 1, max_batch_size})) if max_batch_size > 0 else (1,)


def regroup(samples: Iterable[Sample], sizes: Sequence[int]) -> Iterator[tuple[Sample, ...]]:
    """Yield requests of one shape each, with every sample and every size at least once.

    The sizes take turns. At the end the samples that are left are sent as they are, and samples are repeated for a size
    that was not used. Keeps at most as many samples of each shape as the largest size.
    """
    waiting: dict[tuple[tuple[int, ...], ...], list[Sample]] = {}
    turns, missing = cycle(sizes), set(sizes)
    size = next(turns)
    last: tuple[Sample, ...] = ()
    for sample in samples:
        group = waiting.setdefault(sample.shapes, [])
        group.append(sample)
        if len(group) >= size:
            last = tuple(group)
            yield last
            missing.discard(len(last))
            size = next(turns)
            del waiting[sample.shapes]
    for group in waiting.values():
        last = tuple(group)
        yield last
        missing.discard(len(last))
    for size in sorted(missing) if last else ():
        yield tuple(islice(cycle(last), size))


def join(arrays: Sequence[Array], batched: bool) -> Array:
    """Join arrays of single samples into the array of a request: [len(arrays), ...], or the only array itself."""
    return numpy.stack(alike(*arrays)) if batched else arrays[0]


def _word(item: Any) -> str:
    """Return an id in words."""
    return item.decode(errors="replace") if isinstance(item, bytes) else str(item)


def _pick(arrays: Arrays, index: int, batched: bool) -> Arrays:
    return {name: array[index] if batched else array for name, array in arrays.items()}
