"""Cast a TorchScript file to fp16: its weights, its graph's constants, and the types that the graph names."""

import io
import warnings
from collections.abc import Iterator
from typing import Any

import torch

from triton_converters.convert.masks import FP16_LIMIT, is_mask
from triton_converters.convert.task import ConversionWarning, warn_of_lost

_SINGLE, _HALF = 6, 5
"""torch's numbers of float32 and float16 (c10/core/ScalarType.h), which a graph holds as plain integers."""


def halve(module: Any, map_location: torch.device) -> Any:
    """Return a frozen copy of the ScriptModule (one graph with its weights as constants) that computes in fp16.

    A weight outside the range of fp16 becomes infinite, with a warning. If the graph still computes something in fp32,
    a run shows it: torch refuses mixed types. Raises what torch.jit.freeze raises.
    """
    # A frozen module has no attribute "training", without which torch refuses to freeze it: a copy is cast as it is.
    is_frozen = not hasattr(module, "training")
    frozen = _loaded(module, map_location) if is_frozen else torch.jit.freeze(module, optimize_numerics=False)
    lost = 0
    for node in frozen.graph.findAllNodes("prim::Constant", True):
        if node.hasAttribute("value") and node.kindOf("value") == "t" and node.t("value").dtype == torch.float32:
            tensor = node.t("value")
            half = narrow(tensor)
            lost += bool((torch.isfinite(tensor) & ~torch.isfinite(half)).any())
            warn_of_lost(node.output().debugName(), tensor, half)
            node.t_("value", half)
            node.output().inferTypeFrom(half)
    if lost:
        message = f"{lost} tensors of the file have values outside the range of fp16 (65504)"
        warnings.warn(message, ConversionWarning, stacklevel=2)
    for node in _nodes(frozen.graph):
        _halve_type(frozen.graph, node)
    # Only a loaded module can be part of a traced one.
    return _loaded(frozen, map_location)


def _loaded(module: Any, map_location: torch.device) -> Any:
    """Return a copy of a ScriptModule, as a file of it is loaded."""
    return torch.jit.load(io.BytesIO(module.save_to_buffer()), map_location=map_location)


def narrow(tensor: torch.Tensor) -> torch.Tensor:
    """Return a constant in fp16; a mask stays finite, because infinity times 0 is NaN."""
    half = tensor.half()
    if (torch.isfinite(tensor) & ~torch.isfinite(half)).any() and is_mask(tensor.numpy(force=True)):
        return tensor.where(~torch.isfinite(tensor), tensor.clamp(-FP16_LIMIT, FP16_LIMIT)).half()
    return half


def _nodes(block: Any) -> Iterator[Any]:
    """Yield every node of a graph or block, including those of inner blocks."""
    for node in block.nodes():
        yield node
        for inner in node.blocks():
            yield from _nodes(inner)


def _halve_type(graph: Any, node: Any) -> None:
    """Let a node that produces float32 explicitly produce float16."""
    if node.schema() == "(no schema)":
        return
    arguments = torch._C.parse_schema(node.schema()).arguments  # noqa: SLF001 - no public name
    for index, (argument, value) in enumerate(zip(arguments, list(node.inputs()), strict=False)):
        if argument.name == "dtype" and value.toIValue() == _SINGLE:
            graph.setInsertPoint(node)
            node.replaceInput(index, graph.insertConstant(_HALF))
