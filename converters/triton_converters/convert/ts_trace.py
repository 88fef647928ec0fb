"""Format ``ts-trace``: torch.jit.trace; the served model does what Python did with the example."""

from pathlib import Path

from triton_converters.convert.task import Task
from triton_converters.convert.torch_module import module
from triton_converters.convert.torchscript import trace


def convert(task: Task, directory: Path) -> None:
    """Write model.pt; raises what ``torchscript.trace`` and torch raise."""
    trace(task, module(task), directory)
