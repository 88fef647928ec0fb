"""One real inference request, as any client would send it: the file of a picture goes, its label comes."""

import io
from pathlib import Path

import numpy as np
from PIL import Image

from examples import asking
from examples.asking import Answer

SHADES = " .:-=+*#%@"
SIDE = 8
"""Pixels of what the network sees, and characters of the drawing's height."""


def drawing(file: bytes) -> str:
    """Return a picture's file in characters, two a pixel."""
    with Image.open(io.BytesIO(file)) as picture:
        small = picture.convert("L").resize((SIDE, SIDE), Image.Resampling.BOX)
    levels = np.rint(np.asarray(small) / 255 * (len(SHADES) - 1)).astype(int)
    return "\n".join("".join(SHADES[level] * 2 for level in row).rstrip() for row in levels)


def ask(url: str, model: str, file: Path) -> Answer:
    """Send a picture's file, whose name says what is written on it, to ``url`` (host:port, gRPC).

    Raises tritonclient.utils.InferenceServerException where the server does not answer it.
    """
    return asking.ask(url, model, "FILE", file.read_bytes(), file.name, file.stem)
