"""Arrays to and from Triton's Python stub, which ../../numpy2_stub.py makes read NumPy 2's."""

from typing import Any

import numpy as np
import triton_python_backend_utils as pb_utils

from triton_cpu.batch import Array
from triton_cpu.session import RunError


def received(tensor: Any) -> Array:
    """Return a request's tensor; strings as `str`, which ONNX Runtime takes. Raises RunError if they are not UTF-8."""
    array: Array = tensor.as_numpy()
    if not array.dtype.hasobject:
        return array
    try:
        # The native backend hands C strings to the runtime, which end at the first zero byte.
        items = [item.partition(b"\0")[0].decode() for item in array.flat]
    except UnicodeDecodeError as error:
        raise RunError(f"input '{tensor.name()}' holds a string that is not UTF-8: {error}", invalid=True) from error
    return np.array(items, dtype=object).reshape(array.shape)


def sent(name: str, array: Array) -> Any:
    """Make a tensor of a response; the stub copies it into shared memory when it sends the response."""
    return pb_utils.Tensor(name, array)
