"""Arrays to and from Triton's Python stub, by DLPack.

The stub of server 2.51 was made for NumPy 1. With NumPy 2, `as_numpy()` repeats the first element and
`pb_utils.Tensor(name, array)` sends no data, both without an error. DLPack depends on neither layout. Strings know no
other way, so models with strings are refused.
"""

import ctypes
from typing import Any

import numpy as np
import triton_python_backend_utils as pb_utils

from triton_cpu.batch import Array

CPU = (1, 0)  # DLPack's device type and number
# The specification's name for a capsule that a consumer has taken over. The stub writes another name, for which NumPy
# prints an error when it frees the capsule.
TAKEN = b"used_dltensor"
set_capsule_name = ctypes.pythonapi.PyCapsule_SetName
set_capsule_name.argtypes = [ctypes.py_object, ctypes.c_char_p]


class _Shared:
    """A request's tensor, with the arguments that NumPy 2 gives to `__dlpack__`; its second try costs microseconds."""

    __slots__ = ("_tensor",)

    def __init__(self, tensor: Any) -> None:
        self._tensor = tensor

    def __dlpack__(self, **_: object) -> Any:
        return self._tensor.to_dlpack()

    def __dlpack_device__(self) -> tuple[int, int]:
        return CPU


def received(tensor: Any) -> Array:
    """View a request's tensor in shared memory; copy it where it does not lie on a multiple of its element size."""
    array: Array = np.from_dlpack(_Shared(tensor))
    return array if array.flags.aligned else array.copy()


def sent(name: str, array: Array) -> Any:
    """Make a tensor of a response; the stub copies it into shared memory when it sends the response."""
    if not array.flags.writeable:  # NumPy exports no read-only array
        array = array.copy()
    capsule = np.ascontiguousarray(array).__dlpack__()
    tensor = pb_utils.Tensor.from_dlpack(name, capsule)
    set_capsule_name(capsule, TAKEN)
    return tensor
