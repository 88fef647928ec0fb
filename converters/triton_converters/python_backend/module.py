"""The module ``triton_python_backend_utils`` of the reference stage, which has no server.

It answers as that of server 2.51 does. What a step must not do raises TritonModelException: ask a model that it does
not call, load one, send responses by itself, take part in a sequence, or be scheduled again.
"""

import json
import struct
import sys
from collections.abc import Mapping
from enum import IntEnum
from types import ModuleType
from typing import Any, ClassVar

import numpy

from triton_converters.python_backend import completion
from triton_converters.python_backend.messages import (
    GPU_MEMORY,
    InferenceRequest,
    InferenceResponse,
    PreferredMemory,
    TritonError,
    refuse,
)
from triton_converters.python_backend.tensors import Tensor, TritonModelException

NAME = "triton_python_backend_utils"


class _Level(IntEnum):
    """How much a message matters."""

    INFO = 0
    WARNING = 1
    ERROR = 2
    VERBOSE = 3


class Logger:
    """The server's log; here it is what the process prints."""

    LogLevel: ClassVar = _Level
    INFO: ClassVar = _Level.INFO
    WARNING: ClassVar = _Level.WARNING
    ERROR: ClassVar = _Level.ERROR
    VERBOSE: ClassVar = _Level.VERBOSE

    @staticmethod
    def log(message: str | bytes, level: _Level = _Level.INFO) -> None:
        """Print a message; raises TypeError for anything but text."""
        if not isinstance(message, str | bytes):
            raise TypeError(f"log takes a str, not {type(message).__name__}")
        text = message if isinstance(message, str) else message.decode(errors="replace")
        if level != _Level.VERBOSE:
            print(f"{level.name} {text}", file=sys.stderr, flush=True)

    @staticmethod
    def log_info(message: str) -> None:
        """Print a message of the level INFO."""
        Logger.log(message, _Level.INFO)

    @staticmethod
    def log_warn(message: str) -> None:
        """Print a message of the level WARNING."""
        Logger.log(message, _Level.WARNING)

    @staticmethod
    def log_error(message: str) -> None:
        """Print a message of the level ERROR."""
        Logger.log(message, _Level.ERROR)

    @staticmethod
    def log_verbose(message: str) -> None:
        """Print nothing, as a server does by default."""
        Logger.log(message, _Level.VERBOSE)


class Metric:
    """A figure, which nobody reads here."""

    def __init__(self, labels: Mapping[str, str]) -> None:
        self._value = 0.0
        self._labels = dict(labels)

    def value(self) -> float:
        """Return the figure."""
        return self._value

    def increment(self, value: float) -> None:
        """Add to the figure."""
        self._value += value

    def set(self, value: float) -> None:
        """Replace the figure."""
        self._value = float(value)

    def observe(self, value: float) -> None:
        """Count an observation of a histogram."""
        self._value += value


class MetricFamily:
    """Figures of one name."""

    COUNTER, GAUGE, HISTOGRAM = range(3)

    def __init__(self, name: str, description: str, kind: int) -> None:
        self._name, self._description, self._kind = name, description, kind

    def Metric(self, labels: Mapping[str, str] | None = None, **_: Any) -> Metric:  # noqa: N802 - the server's own name
        """Return the figure with these labels."""
        return Metric(labels or {})


def get_input_tensor_by_name(inference_request: InferenceRequest, name: str) -> Tensor | None:
    """Return an input of a request; None: it has none of that name."""
    return next((each for each in inference_request.inputs() if each.name() == name), None)


def get_output_tensor_by_name(inference_response: InferenceResponse, name: str) -> Tensor | None:
    """Return an output of a response; None: it has none of that name."""
    return next((each for each in inference_response.output_tensors() if each.name() == name), None)


def load_model(*_: Any, **__: Any) -> None:
    """Raise TritonModelException: a server's models are those of its revision."""
    raise refuse("loading a model (load_model)")


def unload_model(*_: Any, **__: Any) -> None:
    """Raise TritonModelException: a server's models are those of its revision."""
    raise refuse("unloading a model (unload_model)")


def is_model_ready(*_: Any, **__: Any) -> bool:
    """Raise TritonModelException: a server answers by which models it has loaded so far, and a reference has none."""
    raise refuse("asking whether a model is loaded, also one of calls (is_model_ready)")


def get_model_dir() -> str:
    """Raise TritonModelException until a step is loaded, which replaces this function."""
    raise TritonModelException("no model is loaded")


PARTS: tuple[Any, ...] = (
    Tensor,
    InferenceRequest,
    InferenceResponse,
    TritonError,
    TritonModelException,
    Logger,
    MetricFamily,
    PreferredMemory,
    get_input_tensor_by_name,
    get_output_tensor_by_name,
    load_model,
    unload_model,
    is_model_ready,
    get_model_dir,
    completion.ModelConfig,
    completion.get_input_config_by_name,
    completion.get_output_config_by_name,
    completion.using_decoupled_model_transaction_policy,
    completion.triton_to_numpy_type,
    completion.numpy_to_triton_type,
    completion.triton_string_to_numpy,
    completion.serialize_byte_tensor,
    completion.deserialize_bytes_tensor,
)
"""What the module has under its own names."""


def install() -> ModuleType:
    """Let user code import the module under its name, from now on; returns it."""
    module = ModuleType(NAME, __doc__)
    vars(module).update({each.__name__: each for each in PARTS})
    vars(module).update(
        TRITON_STRING_TO_NUMPY=dict(completion.NUMPY_BY_NAME),
        TRITONSERVER_MEMORY_CPU=0,
        TRITONSERVER_MEMORY_GPU=GPU_MEMORY,
        TRITONSERVER_REQUEST_FLAG_SEQUENCE_START=1,
        TRITONSERVER_REQUEST_FLAG_SEQUENCE_END=2,
        TRITONSERVER_REQUEST_RELEASE_ALL=1,
        TRITONSERVER_REQUEST_RELEASE_RESCHEDULE=2,
        TRITONSERVER_RESPONSE_COMPLETE_FINAL=1,
        np=numpy,
        json=json,
        struct=struct,
    )
    sys.modules[NAME] = module
    return module
