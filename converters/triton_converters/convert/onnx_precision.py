"""An fp32 ONNX graph computed in fp16, its inputs and outputs as they were: for served files and for TensorRT alike.

What can be fp16 is what the operator set allows: a node's input or output whose declared types have no fp16 (the scales
of Resize, all of NonMaxSuppression) stays fp32 behind a cast. Nothing is chosen by its numbers; the served gate judges
them.
"""

import math
import warnings
from typing import Any

import numpy
import onnx
from onnx import TensorProto, helper, inliner, numpy_helper

from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.convert.task import ConversionWarning

FP16_LIMIT = float(numpy.finfo(numpy.float16).max)
HALF = "_fp16"
"""Suffix of the fp16 twin of a tensor whose own name stays fp32."""
SINGLE = "_fp32"
"""Suffix of the fp32 twin of a tensor whose own name becomes fp16."""
KEPT = frozenset({"Range"})
"""Operators that stay fp32 although they need not: in fp16 Range counts to 2,048 only."""
_TYPE_ATTRIBUTES = frozenset({"to", "dtype"})
_LIGHT_BYTES = 1024


def to_fp16(model: Any) -> Any:
    """The same graph with fp16 weights and computation; names, order and types of inputs and outputs stay.

    A weight outside the range of fp16 becomes infinite, not clamped, with a warning. A graph most of whose weights are
    fp16 comes back as it is. Raises StageError(ConversionUnsupported) for operators whose types onnx does not know, and
    where the result is no valid graph.
    """
    if _is_half(model):
        return model
    model = inliner.inline_local_functions(model) if model.functions else model
    for graph in _graphs(model.graph):
        _lift_constants(graph)
    types, was_valid = _element_types(model)
    try:
        for graph in _graphs(model.graph):
            _Cast(graph, types, model, graph is model.graph).run()
        onnx.shape_inference.infer_shapes(_light(model), check_type=was_valid, strict_mode=was_valid)
    except StageError:
        raise
    except Exception as error:
        line = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise _unsupported(line[:300]) from error
    return model


def _is_half(model: Any) -> bool:
    """Whether the weights are fp16 rather than fp32, by elements."""
    elements = {TensorProto.FLOAT: 0, TensorProto.FLOAT16: 0}
    for tensor in model.graph.initializer:
        if tensor.data_type in elements:
            elements[tensor.data_type] += math.prod(tensor.dims)
    return elements[TensorProto.FLOAT16] > elements[TensorProto.FLOAT]


class _Cast:
    """One graph of the model on its way to fp16."""

    def __init__(self, graph: Any, types: dict[str, int], model: Any, is_outermost: bool) -> None:
        self.graph = graph
        self.types = types
        """Element types of all tensors of the model, as they were."""
        self.opsets = {"" if entry.domain == "ai.onnx" else entry.domain: entry.version for entry in model.opset_import}
        self.is_outermost = is_outermost
        self.nodes: list[Any] = []
        self.twins: set[str] = set()
        """Casts made so far, by the name of their result."""
        self.fixed = {value.name for values in (model.graph.input, model.graph.output) for value in values}
        """Names that stay fp32: the interface of the outermost graph."""

    def run(self) -> None:
        """Rewrite the nodes, then the weights; what was inferred of the old graph goes."""
        weights = {tensor.name: tensor for tensor in self.graph.initializer}
        for value in self.graph.input if self.is_outermost else ():
            if self._is_single(value.name):
                self._cast(value.name, value.name + HALF, TensorProto.FLOAT16)
        for node in self.graph.node:
            self._convert(node)
        if not self.is_outermost:
            for value in (*self.graph.input, *self.graph.output):
                if value.type.tensor_type.elem_type == TensorProto.FLOAT:
                    value.type.tensor_type.elem_type = TensorProto.FLOAT16
        del self.graph.node[:], self.graph.value_info[:]
        self.graph.node.extend(self.nodes)
        for tensor in weights.values():
            if tensor.data_type == TensorProto.FLOAT:
                self._halve_weight(tensor)

    def _convert(self, node: Any) -> None:
        """The node in fp16, with the casts that it needs on either side."""
        known = self._schema(node)
        before: list[tuple[str, str]] = []
        for index, name in enumerate(node.input):
            if self._is_single(name):
                half = known is None or _allows_half(known.inputs, index, known)
                node.input[index] = self._name(name, half)
                if not half and name not in self.fixed:
                    before.append((name, name + SINGLE))
        for name, twin in before:
            self._cast(name, twin, TensorProto.FLOAT)
        after: list[tuple[str, str, int]] = []
        for index, name in enumerate(node.output):
            if self._is_single(name):
                half = known is None or _allows_half(known.outputs, index, known)
                if half and name in self.fixed:
                    node.output[index] = name + HALF
                    after.append((name + HALF, name, TensorProto.FLOAT))
                elif name in self.fixed:
                    after.append((name, name + HALF, TensorProto.FLOAT16))
                elif not half:
                    node.output[index] = name + SINGLE
                    after.append((name + SINGLE, name, TensorProto.FLOAT16))
        if known is None or not known.outputs or _allows_half(known.outputs, 0, known):
            _halve_attributes(node)
        self.nodes.append(node)
        for each in after:
            self._cast(*each)

    def _name(self, name: str, half: bool) -> str:
        """What a consumer of the fp32 tensor ``name`` reads now."""
        if name in self.fixed:
            return name + HALF if half else name
        return name if half else name + SINGLE

    def _cast(self, source: str, result: str, kind: int) -> None:
        if result not in self.twins:
            self.twins.add(result)
            self.nodes.append(helper.make_node("Cast", [source], [result], name=f"{result}_cast", to=kind))

    def _halve_weight(self, tensor: Any) -> None:
        """The weight in fp16; its own values, not rounded ones, where a node reads it in fp32."""
        twin = tensor.name + SINGLE
        values = numpy_helper.to_array(tensor)
        if twin in self.twins:
            self.graph.initializer.append(numpy_helper.from_array(values, twin))
            kept = [node for node in self.graph.node if twin not in node.output]
            del self.graph.node[:]
            self.graph.node.extend(kept)
        if values.ndim and (numpy.abs(values[numpy.isfinite(values)]) > FP16_LIMIT).any():
            message = f"{tensor.name} has values outside the range of fp16 ({FP16_LIMIT:.0f})"
            warnings.warn(message, ConversionWarning, stacklevel=4)
        tensor.CopyFrom(numpy_helper.from_array(_narrow(values), tensor.name))

    def _is_single(self, name: str) -> bool:
        return self.types.get(name) == TensorProto.FLOAT

    def _schema(self, node: Any) -> Any:
        """The operator's declaration; None for control flow, whose types are its bodies'."""
        if any(attribute.HasField("g") or attribute.graphs for attribute in node.attribute):
            return None
        domain = "" if node.domain == "ai.onnx" else node.domain
        if not onnx.defs.has(node.op_type, domain):
            raise _unsupported(f"nothing says which types the operator {node.op_type} of {domain} takes")
        return onnx.defs.get_schema(node.op_type, self.opsets[domain], domain)


def _allows_half(parameters: Any, index: int, schema: Any) -> bool:
    """Whether the operator takes fp16 for that input or output; the last parameter may repeat."""
    if schema.name in KEPT:
        return False
    declared = parameters[min(index, len(parameters) - 1)].type_str
    allowed = next(
        (each.allowed_type_strs for each in schema.type_constraints if each.type_param_str == declared), [declared]
    )
    return any("float16" in kind and "bfloat16" not in kind for kind in allowed)


def _halve_attributes(node: Any) -> None:
    """Constants, and the type that Cast and the like produce."""
    for attribute in node.attribute:
        if attribute.name in _TYPE_ATTRIBUTES and attribute.i == TensorProto.FLOAT:
            attribute.i = TensorProto.FLOAT16
        elif attribute.HasField("t") and attribute.t.data_type == TensorProto.FLOAT:
            values = _narrow(numpy_helper.to_array(attribute.t))
            attribute.t.CopyFrom(numpy_helper.from_array(values, attribute.t.name))


def _narrow(values: Any) -> Any:
    """Values in fp16. A scalar masks or scales (-1e9 times 0 must stay 0), so it is clamped; a weight is not."""
    if not values.ndim and numpy.isfinite(values):
        values = numpy.clip(values, -FP16_LIMIT, FP16_LIMIT)
    with numpy.errstate(over="ignore"):
        return values.astype(numpy.float16)


def _lift_constants(graph: Any) -> None:
    """Make weights of Constant nodes, and of weights that are inputs too nothing but weights."""
    weights = {tensor.name for tensor in graph.initializer}
    for value in [value for value in graph.input if value.name in weights]:
        graph.input.remove(value)
    kept = []
    for node in graph.node:
        fields = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
        value = next(iter(fields.values()), None) if node.op_type == "Constant" and not node.domain else None
        if isinstance(value, TensorProto):
            values = numpy_helper.to_array(value)
        elif "value_float" in fields or "value_floats" in fields:
            values = numpy.array(value, dtype=numpy.float32)
        else:
            kept.append(node)
            continue
        graph.initializer.append(numpy_helper.from_array(values, node.output[0]))
    del graph.node[:]
    graph.node.extend(kept)


def _graphs(graph: Any) -> list[Any]:
    """All bodies of its control flow, innermost first, then the graph: who rewrites a graph's nodes copies bodies."""
    bodies = [
        inner
        for node in graph.node
        for attribute in node.attribute
        for inner in (*([attribute.g] if attribute.HasField("g") else ()), *attribute.graphs)
    ]
    return [*(each for body in bodies for each in _graphs(body)), graph]


def _element_types(model: Any) -> tuple[dict[str, int], bool]:
    """Element type by tensor name, of all graphs (inner names do not shadow: a rule of ONNX); whether all are valid."""
    types: dict[str, int] = {}
    light = _light(model)
    try:
        inferred, valid = onnx.shape_inference.infer_shapes(light, check_type=True, strict_mode=True), True
    except Exception:
        inferred, valid = onnx.shape_inference.infer_shapes(light), False
    for graph in _graphs(inferred.graph):
        types |= {tensor.name: tensor.data_type for tensor in graph.initializer}
        for value in (*graph.input, *graph.value_info, *graph.output):
            types[value.name] = value.type.tensor_type.elem_type
    return types, valid


def _light(model: Any) -> Any:
    """A copy whose large weights are but declared: inference reads sizes, and a message holds at most 2 GiB."""
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


def _unsupported(why: str) -> StageError:
    message = f"the ONNX graph does not bear fp16: {why}; convert it in fp32, or put the casts into the model"
    return StageError(Reason.CONVERSION_UNSUPPORTED, message)
