"""Functions for ts-trace and ts-script: checks of names, saving, and a check of the saved file."""

import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy
import torch

from triton_converters.claim_store import inspection
from triton_converters.contract.failure import StageError
from triton_converters.contract.formats import FORMATS
from triton_converters.contract.reasons import Reason
from triton_converters.convert.task import ConversionWarning, Task
from triton_converters.convert.torch_module import framework, served, tensors
from triton_converters.gates.precision import by_elements
from triton_converters.model_config.data_types import TRITON_BY_NUMPY
from triton_converters.model_config.torch_names import positions

NAMES_THE_CPU = (
    "the trace names the CPU, because the code names a device or asks a tensor for its own, and may fail on the GPU;"
    " use ts-script or onnx, or set images.converterGpu of the chart, so that it is traced on a GPU"
)


def trace(task: Task, model: Any, directory: Path) -> None:
    """Trace ``model`` with the signature and save it as Triton's model.pt.

    Raises StageError: ConversionUnsupported, ConversionFailed (the file's answers do not fit the signature).
    """
    with torch.no_grad():
        traced = torch.jit.trace(served(task, model), tensors(task), check_trace=False)
    if task.request.config.instance_group_kind == "KIND_GPU" and names_the_cpu(traced):
        warnings.warn(NAMES_THE_CPU, ConversionWarning, stacklevel=2)
    path = directory / FORMATS[task.request.format].file
    save(traced, path)
    accept(task, traced, path)


def names_the_cpu(traced: Any) -> bool:
    """Whether the CPU is a constant of the graph, which loading a file on a GPU does not change.

    It is also where a number becomes a tensor, which does no harm on a GPU: only the gate can tell.
    """
    graph = traced.inlined_graph
    devices = [each for each in graph.findAllNodes("prim::Constant", True) if str(each.output().type()) == "Device"]
    return any(each.s("value") == "cpu" for each in devices)


def accept(task: Task, module: Any, path: Path) -> None:
    """Check a saved file, which holds ``module``, and write its inspection. Raises what ``trace`` raises."""
    parameters = [argument.name for argument in module.forward.schema.arguments[1:]]
    check_names([tensor.name for tensor in task.signature.inputs], "input", parameters)
    check_names([tensor.name for tensor in task.signature.outputs], "output")
    _check_file(task, path)
    inspection.write(path.parent, weight_data_types(path))


def check_names(names: list[str], kind: str, parameters: Sequence[str] = ()) -> None:
    """Raise StageError(ConversionUnsupported) if Triton's PyTorch backend would find tensors at other positions."""
    places = positions(names, parameters)
    if places != list(range(len(names))):
        message = f"Triton's PyTorch backend would take the {kind}s {', '.join(names)} for those at {places}"
        raise StageError(Reason.CONVERSION_UNSUPPORTED, f"{message}; rename them in get_model, in the order of forward")


def save(module: Any, path: Path) -> None:
    """Save a script module through memory; raises OSError (including ENOSPC).

    If the disk is full, torch's own file writer silently leaves a cut file, or aborts the process.
    """
    with path.open("wb") as file:
        file.write(module.save_to_buffer())


def _check_file(task: Task, path: Path) -> None:
    """Check that the saved file, loaded again, answers the example with the signature's types and shapes."""
    module = torch.jit.load(str(path), map_location=framework(task).device)
    with torch.no_grad():
        result = module(*tensors(task))
    answers = result if isinstance(result, tuple) else (result,)
    for tensor, answer in zip(task.signature.outputs, answers, strict=True):
        array = answer.cpu().numpy()
        shape = array.shape[1:] if task.signature.max_batch_size else array.shape
        fits = len(shape) == len(tensor.dims) and all(
            dim in (-1, size) for dim, size in zip(tensor.dims, shape, strict=True)
        )
        if TRITON_BY_NUMPY.get(array.dtype.name) != tensor.data_type or not fits:
            message = f"the converted model answers {tensor.name} as {array.dtype}{list(numpy.shape(array))}"
            expected = f"{tensor.data_type}{list(tensor.dims)}"
            raise StageError(Reason.CONVERSION_FAILED, f"{message}, but the signature says {expected} after the batch")


def weight_data_types(path: Path) -> tuple[str, ...]:
    """Return Triton's names of the floating point types of a file's weights, the type of most elements first.

    Only here: to read the file is to run what it holds.
    """
    return by_elements(_weights(path))


def _weights(path: Path) -> Iterator[tuple[str, int]]:
    """Yield type and number of elements of every floating point parameter, buffer and constant of the graph."""
    names = {torch.float32: "FP32", torch.float16: "FP16", torch.float64: "FP64", torch.bfloat16: "BF16"}
    module = torch.jit.load(str(path), map_location="cpu")
    tensors: list[Any] = [*module.parameters(), *module.buffers()]
    graph = module.inlined_graph
    constants = graph.findAllNodes("prim::Constant", True)
    tensors += [each.t("value") for each in constants if each.hasAttribute("value") and each.kindOf("value") == "t"]
    for tensor in tensors:
        if tensor.dtype in names:
            yield names[tensor.dtype], tensor.numel()
