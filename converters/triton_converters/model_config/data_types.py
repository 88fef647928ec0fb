"""Element types in NumPy and Triton, which of them may be served, and strings, which have no fixed size.

In NumPy a string is text of a fixed width (kind U), so that it needs no pickle. In a request it is Triton's BYTES: the
length in four bytes, little-endian, and the text in UTF-8.
"""

from typing import Any

import numpy

Array = numpy.ndarray[Any, Any]

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
SERVED = frozenset(TRITON_BY_NUMPY) - {"float16"}
"""Types that an input or output may have: spec.models[].ioPrecision is fp32, so floating point has at least 32 bits."""


BYTES = "BYTES"


def triton_type(dtype: numpy.dtype[Any]) -> str | None:
    """Return Triton's name of a NumPy type; None if a tensor cannot have it."""
    return BYTES if dtype.kind == "U" else TRITON_BY_NUMPY.get(dtype.name)


def is_served(dtype: numpy.dtype[Any]) -> bool:
    """Whether an input or output may have the type."""
    return dtype.kind == "U" or dtype.name in SERVED


def text(array: Array) -> Array:
    """Return objects that are str, or UTF-8 in bytes, as text; raises ValueError for others."""
    if not all(isinstance(item, str | bytes) for item in array.flat):
        raise ValueError("the elements are neither numbers nor strings")
    items = [item.decode() if isinstance(item, bytes) else item for item in array.flat]
    return numpy.array(items, dtype=str).reshape(array.shape)


def wire(array: Array) -> bytes:
    """Return the elements as they are in a request to Triton: little-endian, row by row."""
    if array.dtype.kind != "U":
        return array.astype(array.dtype.newbyteorder("<")).tobytes()
    encoded = [str(item).encode() for item in array.flat]
    return b"".join(len(item).to_bytes(4, "little") + item for item in encoded)


def wire_bytes(array: Array) -> int:
    """Return the length of ``wire(array)``."""
    return len(wire(array)) if array.dtype.kind == "U" else array.nbytes


def numpy_type(triton: str) -> numpy.dtype[Any]:
    """Return the NumPy type of Triton's type; raises KeyError for BYTES."""
    return numpy.dtype(NUMPY_BY_TRITON[triton])
