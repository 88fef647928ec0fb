"""Outputs of every sample, as a profile keeps them for a metrics Job: npz files with some samples each, never pickled.

Every sample has arrays of its own, because shapes may differ between samples.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy

from triton_converters.claim_store.dump import CONTENT, Array, Arrays, restored, stored

FOLDER = "served"
"""Folder below a profile's measurement."""
CHUNK = 64
"""Samples in one file."""


def write_outputs(directory: Path, outputs: Sequence[Arrays]) -> None:
    """Write the outputs of every sample, in order, into a new directory."""
    directory.mkdir(parents=True)
    for start in range(0, len(outputs), CHUNK):
        write_chunk(directory, start // CHUNK, outputs[start : start + CHUNK])


def write_chunk(directory: Path, number: int, samples: Sequence[Arrays]) -> None:
    """Write one file, of at most CHUNK samples; its folder has to exist."""
    arrays = {f"{index}/{name}": array for index, sample in enumerate(samples) for name, array in sample.items()}
    with (directory / file_name(number)).open("wb") as file:
        numpy.savez(file, allow_pickle=False, **stored(arrays))


def file_name(number: int) -> str:
    """Return the name of a file of outputs."""
    return f"{number:06}.npz"


def read_outputs(directory: Path) -> Iterator[Arrays]:
    """Yield the outputs of every sample, in order; raises OSError."""
    for path in sorted(directory.glob("*.npz")):
        samples: dict[int, dict[str, Array]] = {}
        with numpy.load(path, allow_pickle=False) as arrays:
            for key in arrays.files:
                index, _, name = key.partition("/")
                if not key.startswith(CONTENT):
                    samples.setdefault(int(index), {})[name] = restored(arrays, key)
        yield from (samples[index] for index in sorted(samples))
