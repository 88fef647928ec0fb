"""Changes of an ONNX graph at its inputs, outputs and weights, without a change of its signature."""

from collections.abc import Sequence
from typing import Any

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

from triton_converters.claim_store.dump import Array
from triton_converters.convert.onnx_constants import lift
from triton_converters.graph.opsets import add_missing, by_domain
from triton_converters.graph.walk import graphs

FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16)
INTEGERS = (TensorProto.INT64, TensorProto.INT32, TensorProto.UINT8, TensorProto.INT8)
LEARNED, LEARNED_OPSET = "ai.onnx.ml", 2
"""The operators of classifiers, and the first version that maps to words."""


class Surgery:
    """A copy of a graph, and changes to it. Names of its own begin with PREFIX."""

    PREFIX = "gates_"

    def __init__(self, model: Any) -> None:
        self.model = onnx.ModelProto()
        self.model.CopyFrom(model)
        self.graph = self.model.graph
        self._made = 0
        # Graphs of trees alone do not import what the changes are made of.
        add_missing(self.model, frozenset({""}))

    @property
    def opset(self) -> int:
        """The version of the standard operators."""
        return by_domain(self.model)[""]

    def name(self) -> str:
        """Return a name that the graph does not have."""
        self._made += 1
        return f"{self.PREFIX}{self._made}"

    def weight(self, values: Array) -> str:
        """Add a weight; return its name."""
        name = self.name()
        self.graph.initializer.append(numpy_helper.from_array(values, name))
        return name

    def inputs(self) -> dict[str, Any]:
        """Return the types of the inputs that a request has, by name."""
        weights = {tensor.name for tensor in self.graph.initializer}
        return {each.name: each.type.tensor_type for each in self.graph.input if each.name not in weights}

    def outputs(self) -> dict[str, Any]:
        """Return the types of the outputs that are tensors, by name."""
        return {each.name: each.type.tensor_type for each in self.graph.output if each.type.HasField("tensor_type")}

    def split_input(self, name: str) -> str:
        """Let all that reads an input read another tensor, which is to be computed; return that one's name."""
        changed = self.name()
        for graph in graphs(self.graph):
            for node in graph.node:
                for index, each in enumerate(node.input):
                    if each == name:
                        node.input[index] = changed
        return changed

    def split_output(self, name: str) -> tuple[str, int]:
        """Rename a tensor where it is computed; return that name, and the place after its node. All others read on.

        Raises ValueError if no node computes it.
        """
        true = self.name()
        for place, node in enumerate(self.graph.node, start=1):
            for index, each in enumerate(node.output):
                if each == name:
                    node.output[index] = true
                    return true, place
        raise ValueError(f"no node computes {name}")

    def rename(self, name: str) -> str:
        """Rename a tensor where it is computed and read, which leaves the output of its name without one."""
        true = self.name()
        for graph in graphs(self.graph):
            for node in graph.node:
                for side in (node.input, node.output):
                    for index, each in enumerate(side):
                        if each == name:
                            side[index] = true
        return true

    def insert(self, place: int, *nodes: Any) -> None:
        """Put nodes in front of the one that has this place, from 0."""
        rest = list(self.graph.node)
        del self.graph.node[:]
        self.graph.node.extend([*rest[:place], *nodes, *rest[place:]])

    def weights(self, kinds: Sequence[int] = (TensorProto.FLOAT,), rank: int = 2) -> dict[str, Array]:
        """Return the weights of some types and at least so many dimensions, by name, in the nodes' order."""
        tensors = {tensor.name: tensor for tensor in self.graph.initializer if tensor.data_type in kinds}
        read = (name for node in self.graph.node for name in node.input if name in tensors)
        found = {name: numpy_helper.to_array(tensors[name]) for name in dict.fromkeys(read)}
        return {name: values for name, values in found.items() if values.ndim >= rank and values.size > 8}

    def set_weight(self, name: str, values: Array) -> None:
        """Give other values to a weight."""
        tensor = next(each for each in self.graph.initializer if each.name == name)
        tensor.CopyFrom(numpy_helper.from_array(numpy.ascontiguousarray(values), name))

    def scalar(self, value: float, kind: int) -> str:
        """Add a number of an element type; return its name."""
        return self.weight(numpy.array(value, dtype=helper.tensor_dtype_to_np_dtype(kind)))


def encoder(inputs: list[str], outputs: list[str], **mapping: Any) -> Any:
    """Return a node that maps class numbers or words to words."""
    return helper.make_node("LabelEncoder", inputs, outputs, domain=LEARNED, **mapping)


def lifted(model: Any) -> Any:
    """Return a copy in which constants of nodes are weights, as to_fp16 has them too."""
    copy = Surgery(model)
    lift(copy.graph)
    return copy.model


def sizes(kind: Any) -> list[int | str]:
    """Return the sizes of a tensor's type: a number, or the name of an open one."""
    return [dim.dim_value if dim.HasField("dim_value") else dim.dim_param for dim in kind.shape.dim]
