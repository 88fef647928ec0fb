"""The floating point types of a converted file, read back from the file itself."""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from triton_converters.claim_store import inspection
from triton_converters.contract.failure import StageError
from triton_converters.contract.formats import HPS
from triton_converters.contract.reasons import Reason

TYPES_BY_PRECISION = {"fp32": ("FP32", "FP64"), "fp16": ("FP16",)}
"""The types that most weights may have. A model with weights in double precision keeps them in an fp32 candidate."""

READABLE = frozenset({"onnx", HPS})
"""Formats whose types can be told from the file by anybody; every other format has an inspection."""


def check_precision(path: Path, format_name: str, precision: str) -> tuple[str, ...]:
    """Return ``weight_data_types`` of the file, after checking that it has the requested precision.

    ``precision``: fp32 or fp16. Raises StageError(PrecisionMismatch) if most weights have another type. Some may: a
    graph keeps some constants (such as the scales of Resize) and what the model itself casts in fp32. A file without
    floating point weights has no precision and passes.
    """
    found = weight_data_types(path, format_name)
    if found and found[0] not in TYPES_BY_PRECISION[precision]:
        message = f"{path.name} should be {precision}, but its weights are {', '.join(found)}"
        raise StageError(Reason.PRECISION_MISMATCH, message)
    return found


def weight_data_types(path: Path, format_name: str) -> tuple[str, ...]:
    """Return Triton's names of the floating point types of a file's weights, the type of most elements first.

    A weight that the graph casts before its use counts as the type it is cast to. For a format that only its own
    runtime can read, the types are those that the runtime reported after the conversion. Raises
    StageError(ModelLoadFailed) if the file cannot be parsed, or is not the one that was inspected.
    """
    if format_name == HPS:
        return ("FP32",)
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
    """Yield type and number of elements of every floating point initializer and constant, subgraphs included."""
    import onnx

    names = {
        onnx.TensorProto.FLOAT: "FP32",
        onnx.TensorProto.FLOAT16: "FP16",
        onnx.TensorProto.DOUBLE: "FP64",
        onnx.TensorProto.BFLOAT16: "BF16",
    }
    model = onnx.load(str(path), load_external_data=False)
    if not model.graph.node:
        raise ValueError("it has no graph")
    graphs = [model.graph, *model.functions]
    while graphs:
        graph = graphs.pop()
        tensors = {tensor.name: tensor for tensor in getattr(graph, "initializer", ())}
        casts: dict[str, int] = {}
        for node in graph.node:
            for attribute in node.attribute:
                graphs += [attribute.g] if attribute.HasField("g") else []
                graphs += attribute.graphs
                if node.op_type == "Constant" and attribute.name == "value":
                    tensors[node.output[0]] = attribute.t
                if node.op_type == "Cast" and attribute.name == "to":
                    casts[node.input[0]] = attribute.i
        for name, tensor in tensors.items():
            kind = names.get(casts.get(name, tensor.data_type))
            if tensor.data_type in names and kind is not None:
                yield kind, _count(tensor.dims)


def _count(dims: Any) -> int:
    """Return the number of elements; 1 for a scalar."""
    product = 1
    for size in dims:
        product *= size
    return product
