"""Element types in NumPy and Triton, which of them may be served, and strings, which have no fixed size.

In NumPy strings are text of a fixed width (kind U) where that loses nothing and needs little memory, and otherwise
objects (kind O), all of them bytes: a picture's file is no text, a fixed width drops zeros at an end, and one long text
among many short ones makes each as long as itself. In a request both are Triton's BYTES: the length in four bytes,
little-endian, and the bytes, those of text in UTF-8.
"""

import struct
from collections.abc import Iterable, Sequence
from typing import Any

import numpy
from numpy.typing import NDArray

TRITON_BY_NUMPY = {
    "bool": "BOOL",
    "uint8": "UINT8",
    "uint16": "UINT16",
    "uint32": "UINT32",
    "uint64": "UINT64",
    "int8": "INT8",
    "int16": "INT16",
    "int32": "INT32",
    "int64": "INT64",
    "float16": "FP16",
    "float32": "FP32",
    "float64": "FP64",
}
"""Triton's names of the NumPy types of fixed size that a tensor can have."""
NUMPY_BY_TRITON = {triton: name for name, triton in TRITON_BY_NUMPY.items()}
BYTES = "BYTES"
STRINGS = "UO"
"""NumPy's kinds of arrays whose elements are strings."""
UNEVEN = 8
"""A fixed width may take at most so many times the characters of the text itself."""
SMALL_TEXT = 2**14
"""Characters that text of a fixed width may take, however uneven it is: 64 KiB, since many batches are kept."""
SMALL_SET = 2**22
"""Characters that all samples of a tensor may take as text of a fixed width: 16 MiB, in one metric's arrays."""


def triton_type(dtype: numpy.dtype[Any]) -> str | None:
    """Return Triton's name of a NumPy type; None if a tensor cannot have it."""
    return BYTES if dtype.kind in STRINGS else TRITON_BY_NUMPY.get(dtype.name)


def is_served(dtype: numpy.dtype[Any], halves: bool) -> bool:
    """Whether an input or output may have the type; ``halves``: whether it may be float16 (``Source.halves``)."""
    return dtype.kind in STRINGS or (dtype.name in TRITON_BY_NUMPY and (halves or dtype != numpy.float16))


def strings(array: NDArray[Any]) -> NDArray[Any]:
    """Return objects that are str or bytes as text if each is UTF-8 without zeros at its end, otherwise all as bytes.

    Text is bytes, too, where a fixed width would take many times its memory. Raises ValueError for other objects.
    """
    words = _words(array)
    if words is None or _is_uneven(map(len, words), SMALL_TEXT):
        return as_bytes(array)
    return numpy.array(words, dtype=str).reshape(array.shape)


def text(array: NDArray[Any]) -> NDArray[Any]:
    """Return strings as a user's code gets them: text of a fixed width, else objects, all of them str or all bytes."""
    words = _words(array)
    if words is None:
        return as_bytes(array)
    if _is_uneven(map(len, words), SMALL_SET):
        return objects(words, array.shape)
    return numpy.array(words, dtype=str).reshape(array.shape)


def packed(array: NDArray[Any]) -> NDArray[Any]:
    """Return text of a fixed width as bytes if that takes many times its memory; any other array as it is."""
    if array.dtype.kind != "U" or not _is_uneven(numpy.char.str_len(array).ravel().tolist(), SMALL_TEXT):
        return array
    return as_bytes(array)


def _words(array: NDArray[Any]) -> list[str] | None:
    """Return the elements as text; None if one is no text. Raises ValueError if one is no string."""
    items = array.ravel().tolist()
    if not all(isinstance(item, str | bytes) for item in items):
        raise ValueError("the elements are neither numbers nor strings")
    try:
        words = [item.decode() if isinstance(item, bytes) else item for item in items]
    except UnicodeDecodeError:
        return None
    return None if any(word.endswith("\0") for word in words) else words


def _is_uneven(lengths: Iterable[int], small: int) -> bool:
    """Whether a fixed width takes more characters than ``small``, and many times those that there are."""
    found = list(lengths)
    return max(found, default=0) * len(found) > max(small, UNEVEN * sum(found))


def as_bytes(array: NDArray[Any]) -> NDArray[Any]:
    """Return strings as objects that are bytes. Raises UnicodeEncodeError for text that is not Unicode."""
    return objects([_encoded(item) for item in array.ravel().tolist()], array.shape)


def alike(*arrays: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    """Return the arrays, so that they can be compared and joined.

    Those with text become bytes if another one holds bytes, or if the width of the widest would be too much for all.
    """
    widths = [(array.dtype.itemsize // 4, array.size) for array in arrays if array.dtype.kind == "U"]
    widest = max((width for width, _ in widths), default=0)
    kept = sum(width * size for width, size in widths)
    is_wide = widest * sum(size for _, size in widths) > max(SMALL_TEXT, UNEVEN * kept)
    if not is_wide and not any(array.dtype.hasobject for array in arrays):
        return arrays
    return tuple(as_bytes(array) if array.dtype.kind == "U" else array for array in arrays)


def objects(items: Sequence[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """Return an array of objects, row by row."""
    # NumPy looks into what it is given, and only a None keeps it from finding a type.
    return numpy.array([*items, None], dtype=object)[:-1].reshape(shape)


def _encoded(item: str | bytes) -> bytes:
    return item.encode() if isinstance(item, str) else bytes(item)


def wire(array: NDArray[Any]) -> bytes:
    """Return the elements as they are in a request to Triton: little-endian, row by row."""
    if array.dtype.kind not in STRINGS:
        return array.astype(array.dtype.newbyteorder("<")).tobytes()
    return b"".join(len(item).to_bytes(4, "little") + item for item in map(_encoded, array.ravel().tolist()))


def wire_bytes(array: NDArray[Any]) -> int:
    """Return the length of ``wire(array)``."""
    if array.dtype.kind not in STRINGS:
        return array.nbytes
    return sum(4 + len(_encoded(item)) for item in array.ravel().tolist())


def of_wire(content: bytes) -> NDArray[Any]:
    """Return the strings of ``wire``, flat. Raises struct.error or ValueError if a length does not fit."""
    items, at = [], 0
    while at < len(content):
        (length,) = struct.unpack_from("<I", content, at)
        at += 4 + length
        if at > len(content):
            raise ValueError("a string is longer than what is left")
        items.append(content[at - length : at])
    return strings(objects(items, (len(items),)))


def numpy_type(triton: str) -> numpy.dtype[Any]:
    """Return the NumPy type of Triton's type; raises KeyError for BYTES."""
    return numpy.dtype(NUMPY_BY_TRITON[triton])
