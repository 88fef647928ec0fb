"""The inputs and outputs that the user's config.pbtxt declares, against those of the model's own file."""

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import Signature, Tensor
from triton_converters.load.graph_inputs import GraphInput
from triton_converters.model_config.data_types import BYTES, NUMPY_BY_TRITON


def as_declared(model: Any, signature: Signature) -> Any:
    """Return the framework as config.pbtxt declares it: with sizes that the graph leaves open, and without outputs.

    ``model``: a Framework that is a dataclass with ``declared``. Raises StageError(ModelConfigRefused).
    """
    inputs = {each.name: each for each in signature.inputs}
    outputs = {each.name for each in signature.outputs}
    _check_names("input", set(inputs) == set(model.inputs), inputs, model.inputs)
    # Triton serves those that config.pbtxt lists.
    _check_names("output", outputs <= set(model.outputs), outputs, model.outputs)
    own = {each.name: each for each in model.declared}
    batched = signature.max_batch_size > 0
    return replace(
        model,
        declared=tuple(_declared(inputs[name], own.get(name), batched) for name in model.inputs),
        outputs=tuple(name for name in model.outputs if name in outputs),
    )


def _check_names(side: str, fits: bool, declared: Collection[str], own: Collection[str]) -> None:
    if not fits:
        given, found = (", ".join(sorted(each)) for each in (declared, own))
        raise mismatch(f"it declares the {side}s {given}, but the model's file has {found}")


def _declared(tensor: Tensor, own: GraphInput | None, batched: bool) -> GraphInput:
    """Return an input; ``own``: as the graph declares it, None for a file that declares nothing."""
    kind = "str" if tensor.data_type == BYTES else NUMPY_BY_TRITON[tensor.data_type]
    names = [f"{tensor.name}[{axis}]" for axis in range(len(tensor.dims) + batched)]
    sizes = (*([-1] if batched else []), *tensor.dims)
    if own is None:
        return GraphInput(tensor.name, kind, tuple(map(_size, names, sizes)))
    fits = len(own.dims) == len(sizes) and all(
        isinstance(mine, str) or mine == size for mine, size in zip(own.dims, sizes, strict=True)
    )
    if own.type != kind or not fits:
        shape = ", ".join(map(str, own.dims))
        batch = " after the batch dimension" if batched else ""
        raise mismatch(
            f"it declares input {tensor.name} as {tensor.data_type}{list(tensor.dims)}{batch}, but the model's file has"
            f" {own.type}[{shape}]"
        )
    dims = (mine if size == -1 else size for mine, size in zip(own.dims, sizes, strict=True))
    return replace(own, dims=tuple(dims))


def _size(name: str, size: int) -> int | str:
    return name if size == -1 else size


def mismatch(what: str) -> StageError:
    """Return the error for a config.pbtxt that does not fit its model."""
    return StageError(Reason.MODEL_CONFIG_REFUSED, f"config.pbtxt does not fit its model: {what}; correct config.pbtxt")
