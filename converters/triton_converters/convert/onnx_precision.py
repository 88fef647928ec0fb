"""An fp32 ONNX graph computed in fp16, its inputs and outputs as they were; what the served formats and TensorRT share.

By onnxconverter-common, whose defaults are not taken where they change values: it would clamp weights to
[1e-7, 1e4].
"""

import warnings
from typing import Any

import numpy
import onnx
from onnx import TensorProto, numpy_helper
from onnxconverter_common import float16

from triton_converters.convert.task import ConversionWarning
from triton_converters.failure import StageError
from triton_converters.reasons import Reason

FP16_LIMIT = float(numpy.finfo(numpy.float16).max)
KEPT = (*float16.DEFAULT_OP_BLOCK_LIST, "NonZero", "RandomNormal", "RandomNormalLike", "RandomUniform")
"""Operators that stay in fp32, between casts: ONNX Runtime or the operator set has them in no other type.

What computes sizes (Range, Resize) would round them besides.
"""


def to_fp16(model: Any) -> Any:
    """The same graph with fp16 weights and computation, and casts behind its inputs and before its outputs.

    A weight outside the range of fp16 becomes infinite, not clamped, with a warning. A graph that has fp16 weights
    already comes back as it is. Raises StageError(ConversionUnsupported) where the result is no valid graph.
    """
    kinds = {tensor.data_type for tensor in model.graph.initializer}
    if TensorProto.FLOAT16 in kinds and TensorProto.FLOAT not in kinds:
        return model
    _warn_of_overflow(model)
    _name_nodes(model.graph)
    interface = [[value.name for value in values] for values in (model.graph.input, model.graph.output)]
    try:
        with numpy.errstate(over="ignore"):
            converted = float16.convert_float_to_float16(
                model,
                min_positive_val=0.0,
                max_finite_val=float("inf"),
                keep_io_types=True,
                op_block_list=list(KEPT),
                check_fp16_ready=False,
            )
        onnx.shape_inference.infer_shapes(converted, check_type=True, strict_mode=True)
    except Exception as error:
        line = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
        message = f"the ONNX graph does not bear fp16: {line:.300}; convert it in fp32, or put the casts into the model"
        raise StageError(Reason.CONVERSION_UNSUPPORTED, message) from error
    assert interface == [[value.name for value in values] for values in (converted.graph.input, converted.graph.output)]
    return converted


def _warn_of_overflow(model: Any) -> None:
    for tensor in model.graph.initializer:
        if tensor.data_type == TensorProto.FLOAT:
            values = numpy_helper.to_array(tensor)
            if (numpy.abs(values[numpy.isfinite(values)]) > FP16_LIMIT).any():
                message = f"{tensor.name} has values outside the range of fp16 ({FP16_LIMIT:.0f})"
                warnings.warn(message, ConversionWarning, stacklevel=3)


def _name_nodes(graph: Any, prefix: str = "node") -> None:
    """Give every node a name of its own: casts are named after the node they feed."""
    for index, node in enumerate(graph.node):
        node.name = node.name or f"{prefix}_{index}_{node.op_type}"
        for attribute in node.attribute:
            for inner in (*([attribute.g] if attribute.HasField("g") else ()), *attribute.graphs):
                _name_nodes(inner, node.name)
