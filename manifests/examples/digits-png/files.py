"""The held-out pictures as PNG files, in batches."""

import struct
import zlib
from collections.abc import Callable, Iterator

import numpy as np
from dataloader import Batch
from dataloader import get_dataloader_fn as get_pictures_fn

SCALE = 4
"""How many times wider and higher a file is than the picture that the network takes."""


def get_dataloader_fn(data_dir: str, batch_size: int = 32) -> Callable[[], Iterator[Batch]]:
    """Read held-out.npz below ``data_dir``; the function returned yields batches of at most ``batch_size`` samples.

    A batch is ids, {"FILE": bytes (batch, 1)} and {"LABEL": text (batch,), the written digits}.
    """
    pictures_fn = get_pictures_fn(data_dir, batch_size)

    def batches() -> Iterator[Batch]:
        for ids, inputs, labels in pictures_fn():
            files = np.array([[png(picture)] for (picture,) in inputs["INPUT__0"]], dtype=object)
            yield ids, {"FILE": files}, {"LABEL": labels["OUTPUT__0"].astype(str)}

    return batches


def png(picture: np.ndarray) -> bytes:
    """Return a PNG file in 8-bit grey of pixels (height, width) from 0 to 1, enlarged."""
    grey = np.rint(picture * 255).astype(np.uint8).repeat(SCALE, axis=0).repeat(SCALE, axis=1)
    rows = b"".join(b"\0" + row.tobytes() for row in grey)
    header = struct.pack(">2I5B", grey.shape[1], grey.shape[0], 8, 0, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
        for name, content in parts
    )
