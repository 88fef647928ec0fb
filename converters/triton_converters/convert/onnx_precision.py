"""Cast an fp32 ONNX graph to fp16 without changing its inputs and outputs, for served files and for TensorRT.

The operator set decides what can be fp16: a node's input or output whose declared types have no fp16 (the scales of
Resize, all of NonMaxSuppression) stays fp32 behind a cast. Values do not matter for that; the served gate judges them.
"""

import math
import warnings
from typing import Any

import numpy
import onnx
from onnx import TensorProto, helper, inliner, numpy_helper

from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.convert.task import ConversionWarning, warn_of_lost

FP16_LIMIT = float(numpy.finfo(numpy.float16).max)
FP16_SMALLEST = float(numpy.finfo(numpy.float16).smallest_normal)
"""The smallest normal number. Its inverse, about 16,000, is finite in fp16; that of a smaller number may not be."""
HALF = "_fp16"
"""Suffix of the fp16 twin of a tensor whose own name stays fp32."""
SINGLE = "_fp32"
"""Suffix of the fp32 twin of a tensor whose own name becomes fp16."""
KEPT = frozenset({"Range"})
"""Operators that stay fp32 although they need not: in fp16 Range counts only to 2,048."""
_TYPE_ATTRIBUTES = frozenset({"to", "dtype"})
_LIGHT_BYTES = 1024
"""Tensors up to this size stay in the copy of which shapes are inferred: shapes depend on them, and on no weights."""


def to_fp16(model: Any) -> Any:
    """Return the graph with fp16 weights and computation; names, order and types of inputs and outputs stay.

    A weight outside the range of fp16 becomes infinite, not clamped, with a warning. A single number that is too small
    for fp16 becomes FP16_SMALLEST with a warning, unless it is a factor: that becomes 0, with a warning too. A graph
    whose weights are mostly fp16 is returned as it is. Raises StageError(ConversionUnsupported) for operators whose
    types onnx does not know, and if the result is not a valid graph.
    """
    if _is_half(model):
        return model
    model = inliner.inline_local_functions(model) if model.functions else model
    for graph in _graphs(model.graph):
        _lift_constants(graph)
    types, was_valid = _element_types(model)
    factors = _factors(model)
    try:
        for graph in _graphs(model.graph):
            _Cast(graph, types, factors, model, graph is model.graph).run()
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

    def __init__(
        self, graph: Any, types: dict[str, int], factors: frozenset[str], model: Any, is_outermost: bool
    ) -> None:
        self.graph = graph
        self.types = types
        """The original element types of all tensors of the model."""
        self.factors = factors
        self.opsets = {"" if entry.domain == "ai.onnx" else entry.domain: entry.version for entry in model.opset_import}
        self.is_outermost = is_outermost
        self.nodes: list[Any] = []
        self.twins: set[str] = set()
        """Names of the results of the casts made so far."""
        self.fixed = {value.name for values in (model.graph.input, model.graph.output) for value in values}
        """Names that stay fp32: the interface of the outermost graph."""

    def run(self) -> None:
        """Rewrite the nodes, then the weights; drop what was inferred about the old graph."""
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
        """Rewrite a node in fp16, with the casts that it needs on either side."""
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
        """Return the name that a consumer of the fp32 tensor ``name`` reads now."""
        if name in self.fixed:
            return name + HALF if half else name
        return name if half else name + SINGLE

    def _cast(self, source: str, result: str, kind: int) -> None:
        if result not in self.twins:
            self.twins.add(result)
            self.nodes.append(helper.make_node("Cast", [source], [result], name=f"{result}_cast", to=kind))

    def _halve_weight(self, tensor: Any) -> None:
        """Turn a weight into fp16; a node that reads it in fp32 gets the original values, not rounded ones."""
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
        is_factor = tensor.name in self.factors
        halved = _narrow(values if is_factor else _enlarge(values))
        warn_of_lost(tensor.name, values, halved, is_factor)
        tensor.CopyFrom(numpy_helper.from_array(halved, tensor.name))

    def _is_single(self, name: str) -> bool:
        return self.types.get(name) == TensorProto.FLOAT

    def _schema(self, node: Any) -> Any:
        """Return the operator's declaration; None for control flow, whose types are those of its bodies."""
        if any(attribute.HasField("g") or attribute.graphs for attribute in node.attribute):
            return None
        domain = "" if node.domain == "ai.onnx" else node.domain
        if not onnx.defs.has(node.op_type, domain):
            raise _unsupported(f"onnx does not know which types the operator {node.op_type} of {domain} takes")
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
    """Halve constants, and the type that Cast and similar operators produce."""
    for attribute in node.attribute:
        if attribute.name in _TYPE_ATTRIBUTES and attribute.i == TensorProto.FLOAT:
            attribute.i = TensorProto.FLOAT16
        elif attribute.HasField("t") and attribute.t.data_type == TensorProto.FLOAT:
            values = _narrow(_enlarge(numpy_helper.to_array(attribute.t)))
            attribute.t.CopyFrom(numpy_helper.from_array(values, attribute.t.name))


def _narrow(values: Any) -> Any:
    """Return values in fp16. A scalar masks or scales (-1e9 times 0 must stay 0), so it is clamped; a weight is not."""
    if not values.ndim and numpy.isfinite(values):
        values = numpy.clip(values, -FP16_LIMIT, FP16_LIMIT)
    with numpy.errstate(over="ignore"):
        return values.astype(numpy.float16)


def _enlarge(values: Any) -> Any:
    """Return the values; a single number that is too small for fp16 becomes the smallest normal one, with its sign.

    Such a number (1e-12) guards a division or a logarithm; as 0 it would let NaN through.
    """
    if values.size != 1 or not 0 < abs(number := values.item()) < FP16_SMALLEST:
        return values
    enlarged = math.copysign(FP16_SMALLEST, number)
    message = f"the constant {number:.4g} is too small for fp16 and becomes {enlarged:.4g}"
    warnings.warn(message, ConversionWarning, stacklevel=5)
    return numpy.full_like(values, enlarged)


def _factors(model: Any) -> frozenset[str]:
    """Names that only Mul reads: enlarged, such a number would scale the result; rounded to 0, it loses the result."""
    nodes = [node for graph in _graphs(model.graph) for node in graph.node]
    multiplied = {name for node in nodes if node.op_type == "Mul" for name in node.input}
    return frozenset(multiplied.difference(*(node.input for node in nodes if node.op_type != "Mul")))


def _lift_constants(graph: Any) -> None:
    """Turn Constant nodes into weights, and remove weights from the inputs."""
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
    """Return all control-flow bodies, innermost first, then the graph: rewriting a graph's nodes copies bodies."""
    bodies = [
        inner
        for node in graph.node
        for attribute in node.attribute
        for inner in (*([attribute.g] if attribute.HasField("g") else ()), *attribute.graphs)
    ]
    return [*(each for body in bodies for each in _graphs(body)), graph]


def _element_types(model: Any) -> tuple[dict[str, int], bool]:
    """Return the element types by tensor name of all graphs (ONNX forbids shadowing), and whether all are valid."""
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


def _unsupported(why: str) -> StageError:
    message = f"the ONNX graph cannot be converted to fp16: {why}; convert it in fp32, or put the casts into the model"
    return StageError(Reason.CONVERSION_UNSUPPORTED, message)
