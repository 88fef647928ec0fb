"""The floating point types of a converted file, read back from the file itself."""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from triton_converters.claim_store import inspection
from triton_converters.contract.failure import StageError
from triton_converters.contract.formats import HPS, TRITON_PYTHON
from triton_converters.contract.reasons import Reason

TYPES_BY_PRECISION = {"fp32": ("FP32", "FP64"), "fp16": ("FP16",), "int8": ("FP32",)}
"""The floating point types that most weights may have. A model with weights in double precision keeps them in an fp32
candidate; what an INT8 graph does not quantize, and its scales, are fp32."""
HALVES = ("FP16", "BF16")
"""The types that a model's own file may have, and keeps in an fp32 candidate."""

READABLE = frozenset({"onnx", HPS, TRITON_PYTHON})
"""Formats whose types can be told from the file by anybody; every other format has an inspection."""


def check_precision(path: Path, format_name: str, precision: str, kept: Collection[str] = ()) -> tuple[str, ...]:
    """Return ``weight_data_types`` of the file, after checking that it has the requested precision.

    ``precision``: fp32, fp16 or int8. ``kept``: more types that an fp32 file may have, because nothing is cast for
    fp32 and its source has them. Raises StageError(PrecisionMismatch) if most weights have another type. Some may: a
    graph keeps some constants (such as the scales of Resize) and what the model itself casts in fp32. A file without
    floating point weights has no precision and passes, but for int8, of which some operator must be quantized.
    """
    found = weight_data_types(path, format_name)
    if found and found[0] not in (*TYPES_BY_PRECISION[precision], *(kept if precision == "fp32" else ())):
        message = f"{path.name} should be {precision}, but its weights are {', '.join(found)}"
        raise StageError(Reason.PRECISION_MISMATCH, message)
    if precision == "int8" and not _has_quantized(path):
        raise StageError(Reason.PRECISION_MISMATCH, f"{path.name} should be int8, but no operator is quantized")
    return found


def _has_quantized(path: Path) -> bool:
    """Whether any operator of an ONNX file, which could be parsed before, is quantized."""
    import onnx

    from triton_converters.graph.quantized import is_quantized, operators

    return any(map(is_quantized, operators(onnx.load(str(path), load_external_data=False))))


def weight_data_types(path: Path, format_name: str) -> tuple[str, ...]:
    """Return Triton's names of the floating point types of a file's weights, the type of most elements first.

    A weight that the graph casts before its use counts as the type it is cast to. For a format that only its own
    runtime can read, the types are those that the runtime reported after the conversion. Raises
    StageError(ModelLoadFailed) if the file cannot be parsed, or is not the one that was inspected.
    """
    if format_name == HPS:
        return ("FP32",)
    if format_name == TRITON_PYTHON:
        return ()
    if format_name not in READABLE:
        return inspection.read(path.parent).data_types
    try:
        return by_elements(_onnx_weights(path))
    except Exception as error:
        line = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise StageError(Reason.MODEL_LOAD_FAILED, f"{path.name} cannot be parsed: {line}") from error


def by_elements(weights: Iterable[tuple[str, int]]) -> tuple[str, ...]:
    """Return the types of some weights, the type of most elements first; ``weights``: type and number of elements."""
    sizes: Counter[str] = Counter()
    for name, elements in weights:
        sizes[name] += elements
    return tuple(name for name, _ in sorted(sizes.items(), key=lambda item: (-item[1], item[0])))


def _onnx_weights(path: Path) -> Iterator[tuple[str, int]]:
    """Yield type and number of elements of every floating point initializer and constant, subgraphs included.

    Single numbers are no weights, nor is what operators read that have no fp16, such as the scales of Resize.
    """
    import onnx

    from triton_converters.graph.opsets import by_domain
    from triton_converters.graph.walk import graphs

    names = {
        onnx.TensorProto.FLOAT: "FP32",
        onnx.TensorProto.FLOAT16: "FP16",
        onnx.TensorProto.DOUBLE: "FP64",
        onnx.TensorProto.BFLOAT16: "BF16",
    }
    model = onnx.load(str(path), load_external_data=False)
    if not model.graph.output:
        raise ValueError("it has no graph")
    found = [graph for each in (model.graph, *model.functions) for graph in graphs(each)]
    nodes = [node for graph in found for node in graph.node]
    read = _read_in_half(nodes, by_domain(model))
    casts = {node.input[0]: attribute.i for node in nodes if node.op_type == "Cast" for attribute in node.attribute}
    weights = [(tensor.name, tensor) for graph in found for tensor in getattr(graph, "initializer", ())]
    constants = [(node.output[0], each.t) for node in nodes if node.op_type == "Constant" for each in node.attribute]
    for name, tensor in (*weights, *constants):
        kind = names.get(casts.get(name, tensor.data_type))
        elements = math.prod(tensor.dims)
        if tensor.data_type in names and kind is not None and elements != 1 and read.get(name, True):
            yield kind, elements


def _read_in_half(nodes: Iterable[Any], opsets: Mapping[str, int]) -> dict[str, bool]:
    """Return for each name that nodes read whether any of the operators has fp16 there."""
    from triton_converters.graph.opsets import allows_half, schema

    found: dict[str, bool] = {}
    for node in nodes:
        declared = schema(node, opsets)
        for index, name in enumerate(node.input):
            takes_half = declared is None or allows_half(declared.inputs, index, declared)
            found[name] = takes_half or found.get(name, False)
    return found
