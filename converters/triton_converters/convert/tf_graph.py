"""A TensorFlow model as one traced function behind the signature, live or frozen into constants."""

import re
from dataclasses import dataclass
from typing import Any, cast

import tensorflow as tf
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import Signature, Tensor
from triton_converters.convert.task import Task
from triton_converters.load.tf_framework import TensorFlowFramework
from triton_converters.model_config.data_types import BYTES, numpy_type

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


@dataclass(frozen=True)
class FrozenGraph:
    """A graph with constants instead of variables and with inlined functions."""

    graph: Any
    """The GraphDef."""
    inputs: tuple[str, ...]
    """Names of the graph's input tensors, in the signature's order."""
    outputs: tuple[str, ...]


def specifications(task: Task) -> dict[str, tf.TensorSpec]:
    """Return type and dimensions of every input by name; None: varies."""
    return {
        tensor.name: tf.TensorSpec(shape(tensor, task.signature), _type(tensor), tensor.name)
        for tensor in task.signature.inputs
    }


def _type(tensor: Tensor) -> tf.DType:
    return tf.string if tensor.data_type == BYTES else tf.as_dtype(numpy_type(tensor.data_type))


def shape(tensor: Tensor, signature: Signature) -> tuple[int | None, ...]:
    """Return the shape of the whole tensor, including the batch; None: varies."""
    batch = (None,) if signature.max_batch_size else ()
    return (*batch, *(None if dim == -1 else dim for dim in tensor.dims))


def answer(task: Task) -> Any:
    """Return the model as a function from tensors by name to tensors by name, in the signature's order."""
    framework = cast(TensorFlowFramework, task.framework)

    def serve(**tensors: tf.Tensor) -> dict[str, tf.Tensor]:
        answers = framework.answer(*(tensors[name] for name in framework.inputs))
        return dict(zip(framework.outputs, answers, strict=True))

    return serve


def trace(task: Task, function: Any) -> Any:
    """Return the concrete function of ``function`` for the signature.

    Raises StageError: ConversionUnsupported, ConversionFailed (an output has another type, or a fixed dimension that
    varies); what TensorFlow raises.
    """
    for tensor in task.signature.inputs:
        _check_name(tensor.name)
    concrete = tf.function(function, autograph=False).get_concrete_function(**specifications(task))
    for tensor in task.signature.outputs:
        _check_output(tensor, concrete.structured_outputs[tensor.name], task.signature)
    return concrete


def freeze(task: Task, *, lower_control_flow: bool) -> FrozenGraph:
    """Trace and freeze; with ``lower_control_flow`` loops and branches become operators of the one graph.

    Raises StageError: ConversionFailed, ConversionUnsupported (state that is not a variable); what TensorFlow raises.
    """
    names = [tensor.name for tensor in task.signature.inputs]
    framework = cast(TensorFlowFramework, task.framework)

    def positional(*tensors: tf.Tensor) -> list[tf.Tensor]:
        given = dict(zip(names, tensors, strict=True))
        answers = dict(
            zip(framework.outputs, framework.answer(*(given[name] for name in framework.inputs)), strict=True)
        )
        # Every output gets its own operator: two outputs may be one tensor, or an input.
        return [tf.identity(answers[tensor.name]) for tensor in task.signature.outputs]

    concrete = tf.function(positional, autograph=False).get_concrete_function(*specifications(task).values())
    for tensor, output in zip(task.signature.outputs, concrete.outputs, strict=True):
        _check_output(tensor, output, task.signature)
    frozen = convert_variables_to_constants_v2(
        concrete, lower_control_flow=lower_control_flow, aggressive_inlining=not lower_control_flow
    )
    resources = [tensor.name for tensor in frozen.inputs if tensor.dtype in (tf.resource, tf.variant)]
    if resources:
        message = f"the graph keeps state that is not a variable, such as a lookup table ({', '.join(resources)})"
        raise StageError(Reason.CONVERSION_UNSUPPORTED, f"{message}; take it out of the served function")
    return FrozenGraph(
        frozen.graph.as_graph_def(),
        tuple(tensor.name for tensor in frozen.inputs),
        tuple(tensor.name for tensor in frozen.outputs),
    )


def thaw(frozen: FrozenGraph, task: Task) -> Any:
    """Return a frozen graph as a function from tensors by name to tensors by name."""
    wrapped = tf.compat.v1.wrap_function(lambda: tf.import_graph_def(frozen.graph, name=""), [])
    graph = wrapped.graph
    pruned = wrapped.prune(
        [graph.get_tensor_by_name(name) for name in frozen.inputs],
        [graph.get_tensor_by_name(name) for name in frozen.outputs],
    )
    inputs = [tensor.name for tensor in task.signature.inputs]

    def serve(**tensors: tf.Tensor) -> dict[str, tf.Tensor]:
        answers = pruned(*(tensors[name] for name in inputs))
        return {
            tensor.name: tf.ensure_shape(answer, shape(tensor, task.signature))
            for tensor, answer in zip(task.signature.outputs, answers, strict=True)
        }

    return serve


def _check_name(name: str) -> None:
    """Check a name: TensorFlow replaces all other characters, but Triton uses the signature's names."""
    if not _NAME.fullmatch(name):
        message = f"a SavedModel cannot have an input {name}: names begin with a letter and hold letters, digits and _"
        raise StageError(Reason.CONVERSION_UNSUPPORTED, f"{message}; rename it in get_model")


def _check_output(tensor: Tensor, output: tf.Tensor, signature: Signature) -> None:
    wanted = shape(tensor, signature)
    fits = output.shape.rank is None or (
        output.shape.rank == len(wanted)
        and all(size is None or size == want for size, want in zip(output.shape, wanted, strict=True))
    )
    if output.dtype != _type(tensor) or not fits:
        message = f"the traced model's {tensor.name} is {output.dtype.name}{output.shape}"
        expected = f"the signature says {tensor.data_type}{list(wanted)}"
        raise StageError(
            Reason.CONVERSION_FAILED,
            f"{message}, but {expected}; perhaps a dimension that varies is used as a Python number",
        )
