"""Format ``ts-script``: torch.jit.script; the model's control flow stays."""

import shutil
from pathlib import Path

import torch

from triton_converters.contract.formats import FORMATS
from triton_converters.convert.task import Task
from triton_converters.convert.torch_module import framework, module, tensors
from triton_converters.convert.torchscript import accept, trace
from triton_converters.load.torch_framework import Passing


def convert(task: Task, directory: Path) -> None:
    """Write model.pt: the scripted model, called from a traced wrapper that casts; raises what they raise.

    A file of a Triton repository is copied as it is, if Triton calls it as its framework does: its config.pbtxt names
    the tensors, so it needs no wrapper.
    """
    if task.request.model.declared is not None and not task.half and _is_plain(task):
        path = directory / FORMATS["ts-script"].file
        shutil.copyfile(task.framework.source / task.framework.path, path)
        accept(task, framework(task).module, path)
        return
    trace(task, torch.jit.script(module(task)), directory)


def _is_plain(task: Task) -> bool:
    """Whether forward takes all its tensors in order, and no others, and returns no number."""
    own = framework(task)
    if own.passing is not Passing.ORDER or len(own.module.forward.schema.arguments) != len(own.inputs) + 1:
        return False
    with torch.no_grad():
        result = own.run(own.module, tensors(task))
    return all(each.dim() for each in (result if isinstance(result, tuple) else (result,)))
