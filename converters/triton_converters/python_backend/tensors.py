"""Tensors as Triton's Python backend (server 2.51) hands them to a file and takes them from it."""

from typing import Any, Self

import numpy
from numpy.typing import NDArray

CPU = (1, 0)
"""DLPack's number of the CPU, and the device's."""
NUMBERS = "?bBhHiIlLqQefd"
"""NumPy's letters of the numbers that a tensor can hold, in the machine's byte order; text and objects are BYTES."""


class TritonModelException(Exception):  # noqa: N818 - the server's own name
    """What a file raises, or the backend does, if a request cannot be answered."""


class Tensor:
    """A named array; one argument follows the other, and neither has a keyword."""

    __slots__ = ("_array", "_name", "_sent")

    def __init__(self, name: str | bytes, array: NDArray[Any], /) -> None:
        """Raise TypeError for anything but a name and an array, TritonModelException for an array of another type."""
        if not isinstance(name, str | bytes) or not isinstance(array, numpy.ndarray):
            message = f"Tensor(name, array) takes a str and a numpy.ndarray, not {_kind(name)} and {_kind(array)}"
            raise TypeError(message)
        if not _is_supported(array.dtype):
            said = name if isinstance(name, str) else name.decode(errors="replace")
            advice = "write numpy.array(texts, dtype=object)" if array.dtype.kind == "U" else "cast it to another type"
            raise TritonModelException(f"NumPy dtype is not supported. Tensor {said} is {array.dtype}: {advice}")
        if not name:
            raise TritonModelException("Tensor name cannot be an empty string.")
        self._name = name if isinstance(name, str) else name.decode()
        self._array = numpy.ascontiguousarray(array).reshape(array.shape)
        self._sent = self._array.copy() if array.dtype.kind in "OS" else self._array

    def name(self) -> str:
        """Return the name."""
        return self._name

    def shape(self) -> list[int]:
        """Return the sizes of the dimensions."""
        return list(self._array.shape)

    def as_numpy(self) -> NDArray[Any]:
        """Return the array; text in an array of objects stays what it is until the tensor is sent."""
        return self._array

    def as_sent(self) -> NDArray[Any]:
        """Return what is sent: text as it was when the tensor was made, and numbers as they are now."""
        return self._sent

    def is_cpu(self) -> bool:
        """Return True: the reference has no tensor of a GPU."""
        return True

    def triton_dtype(self) -> int:
        """Raise TypeError, as the server does."""
        raise TypeError("Unable to convert function return value to a Python type!")

    def to_dlpack(self) -> Any:
        """Return a capsule of the array's memory."""
        return self.__dlpack__()

    def __dlpack__(self, **_: Any) -> Any:
        if self._array.dtype.kind in "OS":
            raise TritonModelException("DLPack does not have support for string tensors.")
        array = self._array if self._array.flags.writeable else self._array.copy()
        return array.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return CPU

    @classmethod
    def from_dlpack(cls, name: str, tensor: Any, /) -> Self:
        """Return a tensor of a capsule's memory, or of an object that exports one.

        Raises TritonModelException for other objects, and for memory of a GPU or not row by row.
        """
        is_capsule = type(tensor).__name__ == "PyCapsule"
        if not is_capsule and not (hasattr(tensor, "__dlpack__") and hasattr(tensor, "__dlpack_device__")):
            raise TritonModelException("Provided tensor is not supported. Tensor must be a DLPack capsule")
        if not is_capsule and tuple(tensor.__dlpack_device__()) != CPU:
            raise TritonModelException("tensors of a GPU are not supported: the step's tensors are the CPU's")
        array = numpy.from_dlpack(_Capsule(tensor) if is_capsule else tensor)
        if not array.flags.c_contiguous:
            raise TritonModelException("DLPack tensor is not contiguous.")
        return cls(name, numpy.asarray(_Writable(array)))


class _Writable:
    """An array of foreign memory that may be written to, as a server lets a file do; NumPy's own may only be read."""

    def __init__(self, array: NDArray[Any]) -> None:
        self._array = array
        self.__array_interface__ = {**array.__array_interface__, "data": (array.ctypes.data, False)}


class _Capsule:
    """A capsule as NumPy takes one: from an object that exports it."""

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack__(self, **_: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return CPU


def _is_supported(dtype: numpy.dtype[Any]) -> bool:
    return dtype.kind in "OS" or (dtype.char in NUMBERS and dtype.isnative)


def _kind(value: Any) -> str:
    return type(value).__name__
