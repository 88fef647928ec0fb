"""Format ``tf-savedmodel``: a SavedModel's directory; its signature ``serving_default`` is what is served."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import tensorflow as tf
from tensorflow.python.saved_model import revived_types

from triton_converters.contract.conversion_requests import ModelCode
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.incoming import current
from triton_converters.incoming.documents import OpenAxes
from triton_converters.load.graph_inputs import GraphInput
from triton_converters.load.names import tensor_names
from triton_converters.load.tf_framework import TensorFlowFramework
from triton_converters.user.user_code import locate

FILE = "saved_model.pb"
SIGNATURE = "serving_default"


def load(source: Path, model: ModelCode, output_format: str) -> TensorFlowFramework:
    """Open the directory; variables of any type stay as they are.

    ``output_format`` changes nothing. Raises StageError: EntrypointInvalid, CheckpointInvalid (not a SavedModel, or
    one with operators that TensorFlow does not have), EntrypointInvalid (no such signature).
    """
    path = model.entrypoint.path
    directory = locate(source, path, kind=lambda place: (place / FILE).is_file(), pattern=FILE)
    return open_directory(directory, source, path)


def open_directory(directory: Path, source: Path, path: str) -> TensorFlowFramework:
    """Open the SavedModel in ``directory``; ``path``: how messages name it. Raises StageError as ``load`` does."""
    try:
        with current.running(path, f"tensorflow {tf.__version__} opened"):
            loaded = _loaded(directory)
    except Exception as error:
        message = f"{path} is not a SavedModel that TensorFlow {tf.__version__} can read: {_line(error)}"
        raise StageError(Reason.CHECKPOINT_INVALID, message) from error
    signature = loaded.signatures.get(SIGNATURE)
    if signature is None:
        known = ", ".join(loaded.signatures) or "none"
        message = (
            f"{path} has no signature {SIGNATURE}; it has: {known}. Save it with signatures={{{SIGNATURE!r}: ...}}"
        )
        raise StageError(Reason.ENTRYPOINT_INVALID, message)
    _, tensors = signature.structured_input_signature
    names = tensor_names({"inputs": list(tensors), "outputs": list(signature.structured_outputs)}, path)

    def answer(*values: tf.Tensor) -> Any:
        named = dict(zip(names[0], values, strict=True))
        # Triton has no scalars.
        return signature(
            **{name: tf.reshape(each, []) if tensors[name].shape.rank == 0 else each for name, each in named.items()}
        )

    specs = tensors | signature.structured_outputs
    declared = _declared(tensors)
    return TensorFlowFramework(answer, lambda: [loaded], *names, source, path, _open_axes(specs), declared)


class _Optimizer(tf.Module):
    """In place of an optimizer of Keras 2, whose class TensorFlow no longer has: it answers no request."""

    def add_slot(self, var: tf.Variable, slot_name: str) -> tf.Variable:
        """Return where the file's value goes, such as the momentum of a weight."""
        return tf.Variable(tf.zeros_like(var), trainable=False)

    def _create_or_restore_slot_variable(self, **slot: Any) -> None:
        """Leave the value unread."""


@cache
def _know_optimizers() -> None:
    version = revived_types.VersionedTypeRegistration(
        lambda proto: _Optimizer(), version=2, min_producer_version=1, min_consumer_version=1, setter=setattr
    )
    revived_types.register_revived_type("optimizer", lambda each: isinstance(each, _Optimizer), versions=[version])


def _loaded(directory: Path) -> Any:
    try:
        return tf.saved_model.load(str(directory))
    except AttributeError:
        # What Keras 2 wrote after training.
        _know_optimizers()
        return tf.saved_model.load(str(directory))


def _open_axes(specs: Mapping[str, Any]) -> OpenAxes:
    """Return the axes without a size; none for a tensor whose rank is not known either."""
    shapes = {name: spec.shape for name, spec in specs.items()}
    return {
        name: tuple(axis for axis, size in enumerate(shape.as_list()) if size is None)
        for name, shape in shapes.items()
        if shape.rank is not None
    }


def _declared(specs: Mapping[str, Any]) -> tuple[GraphInput, ...]:
    """Return the inputs as the signature declares them; none if one has no rank."""
    if any(spec.shape.rank is None for spec in specs.values()):
        return ()
    return tuple(
        GraphInput(
            name,
            "str" if spec.dtype == tf.string else spec.dtype.name,
            tuple(f"{name}[{axis}]" if size is None else size for axis, size in enumerate(spec.shape.as_list()))
            or (1,),
        )
        for name, spec in specs.items()
    )


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:500] or type(error).__name__
