"""What in a model looks at all samples of a batch together, so that an answer depends on the others in its batch."""

from typing import Any, Protocol, runtime_checkable

from triton_converters.graph.walk import nodes

OPERATORS = frozenset({"DynamicQuantizeLinear", "DynamicQuantizeLSTM", "DynamicQuantizeMatMul"})
"""Operators of ONNX and of ONNX Runtime that scale by the smallest and the largest value of the whole batch."""


@runtime_checkable
class KnowsMixing(Protocol):
    """A Framework whose model's own graph tells what mixes samples."""

    @property
    def mixing(self) -> str:
        """The first operator that does, in words; empty: none."""


def of_onnx(model: Any) -> str:
    """Return the first such operator of a ModelProto, with its node's name if it has one; empty: none."""
    found = next((node for node in nodes(model) if node.op_type in OPERATORS), None)
    if found is None:
        return ""
    return f"{found.op_type} (node {found.name})" if found.name else str(found.op_type)
