"""What ts-trace and ts-script share: naming, saving, and a look at the saved file."""

from pathlib import Path
from typing import Any

import numpy
import torch

from triton_converters.convert.task import Task
from triton_converters.data_types import TRITON_BY_NUMPY
from triton_converters.failure import StageError
from triton_converters.formats import FORMATS
from triton_converters.reasons import Reason
from triton_converters.result import Tensor


def trace(task: Task, module: Any, directory: Path) -> None:
    """Trace ``module`` behind the signature and save it as Triton's model.pt.

    Raises StageError: NamingUnsupported, ConversionFailed (the file answers otherwise than the signature says).
    """
    check_names(task.signature.inputs, "input")
    check_names(task.signature.outputs, "output")
    with torch.no_grad():
        traced = torch.jit.trace(task.served(module), task.tensors, check_trace=False)
    path = directory / FORMATS[task.request.format].file
    save(traced, path)
    _check_file(task, path)


def check_names(tensors: tuple[Tensor, ...], kind: str) -> None:
    """Triton's PyTorch backend takes NAME__INDEX for a position where all names have that form.

    Raises StageError(NamingUnsupported) where those positions are not the tensors' own.
    """
    indices = [tensor.name.partition("__")[2] if "__" in tensor.name else "none" for tensor in tensors]
    if all(index.isdigit() for index in indices) and [int(index) for index in indices] != list(range(len(indices))):
        names = ", ".join(tensor.name for tensor in tensors)
        message = f"Triton's PyTorch backend reads NAME__INDEX as a position; the {kind}s in order are {names}"
        raise StageError(Reason.NAMING_UNSUPPORTED, message)


def save(module: Any, path: Path) -> None:
    """Save a script module by way of memory; raises OSError (ENOSPC included).

    Where the disk is full, torch's own file writer leaves a cut file without a word, or aborts the process.
    """
    with path.open("wb") as file:
        file.write(module.save_to_buffer())


def _check_file(task: Task, path: Path) -> None:
    """The saved file, loaded anew, answers the example with the signature's types and shapes."""
    module = torch.jit.load(str(path), map_location=task.framework.device)
    with torch.no_grad():
        result = module(*task.tensors)
    answers = result if isinstance(result, tuple) else (result,)
    for tensor, answer in zip(task.signature.outputs, answers, strict=True):
        array = answer.cpu().numpy()
        shape = array.shape[1:] if task.signature.max_batch_size else array.shape
        fits = len(shape) == len(tensor.dims) and all(
            dim in (-1, size) for dim, size in zip(tensor.dims, shape, strict=True)
        )
        if TRITON_BY_NUMPY.get(array.dtype.name) != tensor.data_type or not fits:
            message = f"the converted model answers {tensor.name} as {array.dtype}{list(numpy.shape(array))}"
            expected = f"{tensor.data_type}{list(tensor.dims)}"
            raise StageError(Reason.CONVERSION_FAILED, f"{message}; the signature says {expected} after the batch")
