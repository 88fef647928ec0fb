"""The model outside Triton where TensorFlow runs it: NumPy arrays in and out of a function of tensors."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import tensorflow as tf

from triton_converters.claim_store.dump import Array, Arrays
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.user.user_code import running

# TensorFloat-32 would make the reference itself inexact.
tf.config.experimental.enable_tensor_float_32_execution(False)
# Else every exception comes in colours, with the arguments printed beneath it.
if hasattr(tf.keras, "config"):
    tf.keras.config.disable_traceback_filtering()


@dataclass(frozen=True)
class TensorFlowFramework:
    """A model as it answers requests: fp32 weights, no training."""

    function: Callable[..., Any]
    """Takes one tensor an input, in the order of ``inputs``; gives what ``select_outputs`` takes."""
    state: Callable[[], Sequence[Any]]
    """Variables and tables, all there once the model was called; a SavedModel is written with them."""
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    source: Path
    path: str
    """The user's file or directory below the source, for messages."""

    def __call__(self, inputs: Arrays) -> dict[str, Array]:
        """Outputs by name for inputs by name.

        Raises StageError: FrameworkFailed where the model raises, or returns what cannot be served; UserCodeExited.
        """
        try:
            with running(self.source, self.path, Reason.FRAMEWORK_FAILED):
                answers = self._traced(*(tf.constant(inputs[name]) for name in self.inputs))
                return {name: tensor.numpy() for name, tensor in zip(self.outputs, answers, strict=True)}
        except StageError as error:
            if error.reason is not Reason.FRAMEWORK_FAILED:
                raise
            shapes = ", ".join(f"{name} {inputs[name].dtype}{list(inputs[name].shape)}" for name in self.inputs)
            raise StageError(error.reason, f"{error.message} (inputs: {shapes})") from error

    @cached_property
    def _traced(self) -> Callable[..., tuple[tf.Tensor, ...]]:
        """As Keras' own predict does; eagerly, a functional model would hold all its tensors until it ends.

        Without autograph, which Keras 3 does not let near ``call`` either, exceptions keep the user's file and line.
        """
        traced: Callable[..., tuple[tf.Tensor, ...]] = tf.function(self.answer, autograph=False, reduce_retracing=True)
        return traced

    def answer(self, *tensors: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """Outputs in the order of ``outputs``, for inputs in the order of ``inputs``; eager or traced."""
        return select_outputs(self.function(*tensors), self.outputs)


def select_outputs(result: Any, names: tuple[str, ...]) -> tuple[tf.Tensor, ...]:
    """Tensors in the order of ``names``: of one tensor, a sequence (the first ones) or a dict of the names.

    Raises StageError(FrameworkFailed) where one is missing or no dense tensor.
    """
    values: Sequence[Any]
    if isinstance(result, Mapping):
        missing = [name for name in names if name not in result]
        if missing:
            raise _failed(f"the model returned a dict of {sorted(map(str, result))}, its names are {list(names)}")
        values = [result[name] for name in names]
    else:
        values = result if isinstance(result, tuple | list) else [result]
    if len(values) < len(names):
        raise _failed(f"the model returned {len(values)} outputs, its names are {list(names)}")
    for name, value in zip(names, values, strict=False):
        if not isinstance(value, tf.Tensor):
            message = f"the model returned {type(value).__name__} for the output {name}, not a dense tensor"
            raise _failed(message)
    return tuple(values[: len(names)])


def _failed(message: str) -> StageError:
    return StageError(Reason.FRAMEWORK_FAILED, message)
