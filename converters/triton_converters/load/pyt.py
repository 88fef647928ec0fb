"""Format ``pyt``: a Python file whose ``get_model`` returns a torch.nn.Module and the names of its tensors."""

import pickle
import re
import traceback
from pathlib import Path
from typing import Any

import torch

from triton_converters.contract.conversion_requests import ModelCode
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.load import binding, get_model
from triton_converters.load.names import FORM, tensor_names
from triton_converters.load.plain_module import stop_gradients, without_compilation
from triton_converters.load.torch_framework import Passing, TorchFramework, exact_device, parameters

_REFUSED = re.compile(
    r"(?:unsupported GLOBAL|Unsupported global: GLOBAL|unrecognized function|unsupported class) (\S+)"
)
"""Matches torch.load's words for what it would have to execute; other unpickling errors mean a corrupt file."""
_CHECKPOINT_SUFFIXES = frozenset({".pt", ".pth", ".ckpt", ".bin", ".safetensors", ".tar"})


def load(source: Path, model: ModelCode, output_format: str) -> TorchFramework:
    """Call get_model and take its module in fp32, on the GPU if there is one.

    ``output_format`` is offered to get_model as an argument. Raises StageError: what ``get_model.returned`` raises,
    CheckpointInvalid, PickleRefused, EntrypointInvalid (not a module and its names, names that contradict forward's
    order, or training mode).
    """
    path = model.entrypoint.path
    returned = get_model.returned(source, model, output_format, _checkpoint_error)
    module, names = _unpack(returned, path)
    module = without_compilation(module)
    _check_mode(module, path)
    try:
        passing = Passing.NAMES if binding.keywords(names[0], parameters(module)) else Passing.ORDER
    except ValueError as error:
        raise _invalid(f"{path}: {error}") from error
    # The fused attention of evaluation mode has no ONNX operator, and cuts padding off its output.
    torch.backends.mha.set_fastpath_enabled(False)
    device = exact_device()
    stop_gradients(module)
    return TorchFramework(module.float().to(device), *names, source, path, device, passing=passing)


def _unpack(returned: Any, path: str) -> tuple[torch.nn.Module, tuple[tuple[str, ...], tuple[str, ...]]]:
    """Return the module and its names; raises StageError(EntrypointInvalid)."""
    if not isinstance(returned, tuple | list) or len(returned) != 2:
        raise _invalid(f"{path}: get_model must return {FORM}, not {type(returned).__name__}")
    module, names = returned
    if not isinstance(module, torch.nn.Module):
        raise _invalid(f"{path}: get_model returned {type(module).__name__} as the model, not a torch.nn.Module")
    return module, tensor_names(names, path)


def _check_mode(module: torch.nn.Module, path: str) -> None:
    """Raise StageError(EntrypointInvalid) if a layer is in training mode.

    A module that was wrapped around a model after that one's ``eval()`` has no layers of its own: it gets the mode of
    those that it holds.
    """
    training = {name: each for name, each in module.named_modules() if each.training}
    if any(next(each.children(), None) is None for each in training.values()):
        name, first = next(iter(training.items()))
        message = f"{path}: {name or 'the model'} ({type(first).__name__}) is in training mode; call model.eval()"
        raise StageError(Reason.ENTRYPOINT_INVALID, message)
    module.eval()


def _checkpoint_error(cause: BaseException, where: str, checkpoint: str) -> StageError | None:
    text = str(cause)
    if isinstance(cause, pickle.UnpicklingError) and (refused := _REFUSED.search(text)):
        message = (
            f"{where}: {checkpoint} is a pickle that holds more than weights ({refused.group(1)}); it was not"
            " executed. Save only model.state_dict(), preferably as safetensors"
        )
        return StageError(Reason.PICKLE_REFUSED, message)
    if isinstance(cause, FileNotFoundError):
        name = str(cause.filename or text)
        if Path(name).suffix in _CHECKPOINT_SUFFIXES or _reads_checkpoint(cause):
            return StageError(Reason.CHECKPOINT_INVALID, f"{where}: the checkpoint {name} does not exist")
    if _reads_checkpoint(cause):
        # torch.load's error is a page of advice, with the cause after this label.
        text = text.partition("WeightsUnpickler error:")[2] or text
        line = next((line.strip() for line in text.splitlines() if line.strip()), type(cause).__name__)
        return StageError(Reason.CHECKPOINT_INVALID, f"{where}: {checkpoint} cannot be read: {line:.300}")
    if isinstance(cause, RuntimeError) and "loading state_dict" in text:
        lines = " ".join(text.split())
        return StageError(Reason.CHECKPOINT_INVALID, f"{where}: {checkpoint} does not fit the model: {lines:.600}")
    return None


def _reads_checkpoint(cause: BaseException) -> bool:
    """Whether the exception came from torch.load or safetensors."""
    files = [frame.filename for frame in traceback.extract_tb(cause.__traceback__)]
    return (
        type(cause).__module__.startswith("safetensors")
        or type(cause).__name__ == "SafetensorError"
        or any(
            re.search(r"torch/(serialization|_weights_only_unpickler|jit/_serialization)\.py|/safetensors/", file)
            for file in files
        )
    )


def _invalid(message: str) -> StageError:
    return StageError(Reason.ENTRYPOINT_INVALID, message)
