"""Cast an fp32 ONNX graph to fp16 without changing its inputs and outputs, for served files and for TensorRT.

The operator set decides what can be fp16: a node's input or output whose declared types have no fp16 (the scales of
Resize, all of NonMaxSuppression) stays fp32 behind a cast. Values do not matter for that; the served gate judges them.
"""

import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy
import onnx
from onnx import TensorProto, helper, inliner, numpy_helper

from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.convert import onnx_constants
from triton_converters.convert.onnx_counts import Interface, kept_outputs
from triton_converters.convert.onnx_types import element_types, light
from triton_converters.convert.task import ConversionWarning
from triton_converters.graph.opsets import TYPE_ATTRIBUTES, add_missing, allows_half, by_domain, schema
from triton_converters.graph.scopes import separate
from triton_converters.graph.walk import UnusedNames, bodies, graphs, read_by

HALF = "_fp16"
"""Suffix of the fp16 twin of a tensor whose own name stays fp32."""
SINGLE = "_fp32"
"""Suffix of the fp32 twin of a tensor whose own name becomes fp16."""
_LIKE = frozenset({"EyeLike", "RandomNormalLike", "RandomUniformLike"})
_RANDOM = frozenset({"Bernoulli", "Multinomial", "RandomNormal", "RandomUniform"})
_WINDOWS = frozenset({"BlackmanWindow", "HammingWindow", "HannWindow", "MelWeightMatrix"})
KEPT = _LIKE | _RANDOM | _WINDOWS | {"BitCast", "MeanVarianceNormalization", "Range"}
"""Operators that stay fp32 although they need not: in fp16 Range counts only to 2,048, the bits of a number are other
ones, and ONNX Runtime's CPU lacks the others or makes them coarse."""
TREES = "ai.onnx.ml"
"""The domain whose operators hold fp32 in their attributes, and stay fp32."""
KEPT_IF_REDUCING = frozenset({"ScatterElements", "ScatterND"})
"""Operators that stay fp32 where they add up or compare, which ONNX Runtime's CPU does not do in fp16."""
IR_VERSION = 4
"""The first version of ONNX's file format in which weights need not be inputs."""
_FLOAT_BY_DEFAULT: Mapping[str, Any] = {
    "ConstantOfShape": helper.make_attribute("value", numpy_helper.from_array(numpy.zeros(1, numpy.float16))),
    "SequenceEmpty": helper.make_attribute("dtype", TensorProto.FLOAT16),
}
"""Attributes whose default is fp32 in the operator's words alone, with the value for fp16."""


def to_fp16(model: Any) -> Any:
    """Return the graph with fp16 weights and computation; names, order and types of inputs and outputs stay.

    A weight outside the range of fp16 becomes infinite, not clamped, with a warning; a mask is clamped. A single number
    that is too small for fp16 becomes FP16_SMALLEST with a warning, unless it is a factor: that becomes 0, with a
    warning too. A graph whose weights are mostly fp16 is returned as it is; one of which nothing can be fp16 has a
    warning. What counts sizes, positions and classes stays fp32. Raises StageError(ConversionUnsupported) for operators
    whose types onnx does not know, and if the result is not a valid graph.
    """
    if onnx_constants.is_half(model.graph.initializer):
        return model
    model = inliner.inline_local_functions(model) if model.functions else model
    separate(model.graph, UnusedNames(model.graph))
    for graph in graphs(model.graph):
        onnx_constants.lift(graph)
    model.ir_version = max(model.ir_version, IR_VERSION)
    # Of the casts.
    add_missing(model, frozenset({""}))
    types, was_valid = element_types(model)
    try:
        known = _model_facts(model, types)
        is_half = [_Cast(graph, known, graph is model.graph).run() for graph in graphs(model.graph)]
        onnx.shape_inference.infer_shapes(light(model), check_type=was_valid, strict_mode=was_valid)
    except StageError:
        raise
    except Exception as error:
        line = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise _unsupported(line[:300]) from error
    if not any(is_half):
        message = "no operator of the graph computes in fp16, so that it answers as in fp32"
        warnings.warn(message, ConversionWarning, stacklevel=2)
    return model


@dataclass(frozen=True)
class _ModelFacts:
    """What is known of a whole model before any of its graphs is cast."""

    types: Mapping[str, int]
    """The original element types of all tensors."""
    weights: Mapping[str, Any]
    """All fp32 weights by name, as they were."""
    factors: frozenset[str]
    kept: frozenset[str]
    """Outputs of nodes that stay in fp32 because they count."""
    opsets: Mapping[str, int]
    names: UnusedNames
    twins: Mapping[str, str]
    """The fp16 twins of the interface, whose own names stay fp32."""

    def is_single(self, name: str) -> bool:
        return self.types.get(name) == TensorProto.FLOAT

    def schema(self, node: Any) -> Any:
        """Return the operator's declaration; None for control flow, whose types are those of its bodies."""
        if bodies(node):
            return None
        declared = schema(node, self.opsets)
        if declared is None:
            raise _unsupported(f"onnx does not know which types the operator {node.op_type} of {node.domain} takes")
        return declared


def _model_facts(model: Any, types: Mapping[str, int]) -> _ModelFacts:
    # The outermost first, which the others read.
    inside_last = list(graphs(model.graph))[::-1]
    nodes = [node for graph in inside_last for node in graph.node]
    weights = {tensor.name: tensor for graph in inside_last for tensor in graph.initializer}
    names = UnusedNames(model.graph)
    interface = Interface(*([value.name for value in values] for values in (model.graph.input, model.graph.output)))
    twins = {
        name: names.unused(name + HALF)
        for name in dict.fromkeys([*interface.inputs, *interface.outputs])
        if types.get(name) == TensorProto.FLOAT
    }
    single = {name: tensor for name, tensor in weights.items() if tensor.data_type == TensorProto.FLOAT}
    known = _ModelFacts(types, single, onnx_constants.factors(nodes), frozenset(), by_domain(model), names, twins)

    def takes_half(node: Any, index: int) -> bool:
        declared = known.schema(node)
        return declared is None or (not _stays(node) and allows_half(declared.inputs, index, declared))

    return replace(known, kept=kept_outputs(nodes, types, weights.keys(), interface, takes_half))


class _Cast:
    """One graph of the model on its way to fp16."""

    def __init__(self, graph: Any, known: _ModelFacts, is_outermost: bool) -> None:
        self.graph = graph
        self.known = known
        self.is_outermost = is_outermost
        self.nodes: list[Any] = []
        self.casts: set[str] = set()
        """Names of the results of the casts made so far."""
        self.singles: dict[str, str] = {}
        """The fp32 twins made so far, by the names that are fp16."""
        self.is_half = False

    def run(self) -> bool:
        """Rewrite the nodes, then the weights; return whether any node computes in fp16."""
        weights = [tensor for tensor in self.graph.initializer if tensor.data_type == TensorProto.FLOAT]
        if self.is_outermost:
            for value in self.graph.input:
                if value.name in self.known.twins:
                    self._cast(value.name, self.known.twins[value.name], TensorProto.FLOAT16)
        for node in self.graph.node:
            self._convert(node)
        if not self.is_outermost:
            for value in (*self.graph.input, *self.graph.output):
                _halve_type(value.type)
        read = self._drop_unread_casts()
        # What was inferred about the old graph.
        del self.graph.node[:], self.graph.value_info[:]
        self.graph.node.extend(self.nodes)
        self._halve_weights(weights, read)
        return self.is_half

    def _convert(self, node: Any) -> None:
        """Rewrite a node in fp16, with the casts that it needs on either side."""
        declared = self.known.schema(node)
        stays = _stays(node) or not self.known.kept.isdisjoint(node.output)

        def in_half(parameters: str, index: int) -> bool:
            half = declared is None or (not stays and allows_half(getattr(declared, parameters), index, declared))
            self.is_half = self.is_half or (half and declared is not None)
            return half

        for index, name in enumerate(node.input):
            if self.known.is_single(name):
                node.input[index] = self._half(name) if in_half("inputs", index) else self._single(name)
        after: list[tuple[str, str, int]] = []
        for index, name in enumerate(node.output):
            if self.known.is_single(name):
                half = in_half("outputs", index)
                own = self._half(name) if half else self._new_single(name)
                node.output[index] = own
                other = self.known.twins.get(name, name) if not half else name
                if own != other:
                    after.append((own, other, TensorProto.FLOAT if half else TensorProto.FLOAT16))
        if not stays and (declared is None or not declared.outputs or allows_half(declared.outputs, 0, declared)):
            _halve_attributes(node)
        self.nodes.append(node)
        for each in after:
            self._cast(*each)

    def _half(self, name: str) -> str:
        """Return the name of a tensor in fp16."""
        return self.known.twins.get(name, name)

    def _single(self, name: str) -> str:
        """Return the name of a tensor in fp32, after a cast if there is none yet; weights have their own digits."""
        if name in self.known.twins:
            return name
        if name not in self.singles:
            twin = self._new_single(name)
            if name in self.known.weights:
                values = numpy_helper.to_array(self.known.weights[name])
                self.graph.initializer.append(numpy_helper.from_array(values, twin))
            else:
                self._cast(name, twin, TensorProto.FLOAT)
        return self.singles[name]

    def _new_single(self, name: str) -> str:
        """Return the name that a tensor has in fp32 from now on."""
        if name in self.known.twins:
            return name
        self.singles[name] = self.known.names.unused(name + SINGLE)
        return self.singles[name]

    def _cast(self, source: str, result: str, kind: int) -> None:
        self.casts.add(result)
        self.nodes.append(helper.make_node("Cast", [source], [result], name=f"{result}_cast", to=kind))

    def _drop_unread_casts(self) -> set[str]:
        """Drop the casts whose results nobody reads; return all names that are read."""
        read = {value.name for value in self.graph.output}
        kept = []
        for node in reversed(self.nodes):
            if node.output[0] not in self.casts or node.output[0] in read:
                kept.append(node)
                read |= read_by(node)
        self.nodes = kept[::-1]
        return read

    def _halve_weights(self, weights: Sequence[Any], read: Collection[str]) -> None:
        """Turn weights into fp16, or into two if the graph returns them; drop what nobody reads in fp16."""
        unread = set()
        for tensor in weights:
            twin = self.known.twins.get(tensor.name, tensor.name)
            is_factor = tensor.name in self.known.factors
            if twin not in read:
                unread |= {tensor.name} - self.known.twins.keys()
            elif twin == tensor.name:
                onnx_constants.halve(tensor, is_factor)
            else:
                self.graph.initializer.append(tensor)
                self.graph.initializer[-1].name = twin
                onnx_constants.halve(self.graph.initializer[-1], is_factor)
        for place in reversed(range(len(self.graph.initializer))):
            if self.graph.initializer[place].name in unread:
                del self.graph.initializer[place]


def _stays(node: Any) -> bool:
    """Whether an operator stays fp32 whatever its types are."""
    if node.op_type in KEPT_IF_REDUCING:
        return any(attribute.name == "reduction" and attribute.s != b"none" for attribute in node.attribute)
    return node.op_type in KEPT or node.domain == TREES


def _halve_attributes(node: Any) -> None:
    """Halve constants, and the type that Cast and similar operators produce, also if it is fp32 by default."""
    for attribute in node.attribute:
        if attribute.name in TYPE_ATTRIBUTES and attribute.i == TensorProto.FLOAT:
            attribute.i = TensorProto.FLOAT16
        elif attribute.HasField("t") and attribute.t.data_type == TensorProto.FLOAT:
            onnx_constants.halve_attribute(attribute.t)
    given = {attribute.name for attribute in node.attribute}
    default = _FLOAT_BY_DEFAULT.get(node.op_type)
    if default is not None and default.name not in given:
        node.attribute.append(default)


def _halve_type(kind: Any) -> None:
    """Declare fp16 for a tensor of fp32, also as what a sequence or an optional holds."""
    if kind.WhichOneof("value") == "tensor_type" and kind.tensor_type.elem_type == TensorProto.FLOAT:
        kind.tensor_type.elem_type = TensorProto.FLOAT16
    elif kind.WhichOneof("value") in ("sequence_type", "optional_type"):
        _halve_type(getattr(kind, kind.WhichOneof("value")).elem_type)


def _unsupported(why: str) -> StageError:
    message = f"the ONNX graph cannot be converted to fp16: {why}; convert it in fp32, or put the casts into the model"
    return StageError(Reason.CONVERSION_UNSUPPORTED, message)
