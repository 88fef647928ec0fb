"""The element types of an ONNX model's tensors, as onnx infers them."""

from typing import Any

import onnx
from onnx import TensorProto

from triton_converters.graph.walk import graphs

_LIGHT_BYTES = 1024
"""Tensors up to this size stay in the copy of which shapes are inferred: shapes depend on them, and on no weights."""


def element_types(model: Any) -> tuple[dict[str, int], bool]:
    """Return the element types by tensor name of all graphs (ONNX forbids shadowing), and whether all are valid."""
    types: dict[str, int] = {}
    small = light(model)
    try:
        inferred = onnx.shape_inference.infer_shapes(small, check_type=True, strict_mode=True)
        valid = True
    except Exception:
        inferred = onnx.shape_inference.infer_shapes(small)
        valid = False
    for graph in graphs(inferred.graph):
        types |= {tensor.name: tensor.data_type for tensor in graph.initializer}
        for value in (*graph.input, *graph.value_info, *graph.output):
            types[value.name] = value.type.tensor_type.elem_type
    return types, valid


def light(model: Any) -> Any:
    """Return a copy that only declares large weights: inference needs sizes, and a message holds at most 2 GiB."""
    light = onnx.ModelProto(ir_version=model.ir_version, opset_import=model.opset_import)
    light.graph.name = model.graph.name
    for field in ("node", "input", "output", "value_info"):
        getattr(light.graph, field).extend(getattr(model.graph, field))
    for tensor in model.graph.initializer:
        if len(tensor.raw_data) <= _LIGHT_BYTES:
            light.graph.initializer.append(tensor)
        else:
            entry = onnx.StringStringEntryProto(key="location", value="elsewhere")
            light.graph.initializer.append(
                TensorProto(
                    name=tensor.name,
                    data_type=tensor.data_type,
                    dims=tensor.dims,
                    data_location=TensorProto.EXTERNAL,
                    external_data=[entry],
                )
            )
    return light
