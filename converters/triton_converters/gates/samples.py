"""The reference cut into single samples, and samples joined into requests of chosen sizes. Pure NumPy."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle, islice

import numpy

from triton_converters.claim_store.dump import Array, Arrays, Batch


@dataclass(frozen=True)
class Sample:
    """One sample of the reference; for a model without batch dimension, one whole request."""

    number: int
    """Position in the reference, from 0."""
    name: str
    """Its id, as the dataloader gave it."""
    inputs: Arrays
    """Without the batch dimension."""
    outputs: Arrays
    """The framework's; without the batch dimension."""

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Of the inputs, and of the outputs since they are joined too."""
        return tuple(array.shape for group in (self.inputs, self.outputs) for array in group.values())


def cut(batches: Iterable[Batch], batched: bool) -> Iterator[Sample]:
    """Every sample of the reference in order; ``batched``: the first dimension of every array is the batch."""
    number = 0
    for batch in batches:
        for index in range(len(batch.ids) if batched else 1):
            name = str(batch.ids[index]) if batched else ",".join(str(each) for each in batch.ids[:4])
            yield Sample(number, name, _pick(batch.inputs, index, batched), _pick(batch.outputs, index, batched))
            number += 1


def request_sizes(max_batch_size: int) -> tuple[int, ...]:
    """Sizes to serve: one sample, a middle number that is no power of two where there is one, and the maximum.

    A converter's traced batch size is one of its choosing; a model that froze it fails at another.
    """
    return tuple(sorted({1, max_batch_size // 2 + 1, max_batch_size})) if max_batch_size > 0 else (1,)


def regroup(samples: Iterable[Sample], sizes: Sequence[int]) -> Iterator[tuple[Sample, ...]]:
    """Requests that hold every sample at least once and come in every size at least once, of one shape each.

    Sizes take turns. At the end what is left goes as it is, and a size that never came up is made by repeating samples.
    Holds at most the largest size of samples for each shape.
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
    """Arrays of single samples as the array of a request: [len(arrays), ...], or the one array itself."""
    return numpy.stack(arrays) if batched else arrays[0]


def _pick(arrays: Arrays, index: int, batched: bool) -> Arrays:
    return {name: array[index] if batched else array for name, array in arrays.items()}
