"""A step before the network: the file of a picture becomes what the network takes."""

import struct
import zlib
from collections.abc import Iterator

import numpy
import triton_python_backend_utils as pb_utils

SIDE = 8
BROKEN = (ValueError, LookupError, struct.error, zlib.error)
"""What is raised for a file that is no such picture."""


class TritonPythonModel:
    """Reads PNG files of 8 x 8 pixels in 8-bit grey, with NumPy alone."""

    def execute(self, requests: list) -> list:
        """Return a response for each request; a file that is no such picture fails its own request alone."""
        responses = []
        for request in requests:
            files = pb_utils.get_input_tensor_by_name(request, "file").as_numpy()
            try:
                pixels = numpy.stack([decoded(file) for (file,) in files])
            except BROKEN as error:
                responses.append(
                    pb_utils.InferenceResponse(error=pb_utils.TritonError(f"no PNG of 8 x 8 grey: {error}"))
                )
            else:
                responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("pixels", pixels)]))
        return responses


def decoded(file: bytes) -> numpy.ndarray:
    """Return the pixels, float32 [64], from 0 for black to 1 for white."""
    found = dict(chunks(file))
    if found[b"IHDR"][:13] != struct.pack(">2I5B", SIDE, SIDE, 8, 0, 0, 0, 0):
        raise ValueError("it has another size, or other colours")
    rows = zlib.decompressobj().decompress(found[b"IDAT"], SIDE * (SIDE + 1))
    if len(rows) != SIDE * (SIDE + 1):
        raise ValueError("rows are missing")
    above, lines = [0] * SIDE, []
    for start in range(0, len(rows), SIDE + 1):
        above = unfiltered(rows[start], rows[start + 1 : start + 1 + SIDE], above)
        lines.append(above)
    return numpy.array(lines, numpy.float32).ravel() / 255


def chunks(file: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the name and the content of each part of a PNG file; the last one counts."""
    if file[:8] != b"\x89PNG\r\n\x1a\n":
        raise ValueError("it does not begin as one")
    at = 8
    while at < len(file):
        length, name = struct.unpack_from(">I4s", file, at)
        content = file[at + 8 : at + 8 + length]
        yield name, content
        at += 12 + length


def unfiltered(kind: int, row: bytes, above: list[int]) -> list[int]:
    """Return a row's pixels; PNG stores each as its difference from what its neighbours foretell."""
    line: list[int] = []
    for place, value in enumerate(row):
        left, corner = (line[place - 1], above[place - 1]) if place else (0, 0)
        up = above[place]
        foretold = (0, left, up, (left + up) // 2, nearest(left, up, corner))[kind]
        line.append((value + foretold) % 256)
    return line


def nearest(left: int, up: int, corner: int) -> int:
    """Return the neighbour that is nearest to left + up - corner (Paeth's filter)."""
    return min((left, up, corner), key=lambda each: abs(left + up - corner - each))
