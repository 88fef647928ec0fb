"""Requests, responses and errors as Triton's Python backend (server 2.51) has them, and what a reference refuses."""

import json
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, ClassVar

from triton_converters.python_backend.tensors import Tensor, TritonModelException

refusals: list[str] = []
"""What a file asked for that no step may, in words; kept because the file may catch the exception."""


def refuse(what: str) -> TritonModelException:
    """Return the exception for something that a step must not do, and note it."""
    message = f"{what} is not supported in a Python step"
    refusals.append(message)
    return TritonModelException(message)


class ErrorCode(Enum):
    """Codes of errors."""

    UNKNOWN = 0
    INTERNAL = 1
    NOT_FOUND = 2
    INVALID_ARG = 3
    UNAVAILABLE = 4
    UNSUPPORTED = 5
    ALREADY_EXISTS = 6
    CANCELLED = 7

    def __int__(self) -> int:
        return int(self.value)


class TritonError:
    """The error that a response holds; it is no exception, so it cannot be raised."""

    UNKNOWN: ClassVar = ErrorCode.UNKNOWN
    INTERNAL: ClassVar = ErrorCode.INTERNAL
    NOT_FOUND: ClassVar = ErrorCode.NOT_FOUND
    INVALID_ARG: ClassVar = ErrorCode.INVALID_ARG
    UNAVAILABLE: ClassVar = ErrorCode.UNAVAILABLE
    UNSUPPORTED: ClassVar = ErrorCode.UNSUPPORTED
    ALREADY_EXISTS: ClassVar = ErrorCode.ALREADY_EXISTS
    CANCELLED: ClassVar = ErrorCode.CANCELLED

    def __init__(self, message: str, code: ErrorCode = ErrorCode.INTERNAL) -> None:
        """Raise TypeError for another message than text, and another code than one of the class's."""
        if not isinstance(message, str | bytes) or not isinstance(code, ErrorCode):
            raise TypeError("TritonError(message, code) takes a str and one of TritonError's codes")
        self._message, self._code = message if isinstance(message, str) else message.decode(), code

    def message(self) -> str:
        """Return the text."""
        return self._message

    def code(self) -> ErrorCode:
        """Return the code."""
        return self._code


class InferenceResponse:
    """The answer to a request: tensors, or an error."""

    def __init__(self, output_tensors: Sequence[Tensor] = (), error: TritonError | None = None) -> None:
        """Raise TypeError for anything but a sequence of tensors, and another error than a TritonError."""
        is_sequence = isinstance(output_tensors, list | tuple)
        if not is_sequence or not all(isinstance(each, Tensor) for each in output_tensors):
            raise TypeError("InferenceResponse takes a list of pb_utils.Tensor")
        if error is not None and not isinstance(error, TritonError):
            raise TypeError(f"the error of an InferenceResponse is a pb_utils.TritonError, not {type(error).__name__}")
        self._tensors, self._error = list(output_tensors), error

    def output_tensors(self) -> list[Tensor]:
        """Return the tensors."""
        return self._tensors

    def has_error(self) -> bool:
        """Whether there is an error."""
        return self._error is not None

    def error(self) -> TritonError | None:
        """Return the error, if there is one."""
        return self._error


class InferenceRequest:
    """A request, which the reference makes. A file can make one, but ask no other model with it."""

    def __init__(
        self,
        *,
        inputs: Sequence[Tensor],
        requested_output_names: Sequence[str],
        model_name: str,
        request_id: str = "",
        correlation_id: int | str = 0,
        parameters: Mapping[str, bool | int | str] | None = None,
        **_: Any,
    ) -> None:
        """Raise TritonModelException for a parameter that is no bool, int or str."""
        for value in (parameters or {}).values():
            if not isinstance(value, bool | int | str):
                message = f"Expect parameters values to have type bool/int/str, found type {type(value)}"
                raise TritonModelException(message)
        self._inputs, self._outputs = list(inputs), set(requested_output_names)
        self._id, self._correlation, self._parameters = request_id, correlation_id, dict(parameters or {})

    def inputs(self) -> list[Tensor]:
        """Return the inputs."""
        return self._inputs

    def request_id(self) -> str:
        """Return the client's name of the request."""
        return self._id

    def correlation_id(self) -> int | str:
        """Return the number of the sequence, of which a step has none."""
        return self._correlation

    def requested_output_names(self) -> set[str]:
        """Return the names of the outputs that the client wants."""
        return set(self._outputs)

    def parameters(self) -> str:
        """Return the request's parameters as JSON."""
        return json.dumps(self._parameters)

    def flags(self) -> int:
        """Return 0: a step has no sequence."""
        return 0

    def timeout(self) -> int:
        """Return 0: there is no limit."""
        return 0

    def trace(self) -> None:
        """Return None: nothing is traced."""

    def is_cancelled(self) -> bool:
        """Return False: nobody cancels a request of the reference."""
        return False

    def set_flags(self, flags: int) -> None:
        """Raise TritonModelException: flags mark sequences."""
        raise refuse("a sequence (InferenceRequest.set_flags)")

    def set_release_flags(self, flags: int) -> None:
        """Raise TritonModelException: a request that is scheduled again has no end that a reference knows."""
        raise refuse("rescheduling (InferenceRequest.set_release_flags)")

    def get_response_sender(self) -> Any:
        """Raise TritonModelException: a step answers by what execute returns."""
        raise refuse("a response sender (InferenceRequest.get_response_sender)")

    def exec(self, decoupled: bool = False) -> Any:
        """Raise TritonModelException: a step asks no other model."""
        raise refuse("asking another model (InferenceRequest.exec)")

    async def async_exec(self, decoupled: bool = False) -> Any:
        """Raise TritonModelException: a step asks no other model."""
        raise refuse("asking another model (InferenceRequest.async_exec)")
