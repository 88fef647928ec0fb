"""Format ``onnx``: torch.onnx with the exporter the spec names, TorchScript's or Dynamo's."""

from pathlib import Path
from typing import Any

import onnx
import torch
from onnx import version_converter

from triton_converters.convert.task import Task
from triton_converters.data_types import TRITON_BY_NUMPY
from triton_converters.failure import StageError
from triton_converters.formats import FORMATS
from triton_converters.reasons import Reason
from triton_converters.result import Signature, Tensor

DYNAMO_OPSET = 18
"""The operator set that torch.onnx's Dynamo exporter writes; another one takes a conversion of the finished graph."""


def convert(task: Task, directory: Path) -> None:
    """Write model.onnx with the asked operator set, the signature's names and types, and its varying dimensions.

    Raises StageError: ConversionUnsupported (operator set), ConversionFailed (the exporter fixed a dimension that
    varies, or changed a type); what torch.onnx and onnx.checker raise.
    """
    path = directory / FORMATS["onnx"].file
    served = task.served(task.framework.module)
    with torch.no_grad():
        if task.request.onnx_exporter == "Dynamo":
            _export_dynamo(task, served, path)
        else:
            _export_torchscript(task, served, path)
    onnx.checker.check_model(str(path))
    check_signature(onnx.load(str(path), load_external_data=False), task.signature, task.request.onnx_opset)


def _export_torchscript(task: Task, served: Any, path: Path) -> None:
    tensors = (*task.signature.inputs, *task.signature.outputs)
    axes = {
        tensor.name: {axis: _symbol(tensor, axis, task.signature) for axis in varying_axes(tensor, task.signature)}
        for tensor in tensors
    }
    try:
        torch.onnx.export(
            served,
            task.tensors,
            str(path),
            dynamo=False,
            opset_version=task.request.onnx_opset,
            input_names=list(task.framework.inputs),
            output_names=list(task.framework.outputs),
            dynamic_axes=axes,
        )
    except ValueError as error:
        if "opset" not in str(error):
            raise
        raise _unsupported(
            f"the TorchScript exporter of torch {torch.__version__}: {error}", task.request.onnx_opset
        ) from error


def _export_dynamo(task: Task, served: Any, path: Path) -> None:
    opset = task.request.onnx_opset
    shapes = tuple(
        dict.fromkeys(varying_axes(tensor, task.signature), torch.export.Dim.DYNAMIC)
        for tensor in task.signature.inputs
    )
    # torch 2.6 asks for the number of elements of a symbolic tensor where the weights of a matmul want no gradient.
    for parameter in task.framework.module.parameters():
        parameter.requires_grad_(parameter.is_floating_point())
    program = torch.onnx.export(
        served,
        task.tensors,
        dynamo=True,
        opset_version=DYNAMO_OPSET,
        input_names=list(task.framework.inputs),
        output_names=list(task.framework.outputs),
        dynamic_shapes=(shapes,),
        verbose=False,
    )
    # Folds what is computed from constants, without which few graphs convert to another operator set.
    program.optimize()
    program.save(str(path))
    if opset != DYNAMO_OPSET:
        _convert_opset(path, opset)


def _convert_opset(path: Path, opset: int) -> None:
    """Rewrite the file in another operator set, or say that this is not possible."""
    try:
        converted = version_converter.convert_version(onnx.load(str(path)), opset)
        _drop_newer_defaults(converted, opset)
        onnx.checker.check_model(converted)
    except (RuntimeError, ValueError, onnx.checker.ValidationError) as error:
        reason = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
        message = f"the Dynamo exporter writes opset {DYNAMO_OPSET}, and its graph does not convert ({reason:.300})"
        raise _unsupported(message, opset) from error
    onnx.save(converted, str(path))


def _drop_newer_defaults(model: Any, opset: int) -> None:
    """The converter leaves attributes that ``opset`` does not know yet, also where they say what is meant anyway."""
    for node in model.graph.node:
        if node.domain or not onnx.defs.has(node.op_type, ""):
            continue
        known = onnx.defs.get_schema(node.op_type, opset, "").attributes
        newer = onnx.defs.get_schema(node.op_type, DYNAMO_OPSET, "").attributes
        for attribute in [each for each in node.attribute if each.name not in known and each.name in newer]:
            default = newer[attribute.name].default_value
            if default.type and onnx.helper.get_attribute_value(attribute) == onnx.helper.get_attribute_value(default):
                node.attribute.remove(attribute)


def varying_axes(tensor: Tensor, signature: Signature) -> list[int]:
    """Axes of the whole tensor, batch included, whose size is not fixed."""
    offset = 1 if signature.max_batch_size else 0
    return [*range(offset), *(axis + offset for axis, dim in enumerate(tensor.dims) if dim == -1)]


def check_signature(model: Any, signature: Signature, opset: int) -> None:
    """Names, types and dimensions of the exported graph; raises StageError."""
    versions = {entry.domain: entry.version for entry in model.opset_import}
    if versions.get("", opset) != opset:
        raise _unsupported(f"the exporter wrote opset {versions['']}", opset)
    for kind, tensors, values in (
        ("input", signature.inputs, model.graph.input),
        ("output", signature.outputs, model.graph.output),
    ):
        names, expected = [value.name for value in values], [tensor.name for tensor in tensors]
        if names != expected:
            message = f"the exported graph's {kind}s are {names}, the signature's are {expected}"
            raise _failed(
                f"{message}: an input that is not used, or a tensor that is returned as it came or twice, is lost"
            )
        for tensor, value in zip(tensors, values, strict=True):
            _check_tensor(tensor, value, signature)


def _check_tensor(tensor: Tensor, value: Any, signature: Signature) -> None:
    """A dimension may be symbolic where the signature fixes it (onnx infers no more), never the other way round."""
    kind = value.type.tensor_type
    name = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type).name
    if TRITON_BY_NUMPY.get(name) != tensor.data_type:
        raise _failed(f"the exported graph's {tensor.name} is {name}, the signature says {tensor.data_type}")
    sizes = [dim.dim_value if dim.HasField("dim_value") else -1 for dim in kind.shape.dim]
    expected = [-1, *tensor.dims] if signature.max_batch_size else list(tensor.dims)
    if len(sizes) != len(expected) or any(
        size != -1 and size != want for size, want in zip(sizes, expected, strict=True)
    ):
        message = f"the exported graph's {tensor.name} has dimensions {sizes}, the signature says {expected}"
        raise _failed(f"{message}: the exporter fixed one that varies (a size used as a Python number?)")


def _symbol(tensor: Tensor, axis: int, signature: Signature) -> str:
    """The batch is one symbol throughout; other varying dimensions have one each."""
    return "batch" if axis == 0 and signature.max_batch_size else f"{tensor.name}_{axis}"


def _unsupported(message: str, opset: int) -> StageError:
    advice = f"opset {opset} was asked: change spec.models[].onnx.opset or .exporter"
    return StageError(Reason.CONVERSION_UNSUPPORTED, f"{message}; {advice}")


def _failed(message: str) -> StageError:
    return StageError(Reason.CONVERSION_FAILED, message)
