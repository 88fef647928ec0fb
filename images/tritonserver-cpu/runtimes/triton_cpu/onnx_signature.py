"""A configuration against the inputs and outputs of an ONNX model: the checks of onnxruntime_backend at loading."""

from collections.abc import Sequence
from dataclasses import dataclass

from triton_cpu.config import Config, ModelError, Tensor

# onnxruntime's names of element types -> config.pbtxt's (ConvertFromOnnxDataType, onnxruntime_utils.cc)
DATA_TYPES = {
    "tensor(bool)": "TYPE_BOOL",
    "tensor(uint8)": "TYPE_UINT8",
    "tensor(uint16)": "TYPE_UINT16",
    "tensor(uint32)": "TYPE_UINT32",
    "tensor(uint64)": "TYPE_UINT64",
    "tensor(int8)": "TYPE_INT8",
    "tensor(int16)": "TYPE_INT16",
    "tensor(int32)": "TYPE_INT32",
    "tensor(int64)": "TYPE_INT64",
    "tensor(float16)": "TYPE_FP16",
    "tensor(float)": "TYPE_FP32",
    "tensor(double)": "TYPE_FP64",
    "tensor(string)": "TYPE_STRING",
}


@dataclass(frozen=True)
class Value:
    """An input or output of a model: `type` as onnxruntime names it, `dims` with the batch dimension, -1 for any."""

    name: str
    type: str
    dims: tuple[int, ...]


def value(name: str, type_: str, shape: Sequence[object]) -> Value:
    """Make a value of what onnxruntime reports, where a free dimension is a name or None."""
    return Value(name, type_, tuple(dim if isinstance(dim, int) else -1 for dim in shape))


def check(config: Config, inputs: Sequence[Value], initializers: Sequence[Value], outputs: Sequence[Value]) -> None:
    """Raise ModelError where the configuration does not fit the model.

    `initializers` are the initializers that a request may override: inputs that need not be there.
    """
    expected = sum(not tensor.optional for tensor in config.inputs)
    if expected != len(inputs):
        raise ModelError(
            f"unable to load model '{config.name}', configuration expects {expected} inputs, "
            f"model provides {len(inputs)}"
        )
    for tensor in config.inputs:
        if tensor.optional and config.max_batch_size:
            raise ModelError(
                f"unable to load model '{config.name}', optional input '{tensor.name}' is not supported for models "
                "that support batching"
            )
        _check_tensor(config, tensor, [*inputs, *initializers], "input")
    for tensor in config.outputs:
        _check_tensor(config, tensor, outputs, "output")


def _check_tensor(config: Config, tensor: Tensor, values: Sequence[Value], kind: str) -> None:
    found = {item.name: item for item in values}.get(tensor.name)
    if found is None:
        allowed = ", ".join(sorted(item.name for item in values))
        raise ModelError(f"unexpected inference {kind} '{tensor.name}', allowed {kind}s are: {allowed}")
    if tensor.data_type not in DATA_TYPES.values():
        raise ModelError(
            f"unsupported datatype {tensor.data_type} for {kind} '{tensor.name}' for model '{config.name}'"
        )
    provided = DATA_TYPES.get(found.type, found.type)
    if provided != tensor.data_type:
        raise ModelError(
            f"unable to load model '{config.name}', configuration expects datatype {tensor.data_type} for {kind} "
            f"'{tensor.name}', model provides {provided}"
        )
    if found.dims or config.max_batch_size:
        _check_dims(config, tensor, found.dims, exact=kind == "output")
    elif any(dim != 1 for dim in tensor.dims):
        raise ModelError(
            f"unable to load model '{config.name}', scalar tensor '{tensor.name}', should only provide 1 in the model "
            "configuration when the model doesn't support batching. Model configuration provided: "
            f"{shape(tensor.dims)}."
        )


def _check_dims(config: Config, tensor: Tensor, model: tuple[int, ...], exact: bool) -> None:
    prefix = f"model '{config.name}', tensor '{tensor.name}': "
    dims = tensor.dims
    meaning = f"{len(dims)} dimensions (shape {shape(dims)})"
    if config.max_batch_size:
        if not model or model[0] != -1:
            raise ModelError(
                f"{prefix}for the model to support batching the shape should have at least 1 dimension and the first "
                f"dimension must be -1; but shape expected by the model is {shape(model)}"
            )
        dims = (-1, *dims)
        meaning = (
            f"{len(dims)} dimensions (an initial batch dimension because max_batch_size > 0 followed by the explicit "
            f"tensor shape, making complete shape {shape(dims)})"
        )
    fits = len(model) == len(dims) and all(
        ours == theirs or (theirs == -1 and not exact) for ours, theirs in zip(dims, model, strict=True)
    )
    if not fits:
        raise ModelError(
            f"{prefix}the model expects {len(model)} dimensions (shape {shape(model)}) but the model configuration "
            f"specifies {meaning}"
        )


def shape(dims: Sequence[int]) -> str:
    """Print a shape as Triton does: [-1,3,224,224]."""
    return f"[{','.join(map(str, dims))}]"
