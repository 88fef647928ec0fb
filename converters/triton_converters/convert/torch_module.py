"""Functions for the converters of torch modules: the example as tensors, and the module with its casts inside."""

import warnings
from collections.abc import Sequence
from typing import Any

import torch

from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.convert import half_pace
from triton_converters.convert.script_half import halve, narrow
from triton_converters.convert.task import ConversionWarning, Task, warn_of_lost
from triton_converters.load.torch_framework import Passing, TorchFramework, call, select_outputs


def framework(task: Task) -> TorchFramework:
    """Return the task's framework, which is torch's: formats.py names these converters for no other."""
    assert isinstance(task.framework, TorchFramework)
    return task.framework


def tensors(task: Task) -> tuple[torch.Tensor, ...]:
    """Return the example in the order of the inputs' names, on the model's device."""
    return framework(task).tensors(task.example)


def module(task: Task) -> Any:
    """Return the framework's module in the requested precision; a Python module is cast in place.

    A weight outside the range of fp16 becomes infinite, not clamped, with a warning: the gate sees it. A buffer that is
    a mask is clamped. Raises
    StageError(ConversionUnsupported) if a TorchScript file does not run in fp16, or the processor is too slow in it.
    """
    run, model = framework(task).run, framework(task).module
    if not task.half:
        return model
    given = tensors(task)
    exact = half_pace.seconds(lambda: run(model, given))
    is_file = isinstance(model, torch.jit.ScriptModule)
    try:
        halved = halve(model, framework(task).device) if is_file else _cast(model)
        half_pace.check(lambda: run(halved, in_half(given)), exact)
    except RuntimeError as error:
        if not is_file:
            raise
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        message = f"{task.framework.path} does not run in fp16, because some of its types are fixed: {lines[-1]:.300}"
        advice = "convert it in fp32, or to format onnx or trt, or from the model's Python code (format pyt)"
        raise StageError(Reason.CONVERSION_UNSUPPORTED, f"{message}; {advice}") from error
    return halved


def _cast(model: torch.nn.Module) -> torch.nn.Module:
    finite = {name: bool(torch.isfinite(tensor).all()) for name, tensor in model.state_dict().items()}
    for name, tensor in model.state_dict().items():
        if tensor.is_floating_point():
            warn_of_lost(name, tensor, tensor.half())
    for buffer in model.buffers():
        if buffer.dtype == torch.float32:
            buffer.data = narrow(buffer.data).float()
    model.half()
    for name, tensor in model.state_dict().items():
        if finite[name] and not torch.isfinite(tensor).all():
            message = f"{name} has values outside the range of fp16 (65504)"
            warnings.warn(message, ConversionWarning, stacklevel=2)
    return model


def in_half(given: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    """Return the tensors with those of a floating point type in fp16."""
    return tuple(tensor.half() if tensor.is_floating_point() else tensor for tensor in given)


def served(task: Task, model: Any) -> "Served":
    """Wrap ``model`` (``module(task)``, or made from it) so that it has the signature."""
    own = framework(task)
    wrapped = Served(model, own.inputs, own.outputs, task.half, own.passing)
    wrapped.eval()
    return wrapped


class Served(torch.nn.Module):
    """A model with fp32 inputs and outputs, whatever it computes in, both in the signature's order."""

    def __init__(
        self, model: Any, inputs: tuple[str, ...], outputs: tuple[str, ...], half: bool, passing: Passing
    ) -> None:
        super().__init__()
        self.model = model
        self.inputs = inputs
        self.outputs = outputs
        self.half_inside = half
        self.passing = passing

    def forward(self, *inputs: torch.Tensor) -> Any:
        """Return one tensor, or a tuple if the signature has several outputs."""
        if self.half_inside:
            inputs = in_half(inputs)
        results = select_outputs(call(self.model, inputs, self.inputs, self.passing), self.outputs)
        if self.half_inside:
            results = tuple(tensor.float() if tensor.dtype == torch.float16 else tensor for tensor in results)
        return results if len(results) > 1 else results[0]
