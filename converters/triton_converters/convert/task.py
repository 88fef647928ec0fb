"""What a converter is given, and the module it converts: the user's model with its casts inside."""

from dataclasses import dataclass
from typing import Any

import torch

from triton_converters.dump import Arrays
from triton_converters.framework import Framework, select_outputs
from triton_converters.request import ConvertRequest
from triton_converters.result import Signature


@dataclass(frozen=True)
class Task:
    """One conversion."""

    request: ConvertRequest
    framework: Framework
    """Weights already in the asked precision."""
    signature: Signature
    example: Arrays
    """Real inputs to trace with, by name."""

    @property
    def tensors(self) -> tuple[torch.Tensor, ...]:
        """The example in forward's order, on the model's device."""
        return self.framework.tensors(self.example)

    @property
    def half(self) -> bool:
        """Whether fp16 was asked."""
        return self.request.precision == "fp16"

    def served(self, module: Any) -> "Served":
        """``module`` (the framework's own, or made from it) behind the signature."""
        wrapped = Served(module, self.framework.outputs, self.half)
        wrapped.eval()
        return wrapped


class Served(torch.nn.Module):  # type: ignore[misc]
    """Floating point inputs and outputs are fp32 whatever happens inside; outputs come in the signature's order."""

    def __init__(self, model: Any, outputs: tuple[str, ...], half: bool) -> None:
        super().__init__()
        self.model = model
        self.outputs = outputs
        self.half_inside = half

    def forward(self, *inputs: torch.Tensor) -> Any:
        """One tensor, or a tuple where the signature has several outputs."""
        if self.half_inside:
            inputs = tuple(tensor.half() if tensor.is_floating_point() else tensor for tensor in inputs)
        results = select_outputs(self.model(*inputs), self.outputs)
        if self.half_inside:
            results = tuple(tensor.float() if tensor.dtype == torch.float16 else tensor for tensor in results)
        return results if len(results) > 1 else results[0]
