"""The reference on disk: one npz file for each batch, never pickled.

Strings that are no text are two arrays of the file: one of the tensor's name and shape, with the length of each, and
one whose name begins with CONTENT, with the bytes of all.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy

from triton_converters.model_config.data_types import as_bytes, objects

KINDS = "biufcmMSU"
"""NumPy's kinds of what is kept: numbers, times, bytes and text."""
Array = numpy.ndarray[Any, Any]
CONTENT = "bytes/"
LENGTHS = numpy.dtype(numpy.int64)
NAME_CHARACTERS = 256
"""Longest name of an array; frameworks' own have some 50."""
Arrays = Mapping[str, Array]


@dataclass(frozen=True)
class Batch:
    """One batch of the dataloader with the framework's answers; arrays by tensor name.

    The first dimension of every array is the batch, and ``ids`` has one entry for each sample. For a model without a
    batch dimension (max_batch_size 0) a Batch is one request, and ``ids`` is what the dataloader gave.
    """

    ids: Array
    """One-dimensional, integers or strings."""
    inputs: Arrays
    labels: Arrays
    """Empty if the dataloader yields none; names are the user's own."""
    outputs: Arrays

    def samples(self, batched: bool) -> int:
        """Return how many samples there are; ``batched``: false: without a batch dimension, a batch is one."""
        return len(self.ids) if batched else 1


_GROUPS = ("inputs", "labels", "outputs")
SIZES = "sizes"
"""Folder below the reference with requests of other sizes, for a model without a batch dimension."""


def is_name(text: str) -> bool:
    """Whether an array may have the name."""
    return 0 < len(text) <= NAME_CHARACTERS and text.isprintable()


def is_unicode(array: Array) -> bool:
    """Whether an array of text holds only code points that an encoding has."""
    codes = numpy.ascontiguousarray(array).reshape(-1).view(numpy.uint32)
    return not codes.size or bool(codes.max() <= 0x10FFFF and not ((codes >= 0xD800) & (codes <= 0xDFFF)).any())


def stored(arrays: Arrays) -> dict[str, Array]:
    """Return the arrays by the names that they have in a file, without objects."""
    found: dict[str, Array] = {}
    for name, array in arrays.items():
        if not array.dtype.hasobject:
            found[name] = array
            continue
        items = as_bytes(array).ravel().tolist()
        found[name] = numpy.array([len(each) for each in items], LENGTHS).reshape(array.shape)
        found[f"{CONTENT}{name}"] = numpy.frombuffer(b"".join(items), numpy.uint8)
    return found


def restored(arrays: Arrays, name: str) -> Array:
    """Return one of the arrays that were stored. Raises ValueError if its lengths are not those of its content."""
    array = arrays[name]
    if f"{CONTENT}{name}" not in arrays:
        return array
    content = arrays[f"{CONTENT}{name}"]
    if array.dtype != LENGTHS or content.dtype != numpy.uint8 or content.ndim != 1:
        raise ValueError(f"{name} has lengths or bytes of another type")
    # Python's integers have no largest one.
    lengths = array.ravel().tolist()
    whole = content.tobytes()
    if min(lengths, default=0) < 0 or sum(lengths) != len(whole):
        raise ValueError(f"the lengths in {name} are not those of its bytes")
    ends = list(accumulate(lengths))
    return objects([whole[end - length : end] for end, length in zip(ends, lengths, strict=True)], array.shape)


def write_batch(directory: Path, number: int, batch: Batch) -> None:
    """Write ``batches/<number>.npz`` below the reference's directory."""
    path = directory / "batches" / f"{number:05}.npz"
    path.parent.mkdir(parents=True, exist_ok=True)
    arrays = {f"{group}/{name}": array for group in _GROUPS for name, array in getattr(batch, group).items()}
    with path.open("wb") as file:
        numpy.savez(file, allow_pickle=False, **stored({"ids": batch.ids, **arrays}))


def read_sizes(directory: Path) -> Iterator[Batch]:
    """Yield every request of another size below the reference's directory, in order; there may be none."""
    if (directory / SIZES).is_dir():
        yield from read_batches(directory / SIZES)


def read_all(directory: Path) -> Iterator[Batch]:
    """Yield every batch and then every request of another size; raises FileNotFoundError if there is no batch."""
    yield from read_batches(directory)
    yield from read_sizes(directory)


def read_inputs(directory: Path) -> Iterator[Arrays]:
    """Yield the inputs of every batch in the reference's directory; raises FileNotFoundError if there is none."""
    for path in _batches(directory):
        with numpy.load(path, allow_pickle=False) as arrays:
            names = (key.partition("/") for key in arrays.files)
            yield {name: restored(arrays, f"{group}/{name}") for group, _, name in names if group == "inputs"}


def _batches(directory: Path) -> list[Path]:
    paths = sorted((directory / "batches").glob("*.npz"))
    if not paths:
        raise FileNotFoundError(f"there are no batches in {directory}")
    return paths


def read_batches(directory: Path) -> Iterator[Batch]:
    """Yield every batch in the reference's directory, in order; raises FileNotFoundError if there is none."""
    for path in _batches(directory):
        with numpy.load(path, allow_pickle=False) as arrays:
            groups: dict[str, dict[str, Array]] = {group: {} for group in _GROUPS}
            for key in arrays.files:
                group, _, name = key.partition("/")
                if group in groups:
                    groups[group][name] = restored(arrays, key)
            yield Batch(restored(arrays, "ids"), **groups)


def select(batches: Iterable[Batch], batched: bool, keeps: Callable[[int], bool]) -> Iterator[Batch]:
    """Yield the batches with those samples alone whose number, from 0, is kept; a batch of none is left out.

    ``batched``: false: without a batch dimension, a batch is one sample.
    """
    number = 0
    for batch in batches:
        rows = [row for row in range(batch.samples(batched)) if keeps(number + row)]
        number += batch.samples(batched)
        if rows and not batched:
            yield batch
        elif rows:
            groups = ({name: array[rows] for name, array in getattr(batch, group).items()} for group in _GROUPS)
            yield Batch(batch.ids[rows], *groups)
