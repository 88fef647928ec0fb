"""Format ``ts-script``: torch.jit.script; the model's control flow stays."""

from pathlib import Path

import torch

from triton_converters.convert.task import Task
from triton_converters.convert.torch_module import module
from triton_converters.convert.torchscript import trace


def convert(task: Task, directory: Path) -> None:
    """Write model.pt: the scripted model, called from a traced wrapper that casts; raises what they raise."""
    trace(task, torch.jit.script(module(task)), directory)
