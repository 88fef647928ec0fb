"""Format ``ts-script``: torch.jit.script; the model's control flow stays."""

import shutil
from pathlib import Path

import torch

from triton_converters.contract.formats import FORMATS
from triton_converters.convert.task import Task
from triton_converters.convert.torch_module import framework, module
from triton_converters.convert.torchscript import accept, trace


def convert(task: Task, directory: Path) -> None:
    """Write model.pt: the scripted model, called from a traced wrapper that casts; raises what they raise.

    A file of a Triton repository is copied as it is: its config.pbtxt names the tensors, so it needs no wrapper.
    """
    if task.request.model.declared is not None and not task.half:
        path = directory / FORMATS["ts-script"].file
        shutil.copyfile(task.framework.source / task.framework.path, path)
        accept(task, framework(task).module, path)
        return
    trace(task, torch.jit.script(module(task)), directory)
