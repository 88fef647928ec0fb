"""Format ``onnx`` from a torch module: torch.onnx with the exporter that the spec names, TorchScript's or Dynamo's."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from triton_converters.contract.failure import StageError
from triton_converters.contract.formats import FORMATS
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import Signature, Tensor
from triton_converters.convert import onnx_graph
from triton_converters.convert.task import ConversionWarning, Task
from triton_converters.convert.torch_module import framework, module, served, tensors
from triton_converters.load.framework import load

DYNAMO_OPSET = 18
"""Operator set that torch.onnx's Dynamo exporter writes; for another one the finished graph is converted."""


@dataclass(frozen=True)
class Try:
    """One way to export."""

    device: torch.device
    folds: bool
    """Whether the exporter computes what follows from constants."""


def tries(device: torch.device, exporter: str) -> tuple[Try, ...]:
    """Return the ways to export a model that is on ``device``, in order.

    On a GPU the exporter may mix devices where it does not on a CPU: it folds on the CPU what belongs to tensors of the
    GPU. So it is tried again without folding, which only TorchScript's exporter can leave out, and then on the CPU. The
    graph computes the same: it names no device, and the runtime folds.
    """
    if device.type == "cpu":
        return (Try(device, True),)
    again = () if exporter == "Dynamo" else (Try(device, False),)
    return (Try(device, True), *again, Try(torch.device("cpu"), True))


def first_that_works(ways: Sequence[Try], export: Callable[[Try], None]) -> None:
    """Export in the first way that does not mix devices; raises what the last way or any other failure raises."""
    for way in ways[:-1]:
        try:
            return export(way)
        except RuntimeError as error:
            if "device" not in str(error):
                raise
            folding = "" if way.folds else " without folding"
            print(f"torch.onnx failed on {way.device}{folding}, and is tried in another way: {error}", flush=True)
    return export(ways[-1])


def convert(task: Task, directory: Path) -> None:
    """Write model.onnx with the requested operator set, the signature's names and types, and its varying dimensions.

    Raises StageError: ConversionUnsupported (operator set), ConversionFailed (the exporter fixed a dimension that
    varies, or changed a type); what torch.onnx raises.
    """
    path = directory / FORMATS["onnx"].file
    # What is optimised is an fp32 graph (see onnx_graph.optimise), which is cast afterwards; so are TorchScript files.
    late = task.request.onnx_optimized or isinstance(framework(task).module, torch.jit.ScriptModule)
    exported, model = _in_fp32(task) if late else _in_its_precision(task)
    export = _export_dynamo if task.request.onnx_exporter == "Dynamo" else _export_torchscript

    def export_in(way: Try) -> None:
        there = replace(exported, framework=replace(framework(exported), device=way.device))
        export(there, model.to(way.device), path, way.folds)

    with torch.no_grad():
        first_that_works(tries(framework(task).device, task.request.onnx_exporter), export_in)
    onnx_graph.finish(task, directory, cast=exported.half != task.half)


def _in_fp32(task: Task) -> tuple[Task, Any]:
    """Return the task in fp32 and what it exports; the graph is cast afterwards."""
    exported = task.towards("onnx")
    return exported, served(exported, module(exported))


def _in_its_precision(task: Task) -> tuple[Task, Any]:
    """Return the task and what it exports: in fp32 too if torch does not run the module in fp16, or too slowly."""
    try:
        return task, served(task, module(task))
    except (RuntimeError, StageError) as error:
        if not task.half:
            raise
        line = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
        message = f"the model does not run in fp16 in torch, so its graph is cast after the export ({line:.200})"
        warnings.warn(message, ConversionWarning, stacklevel=2)
    # What failed has cast the module in place.
    own = framework(task)
    return _in_fp32(replace(task, framework=load(own.source, task.request.model, task.request.format)))


def _export_torchscript(task: Task, model: Any, path: Path, folds: bool) -> None:
    # If a module holds TorchScript, the exporter needs a trace of the whole module.
    is_file = isinstance(framework(task).module, torch.jit.ScriptModule)
    model = torch.jit.trace(model, tensors(task), check_trace=False) if is_file else model
    axes = {
        tensor.name: {
            axis: _symbol(tensor, axis, task.signature) for axis in onnx_graph.varying_axes(tensor, task.signature)
        }
        for tensor in (*task.signature.inputs, *task.signature.outputs)
    }
    try:
        torch.onnx.export(
            model,
            tensors(task),
            str(path),
            dynamo=False,
            opset_version=task.request.onnx_opset,
            input_names=list(task.framework.inputs),
            output_names=list(task.framework.outputs),
            dynamic_axes=axes,
            do_constant_folding=folds,
        )
    except ValueError as error:
        if "opset" not in str(error):
            raise
        raise onnx_graph.unsupported(
            f"the TorchScript exporter of torch {torch.__version__} failed: {error}", task.request.onnx_opset
        ) from error


def _export_dynamo(task: Task, model: Any, path: Path, _folds: bool) -> None:
    if isinstance(framework(task).module, torch.jit.ScriptModule):
        message = "the Dynamo exporter reads Python, not TorchScript; set spec.models[].onnx.exporter to TorchScript"
        raise StageError(Reason.CONVERSION_UNSUPPORTED, message)
    shapes = tuple(
        dict.fromkeys(onnx_graph.varying_axes(tensor, task.signature), torch.export.Dim.DYNAMIC)
        for tensor in task.signature.inputs
    )
    # torch 2.6 asks for the number of elements of a symbolic tensor where the weights of a matmul want no gradient.
    for parameter in framework(task).module.parameters():
        parameter.requires_grad_(parameter.is_floating_point())
    program = torch.onnx.export(
        model,
        tensors(task),
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
    if task.request.onnx_opset != DYNAMO_OPSET:
        onnx_graph.convert_file(path, task.request.onnx_opset, "the Dynamo exporter writes")


def _symbol(tensor: Tensor, axis: int, signature: Signature) -> str:
    """Return an axis's symbol: the batch has one throughout, other varying dimensions have one each."""
    return "batch" if axis == 0 and signature.max_batch_size else f"{tensor.name}_{axis}"
