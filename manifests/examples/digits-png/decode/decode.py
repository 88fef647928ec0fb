"""A step before the network: the file of a picture becomes what the network takes. It needs NumPy alone."""

import struct
import zlib

import numpy
import triton_python_backend_utils as pb_utils

SIDE = 8
LARGEST_SIDE = 1024
CHANNELS = {0: 1, 2: 3}
"""Of a pixel, by the PNG's type of colour: grey, and red, green and blue."""


class TritonPythonModel:
    """Reads PNG files of 8 bits a channel, grey or coloured, whose sides are multiples of 8."""

    def execute(self, requests: list) -> list:
        """Return a response for each request; a file that is no such picture fails its own request alone."""
        responses = []
        for request in requests:
            files = pb_utils.get_input_tensor_by_name(request, "file").as_numpy()
            try:
                pictures = numpy.stack([decoded(file) for (file,) in files])
            except (ValueError, struct.error, zlib.error) as error:
                wrong = pb_utils.TritonError(f"no PNG: {error}", pb_utils.TritonError.INVALID_ARG)
                responses.append(pb_utils.InferenceResponse(error=wrong))
            else:
                responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("picture", pictures)]))
        return responses


def decoded(file: bytes) -> numpy.ndarray:
    """Return a small grey picture, float32 [1, 8, 8], from 0 for black to 1 for white."""
    parts = dict.fromkeys((b"IHDR", b"IDAT"), b"")
    if file[:8] != b"\x89PNG\r\n\x1a\n":
        raise ValueError("it begins otherwise")
    start = 8
    while start < len(file):
        size, name = struct.unpack_from(">I4s", file, start)
        if name in parts:
            parts[name] += file[start + 8 : start + 8 + size]
        start += size + 12
    width, height, bits, colour, _, _, interlaced = struct.unpack(">2I5B", parts[b"IHDR"])
    if bits != 8 or colour not in CHANNELS or interlaced:
        raise ValueError("it has not 8 bits a channel in grey or RGB, or is interlaced")
    if not (0 < width <= LARGEST_SIDE and 0 < height <= LARGEST_SIDE) or width % SIDE or height % SIDE:
        raise ValueError(f"its sides are {width} and {height}, and not multiples of {SIDE} up to {LARGEST_SIDE}")
    row = 1 + width * CHANNELS[colour]
    pixels = zlib.decompressobj().decompress(parts[b"IDAT"], row * height)
    if len(pixels) != row * height:
        raise ValueError("it ends too early")
    grey = unfiltered(numpy.frombuffer(pixels, numpy.uint8).reshape(height, row), CHANNELS[colour]).mean(axis=2)
    small = grey.reshape(SIDE, height // SIDE, SIDE, width // SIDE).mean(axis=(1, 3))
    return (small / 255).astype(numpy.float32)[None]


def unfiltered(rows: numpy.ndarray, channels: int) -> numpy.ndarray:
    """Return the pixels, [height, width, channels], of rows that begin with the number of their filter."""
    height, width = rows.shape[0], (rows.shape[1] - 1) // channels
    if not rows[:, 0].any():
        return rows[:, 1:].reshape(height, width, channels)
    above = numpy.zeros((width, channels), int)
    pixels = numpy.empty((height, width, channels), int)
    for each, (kind, *given) in zip(pixels, rows.tolist(), strict=True):
        each[:] = numpy.reshape(given, (width, channels))
        if kind == 1:
            each[:] = each.cumsum(axis=0) % 256
        elif kind == 2:
            each[:] = (each + above) % 256
        elif kind in (3, 4):
            left = corner = numpy.zeros(channels, int)
            for number in range(width):
                up = above[number]
                each[number] += (left + up) // 2 if kind == 3 else nearest(left, up, corner)
                left = each[number] = each[number] % 256
                corner = up
        elif kind:
            raise ValueError(f"it has a filter {kind}")
        above = each
    return pixels


def nearest(left: numpy.ndarray, up: numpy.ndarray, corner: numpy.ndarray) -> numpy.ndarray:
    """Return, for each channel, which of the three is nearest to left + up - corner: Paeth's filter."""
    far = [numpy.abs(left + up - corner - each) for each in (left, up, corner)]
    beside = numpy.where(far[1] <= far[2], up, corner)
    return numpy.where((far[0] <= far[1]) & (far[0] <= far[2]), left, beside)
