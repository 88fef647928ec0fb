"""The model outside Triton, run by TensorFlow: NumPy arrays in and out of a function of tensors."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import tensorflow as tf

from triton_converters.claim_store.dump import Array, Arrays
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.incoming.documents import OpenAxes
from triton_converters.load import binding, gpu
from triton_converters.load.graph_inputs import GraphInput
from triton_converters.load.randomness import of_tensorflow
from triton_converters.model_config.data_types import strings
from triton_converters.user.user_code import running

# TensorFloat-32 would make the reference itself inexact.
tf.config.experimental.enable_tensor_float_32_execution(False)
# Otherwise every exception is coloured and has the arguments printed below it.
if hasattr(tf.keras, "config"):
    tf.keras.config.disable_traceback_filtering()


@dataclass(frozen=True)
class TensorFlowFramework:
    """A model as it answers requests: fp32 weights, no training."""

    function: Callable[..., Any]
    """Takes one tensor for each input, in the order of ``inputs``; returns what ``select_outputs`` takes."""
    state: Callable[[], Sequence[Any]]
    """Returns variables and tables, complete once the model was called; a SavedModel is written with them."""
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    source: Path
    path: str
    """The user's file or directory below the source, for messages."""
    open_axes: OpenAxes = field(default_factory=dict)
    declared: tuple[GraphInput, ...] = ()
    """The inputs as a SavedModel declares them; none for the user's code."""
    _called: list[tf.TensorSpec] = field(default_factory=list)
    """Types and shapes of the inputs of the last call; none before the first."""

    def __post_init__(self) -> None:
        """Raise StageError(GpuUnavailable) if a TensorFlow with CUDA does not see the GPU that the container has."""
        devices = tf.config.list_physical_devices("GPU")
        if devices:
            gpu.note(str(tf.config.experimental.get_device_details(devices[0]).get("device_name", "a GPU")))
        elif gpu.is_given() and tf.test.is_built_with_cuda():
            raise gpu.unseen(f"TensorFlow {tf.__version__}", "its own words are in the log of the container run")

    def __call__(self, inputs: Arrays) -> dict[str, Array]:
        """Return outputs by name for inputs by name.

        Raises StageError: FrameworkFailed if the model raises, or returns what cannot be served; UserCodeFailed.
        """
        try:
            with running(self.source, self.path, Reason.FRAMEWORK_FAILED):
                given = [tf.constant(inputs[name]) for name in self.inputs]
                self._called[:] = map(tf.TensorSpec.from_tensor, given)
                answers = self._traced(*given)
                arrays = [tensor.numpy() for tensor in answers]
                found = [strings(array) if array.dtype.hasobject else array for array in arrays]
                return dict(zip(self.outputs, found, strict=True))
        except StageError as error:
            if error.reason is not Reason.FRAMEWORK_FAILED:
                raise
            shapes = ", ".join(f"{name} {inputs[name].dtype}{list(inputs[name].shape)}" for name in self.inputs)
            raise StageError(error.reason, f"{error.message} (inputs: {shapes})") from error

    @property
    def random(self) -> tuple[str, ...]:
        """The operators of the traced function that draw random numbers, once it was called."""
        if not self._called:
            return ()
        return of_tensorflow(self._traced.get_concrete_function(*self._called).graph.as_graph_def())

    @cached_property
    def _traced(self) -> Any:
        """The traced function, as in Keras' own predict; eagerly, a functional model keeps all tensors until it ends.

        Without autograph, which Keras 3 does not apply to ``call`` either, exceptions keep the user's file and line.
        """
        return tf.function(self.answer, autograph=False, reduce_retracing=True)

    def answer(self, *tensors: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """Return outputs in the order of ``outputs``, for inputs in the order of ``inputs``; eager or traced."""
        return select_outputs(self.function(*tensors), self.outputs)


def select_outputs(result: Any, names: tuple[str, ...]) -> tuple[tf.Tensor, ...]:
    """Return tensors in the order of ``names`` from one tensor, a sequence (its first ones), or by name.

    A dict is asked by name, and so is a named tuple that has them. A number becomes a tensor of one element, because
    Triton has no scalars.

    Raises StageError(FrameworkFailed) if one is missing or is not a dense tensor.
    """
    values: Sequence[Any]
    if isinstance(result, Mapping):
        missing = [name for name in names if name not in result]
        if missing:
            raise _failed(f"the model returned a dict of {sorted(map(str, result))}, but its names are {list(names)}")
        values = [result[name] for name in names]
    else:
        try:
            values = binding.items(result, names) if isinstance(result, tuple | list) else [result]
        except ValueError as error:
            raise _failed(str(error)) from error
    if len(values) < len(names):
        raise _failed(f"the model returned {len(values)} outputs, but its names are {list(names)}")
    for name, value in zip(names, values, strict=False):
        if not isinstance(value, tf.Tensor):
            message = f"the model returned {type(value).__name__} for the output {name}, not a dense tensor"
            raise _failed(message)
    return tuple(tf.reshape(value, [1]) if value.shape.rank == 0 else value for value in values[: len(names)])


def _failed(message: str) -> StageError:
    return StageError(Reason.FRAMEWORK_FAILED, message)
