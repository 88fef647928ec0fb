"""The model outside Triton, run by PyTorch: NumPy arrays in and out of a torch module."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from inspect import Parameter, signature
from pathlib import Path
from typing import Any

import numpy
import torch

from triton_converters.claim_store.dump import Array, Arrays
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.incoming.documents import OpenAxes
from triton_converters.load import binding, gpu
from triton_converters.load.graph_inputs import GraphInput
from triton_converters.load.randomness import of_torchscript
from triton_converters.user.user_code import running


class Passing(Enum):
    """How a module takes its inputs."""

    ORDER = auto()
    """Inputs are passed one after the other."""
    NAMES = auto()
    """Parameters are named: the inputs are in another order than its own, or leave one out that has a default."""
    DICT = auto()
    """One dictionary holds all inputs."""


@dataclass(frozen=True)
class TorchFramework:
    """A Framework whose model is a torch module."""

    module: torch.nn.Module
    inputs: tuple[str, ...]
    """Names in the order of ``tensors``."""
    outputs: tuple[str, ...]
    """Names in the order of ``select``."""
    source: Path
    path: str
    device: torch.device
    declared: tuple[GraphInput, ...] = ()
    """The inputs as a config.pbtxt declares them; a torch module itself declares nothing."""
    passing: Passing = Passing.ORDER

    def __call__(self, inputs: Arrays) -> dict[str, Array]:
        """Return outputs by name for inputs by name.

        Raises StageError: FrameworkFailed if forward raises, or returns what cannot be served; UserCodeFailed.
        """
        try:
            with running(self.source, self.path, Reason.FRAMEWORK_FAILED), torch.inference_mode():
                outputs = self.select(self.run(self.module, self.tensors(inputs)))
                return {name: tensor.cpu().numpy() for name, tensor in zip(self.outputs, outputs, strict=True)}
        except StageError as error:
            if error.reason is not Reason.FRAMEWORK_FAILED:
                raise
            shapes = ", ".join(f"{name} {inputs[name].dtype}{list(inputs[name].shape)}" for name in self.inputs)
            raise StageError(error.reason, f"{error.message} (inputs: {shapes})") from error

    @property
    def open_axes(self) -> OpenAxes:
        """None: a torch module does not say which sizes may vary."""
        return {}

    @property
    def random(self) -> tuple[str, ...]:
        """The operators of a TorchScript file that draw random numbers; Python code does not tell."""
        is_file = isinstance(self.module, torch.jit.ScriptModule)
        return of_torchscript(self.module.inlined_graph) if is_file else ()

    def tensors(self, inputs: Arrays) -> tuple[torch.Tensor, ...]:
        """Return the inputs in the order of their names, on the model's device."""
        return tuple(torch.from_numpy(numpy.array(inputs[name])).to(self.device) for name in self.inputs)

    def run(self, module: Any, tensors: Sequence[torch.Tensor]) -> Any:
        """Return what ``module``, this one or one made from it, returns for tensors in the order of ``inputs``."""
        return call(module, tensors, self.inputs, self.passing)

    def select(self, result: Any) -> tuple[torch.Tensor, ...]:
        """Return the named outputs from forward's result: a tensor, a sequence (its first ones), or by name."""
        return select_outputs(result, self.outputs)


def call(module: Any, tensors: Sequence[torch.Tensor], names: Sequence[str], passing: Passing) -> Any:
    """Call a module with tensors, whose names are in the same order."""
    if passing is Passing.ORDER:
        return module(*tensors)
    given = dict(zip(names, tensors, strict=True))
    return module(given) if passing is Passing.DICT else module(**given)


_WRAPPERS = (torch.nn.DataParallel, torch.nn.parallel.DistributedDataParallel)
"""Modules around a module: these, and what torch.compile returns, have a forward that takes anything."""


def parameters(module: Any) -> list[Parameter]:
    """Return the parameters of a module's forward, or of the module's that it wraps; none if it does not tell."""
    if isinstance(module, torch.jit.ScriptModule):
        return [_parameter(argument) for argument in module.forward.schema.arguments[1:]]
    inner = module.module if isinstance(module, _WRAPPERS) else getattr(module, "_orig_mod", None)
    if isinstance(inner, torch.nn.Module):
        return parameters(inner)
    try:
        return list(signature(module.forward).parameters.values())
    except (TypeError, ValueError):
        return []


def _parameter(argument: Any) -> Parameter:
    """Return an argument of a TorchScript function as Python knows it."""
    kind = Parameter.KEYWORD_ONLY if argument.kwarg_only else Parameter.POSITIONAL_OR_KEYWORD
    default = argument.default_value if argument.has_default_value() else Parameter.empty
    return Parameter(argument.name, kind, default=default)


def exact_device() -> torch.device:
    """Return the GPU if there is one, else the CPU, and set torch to full fp32: TensorFloat-32 is inexact.

    Turns TorchScript's fuser off: a Job calls a file only a few times, and on a CPU the second call of each shape would
    compile for seconds to minutes.

    Raises StageError(GpuUnavailable) if a PyTorch with CUDA does not see the GPU that the container has: the Job would
    run on the CPU in silence. A PyTorch without CUDA, such as that of our images for CPUs, uses the CPU.
    """
    is_available = torch.cuda.is_available()
    if is_available:
        gpu.note(torch.cuda.get_device_name())
    elif gpu.is_given() and torch.backends.cuda.is_built():
        raise gpu.unseen(f"PyTorch {torch.__version__}", _words_without_gpu())
    torch._C._jit_set_texpr_fuser_enabled(False)  # noqa: SLF001 - no public name
    torch.backends.cudnn.allow_tf32 = False
    torch.set_float32_matmul_precision("highest")
    return torch.device("cuda" if is_available else "cpu")


def _words_without_gpu() -> str:
    """Return PyTorch's own words for why it sees no GPU."""
    try:
        torch.zeros(1, device="cuda")
    except (RuntimeError, AssertionError) as error:
        return str(error)
    return "it gave no reason"


def select_outputs(result: Any, names: tuple[str, ...]) -> tuple[torch.Tensor, ...]:
    """Return tensors in the order of ``names``; raises StageError(FrameworkFailed) if ``result`` lacks one.

    A dict is asked by name, and so is a named tuple that has them. A sequence may be longer than the names: the rest
    is not served. A number becomes a tensor of one element, because Triton has no scalars.
    """
    if isinstance(result, torch.Tensor):
        values: list[Any] = [result]
    elif isinstance(result, Mapping):
        missing = [name for name in names if name not in result]
        if missing:
            raise _failed(f"forward returned a dict of {sorted(map(str, result))}, but get_model names {list(names)}")
        values = [result[name] for name in names]
    elif isinstance(result, tuple | list):
        try:
            values = binding.items(result, names)
        except ValueError as error:
            raise _failed(str(error)) from error
    else:
        raise _failed(f"forward returned {type(result).__name__}; return a tensor, a tuple or a dict of tensors")
    if len(values) < len(names):
        raise _failed(f"forward returned {len(values)} outputs, but get_model names {list(names)}")
    for name, value in zip(names, values, strict=False):
        if not isinstance(value, torch.Tensor):
            raise _failed(f"forward returned {type(value).__name__} for the output {name}, not a tensor")
    return tuple(value if value.dim() else value.reshape(1) for value in values[: len(names)])


def _failed(message: str) -> StageError:
    return StageError(Reason.FRAMEWORK_FAILED, message)
