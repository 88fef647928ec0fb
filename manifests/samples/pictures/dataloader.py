"""Yields the pictures that the network was not trained on, as PNG files, with what they show."""

import struct
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy

SCALE = 4
"""How many times wider and higher a file is than the picture that the network takes."""
Arrays = dict[str, numpy.ndarray]


def get_dataloader_fn(batch_size: int = 32) -> Callable[[], Iterator[tuple[numpy.ndarray, Arrays, Arrays]]]:
    """Return a function that yields ids, inputs FILE of bytes [batch, 1], and labels text [batch]."""
    with numpy.load(Path(__file__).parent / "digits.npz") as data:
        pictures, labels = data["pictures"].reshape(-1, 8, 8), data["labels"].astype(str)

    def batches() -> Iterator[tuple[numpy.ndarray, Arrays, Arrays]]:
        for start in range(0, len(pictures), batch_size):
            rows = slice(start, start + batch_size)
            files = numpy.array([[png(picture)] for picture in pictures[rows]], dtype=object)
            yield numpy.arange(len(pictures))[rows], {"FILE": files}, {"label": labels[rows]}

    return batches


def png(picture: numpy.ndarray) -> bytes:
    """Return a PNG file in 8-bit grey of pixels [height, width] from 0 to 16, enlarged."""
    grey = numpy.round(picture * (255 / 16)).astype(numpy.uint8).repeat(SCALE, axis=0).repeat(SCALE, axis=1)
    rows = b"".join(b"\0" + row.tobytes() for row in grey)
    header = struct.pack(">2I5B", grey.shape[1], grey.shape[0], 8, 0, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
        for name, content in parts
    )
