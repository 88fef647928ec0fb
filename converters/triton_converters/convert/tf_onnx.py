"""Format ``onnx`` from TensorFlow: tf2onnx on the frozen graph."""

from pathlib import Path
from typing import Any

import onnx
import tf2onnx

from triton_converters.contract.failure import StageError
from triton_converters.contract.formats import FORMATS
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import Signature, Tensor
from triton_converters.convert import onnx_graph, tf_graph
from triton_converters.convert.task import Task

NEWEST_OPSET = 18
"""Newest operator set that tf2onnx 1.17 writes; for a newer one the finished graph is converted."""


def convert(task: Task, directory: Path) -> None:
    """Write model.onnx with the requested operator set, the signature's names and types, and its varying dimensions.

    Raises StageError: ConversionUnsupported (operator set, operators that tf2onnx does not know), ConversionFailed;
    what tf2onnx raises.
    """
    path = directory / FORMATS["onnx"].file
    opset = task.request.onnx_opset or NEWEST_OPSET
    frozen = tf_graph.freeze(task, lower_control_flow=False)
    tensors = (*task.signature.inputs, *task.signature.outputs)
    names = dict(zip((*frozen.inputs, *frozen.outputs), (tensor.name for tensor in tensors), strict=True))
    model, _ = tf2onnx.convert.from_graph_def(
        frozen.graph,
        name=task.request.model_name,
        input_names=list(frozen.inputs),
        output_names=list(frozen.outputs),
        tensors_to_rename=names,
        opset=min(opset, NEWEST_OPSET),
    )
    _check_operators(model.graph)
    for tensor, value in zip(tensors, (*model.graph.input, *model.graph.output), strict=False):
        _name_dimensions(tensor, value, task.signature)
    onnx_graph.save(model, path)
    if opset > NEWEST_OPSET:
        onnx_graph.convert_file(path, opset, f"tf2onnx {tf2onnx.__version__} writes")
    onnx_graph.finish(task, directory, cast=task.half)


def _check_operators(graph: Any) -> None:
    """Raise ConversionUnsupported for TensorFlow's operators that tf2onnx could not convert and left in the graph."""
    unknown = sorted({node.op_type for node in graph.node if not node.domain and not onnx.defs.has(node.op_type)})
    if unknown:
        message = f"tf2onnx {tf2onnx.__version__} cannot convert TensorFlow's {', '.join(unknown)}"
        raise StageError(
            Reason.CONVERSION_UNSUPPORTED, f"{message}; use format tf-savedmodel, or write the model without it"
        )


def _name_dimensions(tensor: Tensor, value: Any, signature: Signature) -> None:
    """Give varying dimensions the names that torch's exporter gives them, in place of tf2onnx's numbers."""
    for axis in onnx_graph.varying_axes(tensor, signature):
        dimensions = value.type.tensor_type.shape.dim
        if axis < len(dimensions) and not dimensions[axis].HasField("dim_value"):
            dimensions[axis].dim_param = "batch" if axis == 0 and signature.max_batch_size else f"{tensor.name}_{axis}"
