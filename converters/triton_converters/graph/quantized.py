"""Which operators of an ONNX graph are quantized, by their names. Pure."""

from collections.abc import Iterable
from typing import Any

from triton_converters.graph.walk import nodes

_OTHERS = frozenset({"DequantizeLinear", "DynamicQuantizeLSTM", "MatMulNBits", "QAttention", "QGemm", "QuantizeLinear"})
PRODUCTS = frozenset({"Attention", "Conv", "ConvTranspose", "Gemm", "MatMul"})
"""Convolutions and matrix products, which is where a graph computes."""
_FUSED = ("Fused", "Nhwc")
"""How the names of the same operators begin once ONNX Runtime has fused others into them."""


def is_quantized(operator: str) -> bool:
    """Whether an operator computes in integers of few bits, or makes or reads them."""
    return operator in _OTHERS or operator.startswith(("QLinear", "DynamicQuantize")) or "Integer" in operator


def is_int8_product(operator: str) -> bool:
    """Whether an operator is a convolution or a matrix product in INT8, as optimised graphs have them."""
    return is_quantized(operator) and any(each in operator for each in ("Attention", "Conv", "Gemm", "LSTM", "MatMul"))


def is_product(operator: str) -> bool:
    """Whether an operator is a convolution or a matrix product in floating point, fused with others or not."""
    name = operator
    while name.startswith(_FUSED):
        name = name.removeprefix("Fused").removeprefix("Nhwc")
    return name in PRODUCTS


def operators(model: Any) -> Iterable[str]:
    """Yield the type of every node of a model, those in bodies of control flow and in functions included."""
    return (node.op_type for node in nodes(model))
