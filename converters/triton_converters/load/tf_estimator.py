"""Format ``tf-estimator``: ``get_model`` returns an Estimator, ``get_serving_input_receiver_fn`` its input receiver."""

import inspect
import tempfile
from pathlib import Path

import tensorflow as tf

from triton_converters.contract.conversion_requests import Entrypoint, ModelCode
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.load.tf_framework import TensorFlowFramework
from triton_converters.load.tf_savedmodel import open_directory
from triton_converters.user import user_code

RECEIVER = "get_serving_input_receiver_fn"


def load(source: Path, model: ModelCode, output_format: str) -> TensorFlowFramework:
    """Export the Estimator as a SavedModel with its own method, and open that.

    Raises StageError: ConversionUnsupported if this TensorFlow has no Estimators (2.16 removed them),
    EntrypointInvalid (get_model does not return one), UserCodeFailed, and what ``user_code.call`` and
    ``tf_savedmodel.open_directory`` raise.
    """
    path = model.entrypoint.path
    if not hasattr(tf, "estimator"):
        message = f"{path}: TensorFlow {tf.__version__} has no Estimators; 2.15 is the last version that has them"
        advice = "export it there (export_saved_model) and use format tf-savedmodel, or set spec.conversion.image"
        raise StageError(Reason.CONVERSION_UNSUPPORTED, f"{message}; {advice}")
    stage: dict[str, int | str] = {
        "precision": "fp32",
        "output_format": output_format,
        "batch_size": max(1, model.max_batch_size),
    }
    of_model, of_receiver = _divide(source, model.entrypoint)
    returned = user_code.call(source, of_model, "get_model", stage)
    estimator = returned[0] if isinstance(returned, tuple | list) and returned else returned
    if not isinstance(estimator, tf.estimator.Estimator | tf.compat.v1.estimator.Estimator):
        message = f"{path}: get_model returned {type(estimator).__name__}, not an Estimator"
        raise StageError(Reason.ENTRYPOINT_INVALID, message)
    # The receiver gets no batch size: that of the served tensors is not fixed.
    stage.pop("batch_size")
    receiver = user_code.call(source, of_receiver, RECEIVER, stage)
    with user_code.running(source, path):
        directory = estimator.export_saved_model(tempfile.mkdtemp(), receiver)
    return open_directory(Path(directory.decode() if isinstance(directory, bytes) else directory), source, path)


def _divide(source: Path, entrypoint: Entrypoint) -> tuple[Entrypoint, Entrypoint]:
    """Divide the spec's arguments between get_model and the receiver's function; one may go to both.

    Arguments that neither takes go to get_model, whose refusal names them.
    """
    module = user_code.load(source, entrypoint.path)
    taken = {
        name: set(inspect.signature(function).parameters)
        for name in ("get_model", RECEIVER)
        if callable(function := getattr(module, name, None))
    }
    of_receiver = {name: value for name, value in entrypoint.arguments.items() if name in taken.get(RECEIVER, ())}
    of_model = {
        name: value
        for name, value in entrypoint.arguments.items()
        if name not in of_receiver or name in taken.get("get_model", ())
    }
    return Entrypoint(entrypoint.path, of_model), Entrypoint(entrypoint.path, of_receiver)
