"""Functions for every writer of ONNX: operator sets, the optimiser, the comparison with the signature, and saving."""

from pathlib import Path
from typing import Any

import numpy
import onnx
from onnx import version_converter

from triton_converters.contract.failure import StageError
from triton_converters.contract.formats import FORMATS
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import Signature, Tensor
from triton_converters.convert.onnx_precision import to_fp16
from triton_converters.convert.task import Task
from triton_converters.graph.opsets import OWN_DOMAINS
from triton_converters.load.onnx_session import ONLY_ERRORS, apart, session_options
from triton_converters.model_config.data_types import BYTES, NUMPY_BY_TRITON, TRITON_BY_NUMPY

INLINE_BYTES = 3 * 2**29
"""Larger weights go into a file next to the graph: a protobuf message holds at most 2 GiB."""
DATA_FILE = "model.onnx.data"


def finish(task: Task, directory: Path, *, cast: bool) -> None:
    """Turn model.onnx in ``directory`` from what an exporter wrote into what is served.

    It is optimised if the request says so, cast to fp16 if ``cast``, saved with large weights in a separate file, told
    the sizes of its outputs, then checked against the signature. Whether it is sound, its runtime says. Raises
    StageError: ConversionFailed (names, types or dimensions differ), ConversionUnsupported (operator set, or a graph
    that cannot be fp16).
    """
    path = directory / FORMATS["onnx"].file
    if task.request.onnx_optimized:
        optimise(path)
    if cast or _is_misplaced(path):
        model = load(path)
        save(to_fp16(model) if cast else model, path)
    if task.request.format == "onnx":
        declare_output_sizes(path)
    check_signature(onnx.load(str(path), load_external_data=False), task.signature, task.request.onnx_opset)


def declare_output_sizes(path: Path) -> None:
    """Write into the graph the sizes of its outputs that ONNX Runtime infers, where the graph leaves them open.

    Triton compares config.pbtxt with what ONNX Runtime infers, and config.pbtxt is made of what the graph declares.
    """
    model = onnx.load(str(path), load_external_data=False)
    shapes = {value.name: value.type.tensor_type.shape.dim for value in model.graph.output}
    if all(dim.HasField("dim_value") for shape in shapes.values() for dim in shape):
        return
    for name, sizes in apart(_inferred, path).items():
        for dim, size in zip(shapes[name], sizes, strict=False):
            if isinstance(size, int):
                dim.dim_value = size
    onnx.save(model, str(path))


def _inferred(path: Path) -> dict[str, list[Any]]:
    """Return the sizes of the outputs, which ONNX Runtime infers without any optimisation."""
    import onnxruntime

    options = session_options(ONLY_ERRORS)
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return {each.name: each.shape for each in session.get_outputs()}


def leave_out(model: Any, signature: Signature) -> None:
    """Remove the outputs that are not served: the user's config.pbtxt lists some of them."""
    served = {tensor.name for tensor in signature.outputs}
    kept = [value for value in model.graph.output if value.name in served]
    del model.graph.output[:]
    model.graph.output.extend(kept)


def redeclare(model: Any, signature: Signature) -> None:
    """Declare the tensors as they were observed, where the file does not, and outputs also where it is wrong.

    ONNX Runtime runs such files and at most warns, so they are about; Triton compares what is declared with
    config.pbtxt.
    """
    given, answered = ({value.name: value.type.tensor_type for value in side} for side in _interface(model))
    for tensor in (*signature.inputs, *signature.outputs):
        kind = given.get(tensor.name, answered.get(tensor.name))
        if kind is None:
            continue
        expected = _dimensions(tensor, signature)
        if not kind.elem_type:
            kind.elem_type = _element_type(tensor)
        if kind.HasField("shape") and (tensor.name in given or _fits(kind, expected)):
            continue
        kind.shape.SetInParent()
        del kind.shape.dim[:]
        for size in expected:
            dim = kind.shape.dim.add()
            if size != -1:
                dim.dim_value = size


def _interface(model: Any) -> tuple[list[Any], list[Any]]:
    """Return the inputs, without weights, and the outputs."""
    weights = {tensor.name for tensor in model.graph.initializer}
    return [value for value in model.graph.input if value.name not in weights], list(model.graph.output)


def _element_type(tensor: Tensor) -> int:
    """Return onnx's number of a tensor's type."""
    if tensor.data_type == BYTES:
        return int(onnx.TensorProto.STRING)
    return int(onnx.helper.np_dtype_to_tensor_dtype(numpy.dtype(NUMPY_BY_TRITON[tensor.data_type])))


def load(path: Path) -> Any:
    """Return the model with its weights; its data files may be deleted afterwards."""
    return onnx.load(str(path))


def save(model: Any, path: Path) -> None:
    """Write the model, and DATA_FILE if its weights exceed INLINE_BYTES; delete older data files."""
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
    """Return the bytes of the graph's initializers."""
    return sum(len(tensor.raw_data) for tensor in model.graph.initializer)


def optimise(path: Path) -> None:
    """Fold constants and fuse what the operator set itself can express, at ONNX Runtime's basic level.

    The graph must be fp32: ONNX Runtime would permanently cast what the CPU computes only in fp32. Higher levels write
    ONNX Runtime's own operators, which nothing else reads.
    """
    simple = path.with_name("optimised.onnx")
    apart(_write_optimised, path, simple)
    model = load(simple)
    used = {node.domain for graph in (model.graph, *model.functions) for node in graph.node}
    for entry in [each for each in model.opset_import if each.domain not in used | OWN_DOMAINS]:
        model.opset_import.remove(entry)
    save(model, path)
    for leftover in (simple, simple.with_name(f"{simple.name}.data")):
        leftover.unlink(missing_ok=True)


def _write_optimised(path: Path, simple: Path) -> None:
    import onnxruntime

    options = session_options(ONLY_ERRORS)
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.optimized_model_filepath = str(simple)
    options.add_session_config_entry("session.optimized_model_external_initializers_file_name", f"{simple.name}.data")
    options.add_session_config_entry("session.optimized_model_external_initializers_min_size_in_bytes", "1024")
    onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def convert_file(path: Path, opset: int, origin: str) -> None:
    """Rewrite the file in another operator set; ``origin``: what comes before "opset N" in the refusal.

    Raises StageError(ConversionUnsupported) if that is not possible.
    """
    model = load(path)
    version = opset_of(model)
    try:
        converted = version_converter.convert_version(model, opset)
        _drop_newer_defaults(converted, version, opset)
        onnx.checker.check_model(converted)
    except (RuntimeError, ValueError, onnx.checker.ValidationError) as error:
        reason = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
        message = f"{origin} opset {version}, but the graph cannot be converted from it ({reason:.300})"
        raise unsupported(message, opset) from error
    save(converted, path)


def opset_of(model: Any) -> int:
    """Return the version of ONNX's own operator set."""
    return next((entry.version for entry in model.opset_import if entry.domain in OWN_DOMAINS), 0)


def _drop_newer_defaults(model: Any, version: int, opset: int) -> None:
    """Remove attributes that ``opset`` does not know yet if they have the default; the converter leaves them."""
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
    """Return the axes of the whole tensor, including the batch, whose size is not fixed."""
    offset = 1 if signature.max_batch_size else 0
    return [*range(offset), *(axis + offset for axis, dim in enumerate(tensor.dims) if dim == -1)]


def check_signature(model: Any, signature: Signature, opset: int) -> None:
    """Check the graph's names, types and dimensions; raises StageError. ``opset`` 0: any."""
    version = opset_of(model)
    if opset and version != opset:
        raise unsupported(f"the exporter wrote opset {version}", opset)
    given, answered = _interface(model)
    for kind, tensors, values in (("input", signature.inputs, given), ("output", signature.outputs, answered)):
        names, expected = [value.name for value in values], [tensor.name for tensor in tensors]
        if names != expected:
            message = f"the exported graph's {kind}s are {names}, but the signature's are {expected}"
            raise _failed(
                f"{message}; exporters lose an unused input, and a tensor that is returned unchanged or twice"
            )
        for tensor, value in zip(tensors, values, strict=True):
            _check_tensor(tensor, value, signature)


def _check_tensor(tensor: Tensor, value: Any, signature: Signature) -> None:
    """Check one tensor; a dimension that the signature fixes may be symbolic (onnx infers no more), not vice versa."""
    kind = value.type.tensor_type
    is_text = kind.elem_type == onnx.TensorProto.STRING
    name = "string" if is_text else onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type).name
    if (BYTES if is_text else TRITON_BY_NUMPY.get(name)) != tensor.data_type:
        raise _failed(f"the exported graph's {tensor.name} is {name}, but the signature says {tensor.data_type}")
    expected = _dimensions(tensor, signature)
    if kind.HasField("shape") and not _fits(kind, expected):
        message = f"the exported graph's {tensor.name} has dimensions {_sizes(kind)}, but the signature says {expected}"
        raise _failed(f"{message}; the exporter fixed one that varies, perhaps a size used as a Python number")


def _dimensions(tensor: Tensor, signature: Signature) -> list[int]:
    """Return the sizes of the whole tensor, -1 where one varies."""
    return [-1, *tensor.dims] if signature.max_batch_size else list(tensor.dims)


def _sizes(kind: Any) -> list[int]:
    return [dim.dim_value if dim.HasField("dim_value") else -1 for dim in kind.shape.dim]


def _fits(kind: Any, expected: list[int]) -> bool:
    sizes = _sizes(kind)
    # Triton takes no size of 0, so that the signature opens it.
    return len(sizes) == len(expected) and all(
        size in (-1, want) or (size == 0 and want == -1) for size, want in zip(sizes, expected, strict=True)
    )


def _is_misplaced(path: Path) -> bool:
    """Whether large weights are in the graph's file, or weights in files with other names, as torch's exporter does."""
    return bool(_data_files(path) - {DATA_FILE}) or _inline_bytes(path) > INLINE_BYTES


def _inline_bytes(path: Path) -> int:
    return weight_bytes(onnx.load(str(path), load_external_data=False))


def _data_files(path: Path) -> set[str]:
    """Return the names of the files with weights that the graph's own file does not hold."""
    model = onnx.load(str(path), load_external_data=False)
    return {
        entry.value for tensor in model.graph.initializer for entry in tensor.external_data if entry.key == "location"
    }


def unsupported(message: str, opset: int) -> StageError:
    """Return ConversionUnsupported with advice about the operator set."""
    advice = f"opset {opset} was requested: change spec.models[].onnx.opset or .exporter"
    return StageError(Reason.CONVERSION_UNSUPPORTED, f"{message}; {advice}")


def _failed(message: str) -> StageError:
    return StageError(Reason.CONVERSION_FAILED, message)
