"""What every writer of ONNX shares: operator sets, the optimiser, the comparison with the signature, and saving."""

from pathlib import Path
from typing import Any

import onnx
from onnx import version_converter

from triton_converters.contract.failure import StageError
from triton_converters.contract.formats import FORMATS
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import Signature, Tensor
from triton_converters.convert.onnx_precision import to_fp16
from triton_converters.convert.task import Task
from triton_converters.model_config.data_types import BYTES, TRITON_BY_NUMPY

INLINE_BYTES = 3 * 2**29
"""Weights beyond this go into a file beside the graph: a protobuf message holds at most 2 GiB."""
DATA_FILE = "model.onnx.data"
OWN_DOMAINS = frozenset({"", "ai.onnx"})


def finish(task: Task, directory: Path, *, cast: bool) -> None:
    """Take model.onnx in ``directory`` from what an exporter wrote to what is served.

    Optimised where the request asks for it, in fp16 where ``cast``, its weights beside it where they are large; then
    checked against the signature. Raises StageError: ConversionFailed (names, types or dimensions differ),
    ConversionUnsupported (operator set, or a graph that does not bear fp16); what onnx.checker raises.
    """
    path = directory / FORMATS["onnx"].file
    if task.request.onnx_optimized:
        optimise(path)
    if cast or _is_misplaced(path):
        model = load(path)
        save(to_fp16(model) if cast else model, path)
    onnx.checker.check_model(str(path))
    check_signature(onnx.load(str(path), load_external_data=False), task.signature, task.request.onnx_opset)


def load(path: Path) -> Any:
    """The model with its weights; data files beside it may go afterwards."""
    return onnx.load(str(path))


def save(model: Any, path: Path) -> None:
    """Write the model, and DATA_FILE where its weights are beyond INLINE_BYTES; older data files go."""
    for name in _data_files(path) if path.exists() else ():
        (path.parent / name).unlink(missing_ok=True)
    if weight_bytes(model) <= INLINE_BYTES:
        onnx.save(model, str(path))
    else:
        onnx.save(
            model,
            str(path),
            save_as_external_data=True,
            all_tensors_to_one_file=True,
            location=DATA_FILE,
            size_threshold=1024,
        )


def weight_bytes(model: Any) -> int:
    """Bytes of the graph's initializers."""
    return sum(len(tensor.raw_data) for tensor in model.graph.initializer)


def optimise(path: Path) -> None:
    """Fold constants and fuse what the operator set itself expresses, by ONNX Runtime's basic level.

    The graph must be fp32: what the CPU computes in fp32 only, ONNX Runtime would cast for good. Higher levels write
    operators of its own, which nothing else reads.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    simple = path.with_name("optimised.onnx")
    options.optimized_model_filepath = str(simple)
    options.add_session_config_entry("session.optimized_model_external_initializers_file_name", f"{simple.name}.data")
    options.add_session_config_entry("session.optimized_model_external_initializers_min_size_in_bytes", "1024")
    onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    model = load(simple)
    used = {node.domain for graph in (model.graph, *model.functions) for node in graph.node}
    for entry in [each for each in model.opset_import if each.domain not in used | OWN_DOMAINS]:
        model.opset_import.remove(entry)
    save(model, path)
    for leftover in (simple, simple.with_name(f"{simple.name}.data")):
        leftover.unlink(missing_ok=True)


def convert_file(path: Path, opset: int, origin: str) -> None:
    """Rewrite the file in another operator set; ``origin``: what comes before "opset N" in the refusal.

    Raises StageError(ConversionUnsupported) where that is not possible.
    """
    model = load(path)
    version = opset_of(model)
    try:
        converted = version_converter.convert_version(model, opset)
        _drop_newer_defaults(converted, version, opset)
        onnx.checker.check_model(converted)
    except (RuntimeError, ValueError, onnx.checker.ValidationError) as error:
        reason = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
        message = f"{origin} opset {version}, and its graph does not convert ({reason:.300})"
        raise unsupported(message, opset) from error
    save(converted, path)


def opset_of(model: Any) -> int:
    """Version of ONNX's own operator set."""
    return next((entry.version for entry in model.opset_import if entry.domain in OWN_DOMAINS), 0)


def _drop_newer_defaults(model: Any, version: int, opset: int) -> None:
    """The converter leaves attributes that ``opset`` does not know yet, also where they say what is meant anyway."""
    for node in model.graph.node:
        if node.domain or not onnx.defs.has(node.op_type, ""):
            continue
        known = onnx.defs.get_schema(node.op_type, opset, "").attributes
        newer = onnx.defs.get_schema(node.op_type, version, "").attributes
        for attribute in [each for each in node.attribute if each.name not in known and each.name in newer]:
            default = newer[attribute.name].default_value
            if default.type and onnx.helper.get_attribute_value(attribute) == onnx.helper.get_attribute_value(default):
                node.attribute.remove(attribute)


def varying_axes(tensor: Tensor, signature: Signature) -> list[int]:
    """Axes of the whole tensor, batch included, whose size is not fixed."""
    offset = 1 if signature.max_batch_size else 0
    return [*range(offset), *(axis + offset for axis, dim in enumerate(tensor.dims) if dim == -1)]


def check_signature(model: Any, signature: Signature, opset: int) -> None:
    """Names, types and dimensions of the graph; raises StageError. ``opset`` 0: any."""
    version = opset_of(model)
    if opset and version != opset:
        raise unsupported(f"the exporter wrote opset {version}", opset)
    weights = {tensor.name for tensor in model.graph.initializer}
    for kind, tensors, values in (
        ("input", signature.inputs, [value for value in model.graph.input if value.name not in weights]),
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
    is_text = kind.elem_type == onnx.TensorProto.STRING
    name = "string" if is_text else onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type).name
    if (BYTES if is_text else TRITON_BY_NUMPY.get(name)) != tensor.data_type:
        raise _failed(f"the exported graph's {tensor.name} is {name}, the signature says {tensor.data_type}")
    if not kind.HasField("shape"):
        return
    sizes = [dim.dim_value if dim.HasField("dim_value") else -1 for dim in kind.shape.dim]
    expected = [-1, *tensor.dims] if signature.max_batch_size else list(tensor.dims)
    if len(sizes) != len(expected) or any(
        size != -1 and size != want for size, want in zip(sizes, expected, strict=True)
    ):
        message = f"the exported graph's {tensor.name} has dimensions {sizes}, the signature says {expected}"
        raise _failed(f"{message}: the exporter fixed one that varies (a size used as a Python number?)")


def _is_misplaced(path: Path) -> bool:
    """Whether large weights lie in the graph's file, or weights in files of other names, as torch's exporter has it."""
    return bool(_data_files(path) - {DATA_FILE}) or _inline_bytes(path) > INLINE_BYTES


def _inline_bytes(path: Path) -> int:
    return weight_bytes(onnx.load(str(path), load_external_data=False))


def _data_files(path: Path) -> set[str]:
    """Names of the files that hold the weights which the graph's own file does not."""
    model = onnx.load(str(path), load_external_data=False)
    return {
        entry.value for tensor in model.graph.initializer for entry in tensor.external_data if entry.key == "location"
    }


def unsupported(message: str, opset: int) -> StageError:
    """ConversionUnsupported with what to do about the operator set."""
    advice = f"opset {opset} was asked: change spec.models[].onnx.opset or .exporter"
    return StageError(Reason.CONVERSION_UNSUPPORTED, f"{message}; {advice}")


def _failed(message: str) -> StageError:
    return StageError(Reason.CONVERSION_FAILED, message)
