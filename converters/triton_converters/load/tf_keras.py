"""Format ``tf-keras``: a Python file whose ``get_model`` returns a Keras model, with or without its tensors' names."""

import inspect
import re
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tensorflow as tf

from triton_converters.contract.conversion_requests import Entrypoint, ModelCode
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.load.names import FORM, tensor_names
from triton_converters.load.tf_framework import TensorFlowFramework
from triton_converters.user.user_code import CHECKPOINT_ARGUMENTS, call, location

_NARROW = frozenset({"float16", "bfloat16"})
_READERS = re.compile(r"/(keras/src|keras|tf_keras/src)/(legacy/)?(saving|models|utils/io_utils)|/(h5py|safetensors)/")
"""Matches the library files that read checkpoints."""


def load(source: Path, model: ModelCode, output_format: str) -> TensorFlowFramework:
    """Call get_model and take its model in fp32.

    ``output_format`` is offered to get_model as an argument. Raises StageError: what ``user_code.call`` raises,
    CheckpointInvalid, PickleRefused (a layer that is stored as code), EntrypointInvalid (no Keras model, no names, or a
    model that computes in fp16).
    """
    path = model.entrypoint.path
    stage: dict[str, int | str] = {
        "precision": "fp32",
        "output_format": output_format,
        "batch_size": max(1, model.max_batch_size),
    }
    try:
        returned = call(source, model.entrypoint, "get_model", stage)
    except StageError as error:
        raise _checkpoint_error(error, source, model.entrypoint) or error from error.__cause__
    keras_model, given = returned if isinstance(returned, tuple | list) and len(returned) == 2 else (returned, None)
    if not isinstance(keras_model, tf.keras.Model):
        raise _invalid(f"{path}: get_model returned {type(keras_model).__name__}; return a keras.Model, or {FORM}")
    for layer in keras_model._flatten_layers():
        if str(layer.compute_dtype) in _NARROW:
            message = f"layer {layer.name} computes in {layer.compute_dtype}, but the reference runs in fp32"
            raise _invalid(
                f"{path}: {message}; build it without that policy, since the converters cast for fp16 candidates"
            )
    own = given is None
    names = tensor_names(_own_names(keras_model, path) if own else given, path)
    function = _function(keras_model, names[0])
    return TensorFlowFramework(function, lambda: _state(keras_model), *names, source, path)


def _own_names(model: Any, path: str) -> dict[str, list[str]]:
    """Return the keys of dicts, else the names of the tensors that the model was made from."""
    if not getattr(model, "inputs", None):
        message = f"{type(model).__name__} does not name its tensors, as it is not a functional model"
        raise _invalid(f"{path}: {message}; return {FORM}")
    if isinstance(model, tf.keras.Sequential):
        return {"inputs": [model.inputs[0].name], "outputs": [model.layers[-1].name]}
    inputs, outputs = model.input, model.output
    return {
        "inputs": list(inputs) if isinstance(inputs, Mapping) else [tensor.name for tensor in model.inputs],
        "outputs": list(outputs) if isinstance(outputs, Mapping) else list(model.output_names),
    }


def _function(model: Any, names: tuple[str, ...]) -> Any:
    """Return the model as a function of one tensor for each input, in the order of the names."""

    def answer(*tensors: tf.Tensor) -> Any:
        return model(*_arguments(model, names, tensors), training=False)

    return answer


def _arguments(model: Any, names: tuple[str, ...], tensors: tuple[tf.Tensor, ...]) -> tuple[Any, ...]:
    """Return the model's arguments: its own structure, one argument for each tensor, or one dict by name."""
    if isinstance(model, tf.keras.Sequential) or (len(tensors) == 1 and not getattr(model, "inputs", None)):
        return tensors
    if getattr(model, "inputs", None):
        structure = model.input
        if isinstance(structure, Mapping):
            keys = names if set(names) == set(structure) else tuple(structure)
            return (dict(zip(keys, tensors, strict=True)),)
        return (tf.nest.pack_sequence_as(structure, tensors),)
    parameters = [
        name
        for name, parameter in inspect.signature(model.call).parameters.items()
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
        and name not in ("training", "mask")
    ]
    if len(parameters) >= len(tensors):
        return tensors
    return (dict(zip(names, tensors, strict=True)),)


def _state(model: Any) -> list[Any]:
    """Return what a SavedModel keeps; the model itself would be traced again, with Keras' own call."""
    kinds = (tf.Variable, tf.saved_model.experimental.TrackableResource)
    own = [each for each in tf.train.TrackableView(model).descendants() if isinstance(each, kinds)]
    # Keras 3 wraps its variables.
    return [each if isinstance(each, tf.Variable) else each.value for each in model.variables] + own


def _checkpoint_error(error: StageError, source: Path, entrypoint: Entrypoint) -> StageError | None:
    """Return a more precise error if the user's code failed because of the checkpoint, else None."""
    cause = error.__cause__
    if error.reason is not Reason.USER_CODE_FAILED or cause is None:
        return None
    frames = [frame.filename for frame in traceback.extract_tb(cause.__traceback__)]
    where, text = location(cause, source, entrypoint.path), " ".join(str(cause).split())
    named = [value for name, value in entrypoint.arguments.items() if name in CHECKPOINT_ARGUMENTS]
    what = " ".join(["the checkpoint", *named])
    read = any(map(_READERS.search, frames)) or type(cause).__name__ == "SafetensorError"
    if not read or (frames and Path(frames[-1]).is_relative_to(source)):
        return None
    if ("ambda" in text and "safe_mode" in text) or "unsafe" in text:
        message = f"{where}: {what} holds Python code (such as a Lambda layer); it was not executed"
        return StageError(
            Reason.PICKLE_REFUSED, f"{message}. Write the layer as a class in the source, and save the model again"
        )
    return StageError(Reason.CHECKPOINT_INVALID, f"{where}: {what} cannot be read into the model: {text:.600}")


def _invalid(message: str) -> StageError:
    return StageError(Reason.ENTRYPOINT_INVALID, message)
