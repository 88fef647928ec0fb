"""Format ``tf-keras``: a Python file whose ``get_model`` returns a Keras model, with or without its tensors' names."""

import inspect
import re
import traceback
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import tensorflow as tf

from triton_converters.contract.conversion_requests import ModelCode
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.load import binding, get_model
from triton_converters.load.names import FORM, tensor_names
from triton_converters.load.tf_framework import TensorFlowFramework

_NARROW = frozenset({"float16", "bfloat16"})
_READERS = re.compile(r"/(keras/src|keras|tf_keras/src)/(legacy/)?(saving|models|utils/io_utils)|/(h5py|safetensors)/")
"""Matches the library files that read checkpoints."""


def load(source: Path, model: ModelCode, output_format: str) -> TensorFlowFramework:
    """Call get_model and take its model in fp32.

    ``output_format`` is offered to get_model as an argument. Raises StageError: what ``get_model.returned`` raises,
    CheckpointInvalid, PickleRefused (a layer that is stored as code), EntrypointInvalid (no Keras model, no names,
    names that contradict the model's order, or a model that computes in fp16).
    """
    path = model.entrypoint.path
    returned = get_model.returned(source, model, output_format, partial(_checkpoint_error, source))
    keras_model, given = returned if isinstance(returned, tuple | list) and len(returned) == 2 else (returned, None)
    if not isinstance(keras_model, tf.keras.Model):
        raise _invalid(f"{path}: get_model returned {type(keras_model).__name__}; return a keras.Model, or {FORM}")
    for layer in keras_model._flatten_layers():  # noqa: SLF001 - no public name goes into nested layers
        if str(layer.compute_dtype) in _NARROW:
            message = f"layer {layer.name} computes in {layer.compute_dtype}, but the reference runs in fp32"
            raise _invalid(
                f"{path}: {message}; build it without that policy, since the converters cast for fp16 candidates"
            )
    own = given is None
    names = tensor_names(_own_names(keras_model, path) if own else given, path)
    try:
        function = _function(keras_model, *names)
    except ValueError as error:
        raise _invalid(f"{path}: {error}") from error
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


Arguments = tuple[tuple[Any, ...], dict[str, Any]]
"""What is passed by position, and what by name."""


def _function(model: Any, inputs: tuple[str, ...], outputs: tuple[str, ...]) -> Callable[..., Any]:
    """Return the model as a function of one tensor for each input, in the order of the names.

    Raises ValueError if the names contradict the order of the model's own.
    """
    arguments = _arguments(model, inputs)
    own = _output_names(model)
    at = binding.places(outputs, own, "the model's outputs") if len(outputs) <= len(own) else ()

    def answer(*tensors: tf.Tensor) -> Any:
        positional, by_name = arguments(tensors)
        result = model(*positional, **by_name, training=False)
        if at and isinstance(result, tuple | list) and len(result) == len(own):
            return [result[place] for place in at]
        return result

    return answer


def _output_names(model: Any) -> Sequence[str]:
    """Return the model's own names of its outputs; none if it has none, or answers with a dict."""
    if isinstance(model, tf.keras.Sequential) or not getattr(model, "inputs", None):
        return ()
    return () if isinstance(model.output, Mapping) else list(model.output_names)


def _arguments(model: Any, names: tuple[str, ...]) -> Callable[[Sequence[tf.Tensor]], Arguments]:
    """Return what makes the model's arguments of tensors in the order of ``names``.

    They are the model's own structure, one argument for each tensor, or one dict by name. Raises ValueError.
    """
    is_functional = bool(getattr(model, "inputs", None))
    if isinstance(model, tf.keras.Sequential) or (len(names) == 1 and not is_functional):
        return lambda tensors: (tuple(tensors), {})
    if is_functional:
        structure = model.input
        own = list(structure) if isinstance(structure, Mapping) else [tensor.name for tensor in model.inputs]
        at = binding.places(names, own, "the model's inputs")
        if isinstance(structure, Mapping):
            return lambda tensors: (({own[place]: each for place, each in zip(at, tensors, strict=True)},), {})
        order = sorted(range(len(names)), key=at.__getitem__)
        return lambda tensors: ((tf.nest.pack_sequence_as(structure, [tensors[index] for index in order]),), {})
    parameters = [
        parameter
        for name, parameter in inspect.signature(model.call).parameters.items()
        if parameter.kind in binding.POSITIONAL and name not in ("training", "mask")
    ]
    if len(parameters) < len(names):
        return lambda tensors: ((dict(zip(names, tensors, strict=True)),), {})
    if binding.keywords(names, parameters, "the parameters of call"):
        return lambda tensors: ((), dict(zip(names, tensors, strict=True)))
    return lambda tensors: (tuple(tensors), {})


def _state(model: Any) -> list[Any]:
    """Return what a SavedModel keeps; the model itself would be traced again, with Keras' own call."""
    kinds = (tf.Variable, tf.saved_model.experimental.TrackableResource)
    own = [each for each in tf.train.TrackableView(model).descendants() if isinstance(each, kinds)]
    # Keras 3 wraps its variables.
    return [each if isinstance(each, tf.Variable) else each.value for each in model.variables] + own


def _checkpoint_error(source: Path, cause: BaseException, where: str, checkpoint: str) -> StageError | None:
    frames = [frame.filename for frame in traceback.extract_tb(cause.__traceback__)]
    text = " ".join(str(cause).split())
    read = any(map(_READERS.search, frames)) or type(cause).__name__ == "SafetensorError"
    if not read or (frames and Path(frames[-1]).is_relative_to(source)):
        return None
    if ("ambda" in text and "safe_mode" in text) or "unsafe" in text:
        message = f"{where}: {checkpoint} holds Python code (such as a Lambda layer); it was not executed"
        return StageError(
            Reason.PICKLE_REFUSED, f"{message}. Write the layer as a class in the source, and save the model again"
        )
    return StageError(Reason.CHECKPOINT_INVALID, f"{where}: {checkpoint} cannot be read into the model: {text:.600}")


def _invalid(message: str) -> StageError:
    return StageError(Reason.ENTRYPOINT_INVALID, message)
