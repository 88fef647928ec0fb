"""Requests, responses and errors as Triton's Python backend (server 2.51) has them, and what a reference refuses."""

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import Enum
from typing import Any, ClassVar

import numpy

from triton_converters.python_backend.tensors import Tensor, TritonModelException

refusals: list[str] = []
"""What a file asked for that no step may, in words; kept because the file may catch the exception."""


def refuse(what: str) -> TritonModelException:
    """Return the exception for something that a step must not do, and note it."""
    return refused(f"{what} is not supported in a Python step")


def refused(message: str) -> TritonModelException:
    """Return the exception with this message, and note it."""
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


# The server's own name, which str() of a code shows.
ErrorCode.__name__ = "__ErrorCode"


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
        self._message = message if isinstance(message, str) else message.decode()
        self._code = code

    def message(self) -> str:
        """Return the text."""
        return self._message

    def code(self) -> ErrorCode:
        """Return the code."""
        return self._code


class InferenceResponse:
    """The answer to a request: tensors, or an error."""

    def __init__(
        self,
        output_tensors: Sequence[Tensor] = (),
        error: TritonError | None = None,
        parameters: Mapping[str, bool | int | str] | None = None,
    ) -> None:
        """Raise TypeError for anything but a sequence of tensors, and another error than a TritonError.

        Servers before release 25.02 take no parameters; there a step's are left out (``user_step``).
        """
        is_sequence = isinstance(output_tensors, list | tuple)
        if not is_sequence or not all(isinstance(each, Tensor) for each in output_tensors):
            raise TypeError("InferenceResponse takes a list of pb_utils.Tensor")
        if error is not None and not isinstance(error, TritonError):
            raise TypeError(f"the error of an InferenceResponse is a pb_utils.TritonError, not {type(error).__name__}")
        self._tensors = list(output_tensors)
        self._error = error
        self._parameters = dict(parameters or {})

    def parameters(self) -> str:
        """Return the response's parameters as JSON."""
        return json.dumps(self._parameters)

    def output_tensors(self) -> list[Tensor]:
        """Return the tensors."""
        return self._tensors

    def has_error(self) -> bool:
        """Whether there is an error."""
        return self._error is not None

    def error(self) -> TritonError | None:
        """Return the error, if there is one."""
        return self._error


class InferenceTrace:
    """The trace of a request; nothing is traced here."""

    def get_context(self) -> None:
        """Return None: there is no context of a trace."""


GPU_MEMORY = 2
"""TRITONSERVER_MEMORY_GPU."""


class PreferredMemory:
    """Where the answer of another model should lie; a reference has the CPU's memory alone."""

    def __init__(self, preferred_memory_type: int, preferred_device_id: int = 0) -> None:
        self.is_gpu = preferred_memory_type == GPU_MEMORY


class InferenceRequest:
    """A request that a file makes, to ask another model, or that a step receives."""

    def __init__(  # noqa: PLR0913 - the server's own arguments
        self,
        request_id: str = "",
        correlation_id: int | str = 0,
        inputs: Sequence[Tensor] | None = None,
        requested_output_names: Sequence[str] | None = None,
        model_name: str | bytes | None = None,
        model_version: int = -1,
        flags: int = 0,
        timeout: int = 0,
        preferred_memory: PreferredMemory | None = None,
        trace: InferenceTrace | None = None,
        parameters: Mapping[str, bool | int | str] | None = None,
    ) -> None:
        """Raise TritonModelException for a parameter that is no bool, int or str; TypeError for what is no sequence.

        The server's order has arguments that must be given behind some that need not.

        The server's own ``requested_output_names()`` is a set, and so no sequence.
        """
        for name, given in (("inputs", inputs), ("requested_output_names", requested_output_names)):
            if given is None or not isinstance(given, Sequence | numpy.ndarray) or isinstance(given, str | bytes):
                raise TypeError(f"{name} of an InferenceRequest is a list, not {type(given).__name__}: write list(...)")
        if not isinstance(correlation_id, int | str):
            raise TritonModelException("Correlation ID must be integer or string")
        for value in (parameters or {}).values():
            if not isinstance(value, bool | int | str):
                message = f"Expect parameters values to have type bool/int/str, found type {type(value)}"
                raise TritonModelException(message)
        if model_name is None:
            raise TypeError("an InferenceRequest needs a model_name")
        self._trace = trace or InferenceTrace()
        self._inputs, self._outputs = list(inputs or ()), set(requested_output_names or ())
        self._id = request_id
        self._correlation = correlation_id
        self._parameters = dict(parameters or {})
        model_name = model_name.decode() if isinstance(model_name, bytes) else model_name
        self._model, self._version, self._flags, self._timeout = model_name, model_version, flags, timeout
        self._memory = preferred_memory

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
        """Return the flags of a sequence, of which a step has none: 0."""
        return self._flags

    def timeout(self) -> int:
        """Return the microseconds that the request may wait; 0: there is no limit. A reference lets none end."""
        return self._timeout

    def trace(self) -> InferenceTrace:
        """Return the trace that was given, or one of nothing."""
        return self._trace

    def is_cancelled(self) -> bool:
        """Raise TritonModelException: a server ends if it is asked this of a request that a file made."""
        raise refused("is_cancelled of a request that the code made itself ends a server: ask those of execute alone")

    def set_flags(self, flags: int) -> None:
        """Set no flags; raises TritonModelException for any, which mark sequences."""
        if flags:
            raise refuse("a sequence (InferenceRequest.set_flags)")
        self._flags = 0

    def set_release_flags(self, flags: int) -> None:
        """Raise TritonModelException: a request that is scheduled again has no end that a reference knows."""
        raise refuse("rescheduling (InferenceRequest.set_release_flags)")

    def get_response_sender(self) -> Any:
        """Raise TritonModelException: a step answers by what execute returns."""
        raise refuse("a response sender (InferenceRequest.get_response_sender)")

    def exec(self, decoupled: bool = False) -> InferenceResponse:
        """Return the answer of the model that is named, or an error as its response.

        Raises TritonModelException for a model that the step does not call, and for what no step may ask for.
        """
        if not _answering:
            raise refuse("asking another model outside execute (InferenceRequest.exec)")
        if decoupled:
            raise refuse("asking for several responses (decoupled=True of InferenceRequest.exec)")
        if self._flags:
            raise refuse("a sequence (flags of InferenceRequest)")
        if self._memory is not None and self._memory.is_gpu:
            raise refuse("an answer in the memory of a GPU (preferred_memory of InferenceRequest)")
        if self._version not in (-1, 1):
            which = f"version {self._version} of model {self._model}"
            raise refused(f"it asks {which}, but a server has version 1 alone: leave out model_version")
        return _answering[-1](self._model, self)

    def async_exec(self, decoupled: bool = False) -> "asyncio.Future[InferenceResponse]":
        """Return what ``exec`` returns or raises, to be awaited; raises RuntimeError outside a coroutine."""
        future: asyncio.Future[InferenceResponse] = asyncio.get_running_loop().create_future()
        try:
            future.set_result(self.exec(decoupled))
        except Exception as error:
            future.set_exception(error)
        return future


class ReceivedRequest(InferenceRequest):
    """A request that a step receives, which the reference makes."""

    def is_cancelled(self) -> bool:
        """Return False: nobody cancels a request of the reference."""
        return False


CallModel = Callable[[str, InferenceRequest], InferenceResponse]
"""Answers a request to the model of that name."""
_answering: list[CallModel] = []
"""What answers the requests that a file makes; empty unless a step's execute runs."""


@contextmanager
def answering(answer: CallModel) -> Iterator[None]:
    """Let the file that runs ask other models, from now on."""
    _answering.append(answer)
    try:
        yield
    finally:
        _answering.pop()
