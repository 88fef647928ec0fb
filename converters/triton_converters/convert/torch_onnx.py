"""Format ``onnx`` from a torch module, by torch.onnx: with the first of its exporters and operator sets that works."""

import re
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import onnx
import torch

from triton_converters.claim_store.dump import Arrays, Batch, read_all, read_batches
from triton_converters.contract import layout, onnx_words
from triton_converters.contract.conversion_requests import DEFAULT_OPSET, ConvertRequest
from triton_converters.contract.failure import StageError
from triton_converters.contract.formats import FORMATS
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import Signature, Tensor
from triton_converters.convert import comparison, exporter_words, onnx_graph, onnx_names
from triton_converters.convert.example import example_inputs
from triton_converters.convert.task import ConversionWarning, Task
from triton_converters.convert.torch_module import framework, module, served, tensors
from triton_converters.load.framework import load

DYNAMO_OPSET = 18
"""Operator set that torch.onnx's Dynamo exporter writes; for another one the finished graph is converted."""
OPSETS = {"TorchScript": (DEFAULT_OPSET, 18, 19, 20), "Dynamo": (DEFAULT_OPSET, DYNAMO_OPSET)}
"""The operator sets to try with each exporter if the spec names none. TorchScript's newest is 20."""
LACKING = re.compile(r"opset|operator|[Uu]nsupported|not supported")
"""What exporters say of an operator that a newer operator set may have."""
SIZES = 4
"""The most batches of other sizes that a graph is tried with; each costs a run on the Job's processor."""


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


def ways(request: ConvertRequest) -> list[tuple[str, int]]:
    """Return the exporters and operator sets to try, in order: the lowest set first, and the spec's exporter."""
    pairs = [(exporter, opset) for exporter, opsets in OPSETS.items() for opset in opsets]
    if request.onnx_opset != DEFAULT_OPSET:
        pairs = [(exporter, request.onnx_opset) for exporter in OPSETS]
    return sorted(pairs, key=lambda pair: (pair[1], pair[0] != request.onnx_exporter))


def convert(task: Task, directory: Path) -> None:
    """Write model.onnx with the signature's names and types, and its varying dimensions.

    What failed in one way is told in a warning if another one works. A newer operator set is tried only where the
    exporter lacked an operator. Raises StageError: ConversionUnsupported (no operator set will do), ConversionFailed
    (the exporters failed, fixed a size that varies, or changed a type).
    """
    # The Dynamo exporter reads Python, not TorchScript.
    is_script = isinstance(framework(task).module, torch.jit.ScriptModule)
    failures: dict[str, StageError] = {}
    given_up = {"Dynamo"} if is_script else set()
    for exporter, opset in ways(task.request):
        if exporter in given_up:
            continue
        try:
            _export(_towards(task, exporter, opset, fresh=bool(failures)), directory)
        except OSError:
            raise
        except Exception as error:
            traceback.print_exc()
            failures.setdefault(exporter, _failure(error, task, f"exporter {exporter}, opset {opset}"))
            if not _lacks_operator(error):
                given_up.add(exporter)
            for leftover in directory.iterdir():
                leftover.unlink()
            continue
        if failures:
            reasons = "; ".join(each.message for each in failures.values())
            message = f"the graph was exported by {exporter} with opset {opset}, because this failed: {reasons}"
            warnings.warn(message, ConversionWarning, stacklevel=2)
        return
    unsupported = all(each.reason is Reason.CONVERSION_UNSUPPORTED for each in failures.values())
    reason = Reason.CONVERSION_UNSUPPORTED if unsupported else Reason.CONVERSION_FAILED
    words = "; ".join(each.message for each in failures.values())
    raise StageError(reason, f"onnx {task.request.precision}: {words}")


def _towards(task: Task, exporter: str, opset: int, fresh: bool) -> Task:
    """Return the task for one way. ``fresh``: the module was cast or moved by an earlier one, and is loaded again."""
    own = framework(task)
    loaded = load(own.source, task.request.model, task.request.format) if fresh else own
    # Dynamo takes a size of 1 for fixed.
    batches = read_batches(layout.reference_directory(task.request.reference))
    example = example_inputs(batches, task.signature, at_least_two=True) if exporter == "Dynamo" else task.example
    request = replace(task.request, onnx_exporter=exporter, onnx_opset=opset)
    return replace(task, request=request, framework=loaded, example=example)


def _failure(error: Exception, task: Task, way: str) -> StageError:
    """Return the failure of one way; ``way``: its words."""
    if isinstance(error, StageError):
        return StageError(error.reason, f"{way}: {error.message}")
    return StageError(Reason.CONVERSION_FAILED, f"{way}: {exporter_words.told(error, task.framework)}")


def _lacks_operator(error: Exception) -> bool:
    """Whether a newer operator set may help."""
    if isinstance(error, StageError):
        return error.reason is Reason.CONVERSION_UNSUPPORTED
    return bool(LACKING.search(str(error)))


def _export(task: Task, directory: Path) -> None:
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
    graph = onnx.load(str(path), load_external_data=False)
    onnx_names.restore(graph.graph, task.framework.inputs, task.framework.outputs)
    onnx.save(graph, str(path))
    onnx_graph.finish(task, directory, cast=exported.half != task.half)
    _check_sizes(task, directory)


def _check_sizes(task: Task, directory: Path) -> None:
    """Run the graph with samples of other sizes than the example's: an exporter may fix one inside the graph.

    Raises StageError(ConversionFailed) if it does not run, or answers with other sizes than the framework.
    """
    answer = comparison.runtime("onnx", task.signature, directory)
    exported = {name: list(array.shape) for name, array in task.example.items()}
    for batch in other_sizes(read_all(layout.reference_directory(task.request.reference)), task.example):
        given = {name: list(array.shape) for name, array in batch.inputs.items()}
        message = f"the exporter fixed a size: exported with inputs of {exported}, the graph does not answer {given}"
        try:
            answers = answer(batch.inputs)
        except Exception as error:
            raise StageError(Reason.CONVERSION_FAILED, f"{message}: {onnx_words.own(str(error))}") from error
        if wrong := [name for name, array in batch.outputs.items() if answers[name].shape != array.shape]:
            sizes = f"{wrong[0]} is {list(answers[wrong[0]].shape)}, and of the framework"
            raise StageError(Reason.CONVERSION_FAILED, f"{message}: {sizes} {list(batch.outputs[wrong[0]].shape)}")


def other_sizes(batches: Iterable[Batch], example: Arrays) -> Iterator[Batch]:
    """Yield the first batches whose inputs have other sizes than the example and than each other, at most SIZES."""
    seen = {tuple(example[name].shape for name in sorted(example))}
    for batch in batches:
        shape = tuple(batch.inputs[name].shape for name in sorted(example))
        if shape not in seen:
            yield batch
            seen.add(shape)
        if len(seen) > SIZES:
            return


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
    inputs, outputs = _stand_ins(task)
    tensors_by_name = {each.name: each for each in (*task.signature.inputs, *task.signature.outputs)}
    stand_ins = zip([*task.framework.inputs, *task.framework.outputs], [*inputs, *outputs], strict=True)
    axes = {
        stand_in: {
            axis: _symbol(tensors_by_name[name], axis, task.signature)
            for axis in onnx_graph.varying_axes(tensors_by_name[name], task.signature)
        }
        for name, stand_in in stand_ins
    }
    try:
        torch.onnx.export(
            model,
            tensors(task),
            str(path),
            dynamo=False,
            opset_version=task.request.onnx_opset,
            input_names=inputs,
            output_names=outputs,
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
    inputs, outputs = _stand_ins(task)
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
        input_names=inputs,
        output_names=outputs,
        dynamic_shapes=(shapes,),
        verbose=False,
    )
    # Folds what is computed from constants, without which few graphs convert to another operator set.
    program.optimize()
    program.save(str(path))
    if task.request.onnx_opset != DYNAMO_OPSET:
        onnx_graph.convert_file(path, task.request.onnx_opset, "the Dynamo exporter writes")


def _stand_ins(task: Task) -> tuple[list[str], list[str]]:
    """Return the names that the exporter is told for the inputs and the outputs."""
    own = task.framework
    return onnx_names.stand_ins("input", own.inputs), onnx_names.stand_ins("output", own.outputs)


def _symbol(tensor: Tensor, axis: int, signature: Signature) -> str:
    """Return an axis's symbol: the batch has one throughout, other varying dimensions have one each."""
    return "batch" if axis == 0 and signature.max_batch_size else f"{tensor.name}_{axis}"
