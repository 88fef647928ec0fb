"""The signature that a candidate serves, against the reference's."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import Signature, Tensor
from triton_converters.model_config.shapes import requested


def check_signature(declared: Signature, expected: Signature, max_batch_size: int) -> None:
    """Compare the server's signature with the reference's; the order of tensors does not matter.

    Raises StageError(SignatureMismatch), which names the first difference.
    """
    if declared.max_batch_size != max_batch_size:
        raise mismatch(f"max_batch_size is {declared.max_batch_size}, not {max_batch_size}")
    for kind, got, wanted in (
        ("input", declared.inputs, expected.inputs),
        ("output", declared.outputs, expected.outputs),
    ):
        by_name = {tensor.name: tensor for tensor in got}
        if sorted(by_name) != sorted(tensor.name for tensor in wanted):
            names = [tensor.name for tensor in wanted]
            raise mismatch(f"the {kind}s are {', '.join(sorted(by_name))}, not {', '.join(sorted(names))}")
        for tensor in wanted:
            found = by_name[tensor.name]
            shape = tensor.served_dims
            if found.data_type != tensor.data_type or not _serves(found.dims, shape, kind):
                served = f"{found.data_type}{list(found.dims)}"
                raise mismatch(f"{kind} {tensor.name} is {served}, not {tensor.data_type}{list(shape)}")


def _serves(found: tuple[int, ...], wanted: tuple[int, ...], kind: str) -> bool:
    """Whether the dimensions agree; an output's may be open if the served file leaves it open."""
    return len(found) == len(wanted) and all(
        size == want or (kind == "output" and size == -1) for size, want in zip(found, wanted, strict=True)
    )


def fits(declared: Tensor, actual: Tensor) -> bool:
    """Whether a tensor has the declared type and sizes; -1: any size."""
    return (declared.data_type, len(declared.dims)) == (actual.data_type, len(actual.dims)) and all(
        wanted in (-1, size) for wanted, size in zip(declared.dims, actual.dims, strict=True)
    )


def as_served(signature: Signature, path: Path, format_name: str) -> Signature:
    """Return the signature with the outputs as the file has them: -1 where an ONNX graph has no size.

    Triton's onnxruntime backend compares outputs exactly, and refuses a size that the graph does not have. Exporters
    leave sizes open that never vary. ``path``: the file that is served. Raises ValueError if the file has not these
    outputs, each with so many dimensions.
    """
    if format_name != "onnx":
        return signature
    import onnx

    graph = onnx.load(str(path), load_external_data=False).graph
    kinds = {value.name: value.type.tensor_type for value in graph.output}
    skipped = 1 if signature.max_batch_size else 0
    return replace(signature, outputs=tuple(_opened(each, kinds.get(each.name), skipped) for each in signature.outputs))


def _opened(tensor: Tensor, kind: Any, skipped: int) -> Tensor:
    """Return the tensor with -1 where the graph has no size; ``skipped``: its dimensions before the tensor's."""
    if kind is None:
        raise ValueError(f"it has no output {tensor.name}")
    if not kind.HasField("shape"):
        return tensor
    if (has := len(kind.shape.dim)) != skipped + len(tensor.dims):
        raise ValueError(f"its output {tensor.name} has {has} dimensions, not {skipped + len(tensor.dims)}")
    sizes = zip(tensor.dims, kind.shape.dim[skipped:], strict=True)
    dims = tuple(dim if size.HasField("dim_value") else -1 for dim, size in sizes)
    if not tensor.request_dims:
        return replace(tensor, dims=dims)
    # Triton wants as many open sizes before the reshape as after it.
    dims = tuple(1 if was == 1 else dim for dim, was in zip(dims, tensor.dims, strict=True))
    return replace(tensor, dims=dims, request_dims=requested(tensor, dims))


def mismatch(message: str) -> StageError:
    """Return the error of a server that declares or answers something else."""
    return StageError(
        Reason.SIGNATURE_MISMATCH, f"{message}; compare the model's config.pbtxt with the file's own signature"
    )
