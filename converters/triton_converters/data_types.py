"""Names of element types: NumPy's, Triton's, and which of them may be served."""

from typing import Any

import numpy

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
"""Triton's name of each NumPy type that can be a tensor; BYTES has no NumPy type of its own."""
NUMPY_BY_TRITON = {triton: name for name, triton in TRITON_BY_NUMPY.items()}
SERVED = frozenset(TRITON_BY_NUMPY) - {"float16", "float64"}
"""Types an input or output may have: spec.models[].ioPrecision is fp32, so floating point is float32."""


def numpy_type(triton: str) -> numpy.dtype[Any]:
    """The NumPy type of Triton's type; raises KeyError for BYTES."""
    return numpy.dtype(NUMPY_BY_TRITON[triton])
