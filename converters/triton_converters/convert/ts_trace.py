"""Format ``ts-trace``: torch.jit.trace; what the example's path through Python did is what is served."""

from pathlib import Path

from triton_converters.convert.task import Task
from triton_converters.convert.torch_module import module
from triton_converters.convert.torchscript import trace


def convert(task: Task, directory: Path) -> None:
    """Write model.pt; raises what ``torchscript.trace`` and torch raise."""
    trace(task, module(task), directory)
