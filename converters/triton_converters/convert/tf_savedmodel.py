"""Format ``tf-savedmodel``: Triton's ``model.savedmodel`` with the reference's signature."""

import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

from triton_converters.claim_store import inspection
from triton_converters.contract.formats import FORMATS
from triton_converters.convert import tf_graph
from triton_converters.convert.task import Task
from triton_converters.convert.tf_half import halve
from triton_converters.load.tf_framework import TensorFlowFramework
from triton_converters.model_config.data_types import BYTES, TRITON_BY_NUMPY

SIGNATURE = "serving_default"
FLOATING = {tf.float32: "FP32", tf.float16: "FP16", tf.float64: "FP64", tf.bfloat16: "BF16"}


def convert(task: Task, directory: Path) -> None:
    """Write model.savedmodel and its inspection.

    fp32: the model with its variables, or the directory of a Triton repository as it is. fp16: a frozen graph with
    casts after its inputs and before its outputs. Raises StageError: ConversionUnsupported, ConversionFailed,
    ConversionUnsupported (state that does not freeze).
    """
    path = directory / FORMATS["tf-savedmodel"].file
    if task.request.model.declared is not None and not task.half:
        shutil.copytree(task.framework.source / task.framework.path, path)
    else:
        write(task, path, half=task.half)
    inspection.write(directory, weight_data_types(path), tensors(path))


def write(task: Task, path: Path, *, half: bool) -> None:
    """Save the model at ``path``; raises what ``tf_graph.trace`` and ``freeze`` raise."""
    module = tf.Module()
    framework = cast(TensorFlowFramework, task.framework)
    if half:
        function = tf_graph.thaw(halve(tf_graph.freeze(task, lower_control_flow=True)), task)
    else:
        function = tf_graph.answer(task)
    concrete = tf_graph.trace(task, function)
    module.state = [] if half else framework.state()
    tf.saved_model.save(module, str(path), signatures={SIGNATURE: concrete})


def tensors(path: Path) -> tuple[str, ...]:
    """Return inputs and outputs as the file's signature declares them, in words."""
    signature = _graph(path).signature_def[SIGNATURE]
    return tuple(
        f"{name} {_type_name(tf.as_dtype(info.dtype))}{[dim.size for dim in info.tensor_shape.dim]}"
        for side in (signature.inputs, signature.outputs)
        for name, info in sorted(side.items())
    )


def _type_name(kind: tf.DType) -> str:
    return BYTES if kind == tf.string else TRITON_BY_NUMPY[kind.as_numpy_dtype.__name__]


def weight_data_types(path: Path) -> tuple[str, ...]:
    """Return Triton's names of the variables' and constants' floating point types, the most frequent first."""
    sizes: Counter[str] = Counter()
    for kind, elements in (*_constants(path), *_variables(path)):
        if kind in FLOATING:
            sizes[FLOATING[kind]] += elements
    return tuple(name for name, _ in sorted(sizes.items(), key=lambda item: (-item[1], item[0])))


def _constants(path: Path) -> Iterator[tuple[tf.DType, int]]:
    graph = _graph(path).graph_def
    for nodes in (graph.node, *(function.node_def for function in graph.library.function)):
        for node in nodes:
            if node.op == "Const":
                shape = tf.TensorShape(node.attr["value"].tensor.tensor_shape)
                yield tf.as_dtype(node.attr["dtype"].type), shape.num_elements() or 0


def _variables(path: Path) -> Iterator[tuple[tf.DType, int]]:
    reader = tf.train.load_checkpoint(str(path / "variables" / "variables"))
    types = reader.get_variable_to_dtype_map()
    for name, shape in reader.get_variable_to_shape_map().items():
        yield types[name], tf.TensorShape(shape).num_elements() or 0


def _graph(path: Path) -> Any:
    """Return the only meta graph."""
    return saved_model_pb2.SavedModel.FromString((path / "saved_model.pb").read_bytes()).meta_graphs[0]
