"""Which operators of an ONNX graph stay in fp32, by the types that a spec leaves out of INT8. Pure.

Before the quantizer sees the graph, ONNX Runtime makes a Gemm of a MatMul and the Add behind it. It is left out by the
type that it had, since that is what the spec's author reads in the graph.
"""

from collections.abc import Collection, Sequence
from typing import Any

from onnx import defs

from triton_converters.graph.quantized import operators

DOMAINS = ("", "ai.onnx.ml")
GEMM, MATMUL = "Gemm", "MatMul"
FROM_GEMM = "_MatMul"
"""What the quantizer appends to the name of a Gemm that it takes apart, where ranges are measured at each request."""


def unknown(model: Any, excluded: Collection[str]) -> list[str]:
    """Return the types that neither ONNX nor the graph has."""
    return [each for each in absent(model, excluded) if not any(defs.has(each, domain) for domain in DOMAINS)]


def absent(model: Any, excluded: Collection[str]) -> list[str]:
    """Return the types that no node of the graph has."""
    return sorted({*excluded} - {*operators(model)})


def types(known: Sequence[str], excluded: Collection[str]) -> list[str]:
    """Return the types to quantize, of those that are known; which MatMul and Gemm stay, ``name_kept`` says."""
    return [each for each in known if each in (GEMM, MATMUL) or each not in excluded]


def name_kept(model: Any, prepared: Any, excluded: Collection[str]) -> list[str]:
    """Name every node of the prepared graph, and return the names of what was made of excluded MatMul and Gemm.

    ``model``: the graph before ONNX Runtime prepared it. What is fused keeps the name of its weights.
    """
    weights = {node.input[1] for node in model.graph.node if node.op_type == MATMUL}
    kept = []
    for number, node in enumerate(prepared.graph.node):
        node.name = f"{number}_{node.name or node.op_type}"
        if node.op_type in (GEMM, MATMUL) and (MATMUL if node.input[1] in weights else node.op_type) in excluded:
            kept += [node.name, node.name + FROM_GEMM]
    return kept
