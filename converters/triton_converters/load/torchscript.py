"""Formats ``ts-trace`` and ``ts-script``: a TorchScript file, run by torch.jit."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from triton_converters.contract.conversion_requests import ModelCode
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import Tensor
from triton_converters.incoming import current
from triton_converters.load.declared import mismatch
from triton_converters.load.torch_framework import Passing, TorchFramework, exact_device
from triton_converters.model_config.torch_names import positions
from triton_converters.user.user_code import locate


def load(source: Path, model: ModelCode, output_format: str) -> TorchFramework:
    """Load the file, weights of any type as they are, on the GPU if there is one.

    The file names no outputs, and a trace no inputs: they are INPUT__0, INPUT__1, ... in the order of forward's
    parameters and OUTPUT__0, ... in the order of what it returns, unless a config.pbtxt names them. ``output_format``
    changes nothing. Raises StageError: CheckpointInvalid (no TorchScript file), EntrypointInvalid (no
    file, in training mode, or forward takes or returns something other than tensors), ModelConfigRefused.
    """
    path = model.entrypoint.path
    device = exact_device()
    module, schema = _module_and_schema(locate(source, path, pattern="*.pt"), path, device)
    inputs, outputs = (model.declared.inputs, model.declared.outputs) if model.declared else ((), ())
    names, passing = _inputs(schema.arguments[1:], inputs, path)
    returned = _elements(schema.returns[0].type)
    wrong = [str(each) for each in returned if each.kind() != "TensorType"]
    if wrong or not returned:
        raise _invalid(f"{path}: forward returns {wrong[0] if wrong else 'nothing'}; only tensors can be served")
    for parameter in module.parameters():
        parameter.requires_grad_(False)
    return TorchFramework(
        module, names, _in_order("OUTPUT", outputs, len(returned)), source, path, device, passing=passing
    )


def _inputs(arguments: Sequence[Any], declared: Sequence[Tensor], path: str) -> tuple[tuple[str, ...], Passing]:
    """Return the inputs' names, and how forward takes them. What has a default is left out, unless it is declared.

    Raises StageError(EntrypointInvalid) for an argument that no request can give.
    """
    if [str(each.type) for each in arguments] == ["Dict[str, Tensor]"]:
        if not declared:
            advice = "give the model's folder of a Triton repository (format repository), whose config.pbtxt names them"
            message = f"{path}: forward takes a Dict[str, Tensor], whose keys the file does not tell; {advice}"
            raise _invalid(f"{message}, or a Python file that wraps it (format pyt)")
        return tuple(each.name for each in declared), Passing.DICT
    own = [each.name for each in arguments]
    wanted = {each.name for each in declared}
    named = wanted if wanted <= set(own) else set()
    taken = [each for each in arguments if each.name in named or not each.has_default_value()]
    wrong = [f"{each.type} {each.name}" for each in taken if str(each.type) not in ("Tensor", "Optional[Tensor]")]
    if wrong or not taken:
        advice = "only tensors can be served: give it a default, or wrap the model in a Python file (format pyt)"
        raise _invalid(f"{path}: forward takes {wrong[0] if wrong else 'nothing'}; {advice}")
    names = _in_order("INPUT", declared, len(taken), [each.name for each in taken])
    if [each.name for each in taken] == own[: len(taken)]:
        return names, Passing.ORDER
    return tuple(each.name for each in taken), Passing.NAMES


def _module_and_schema(file: Path, path: str, device: Any) -> tuple[Any, Any]:
    """Return the module that a file holds, and the schema of its forward.

    Raises StageError: CheckpointInvalid, EntrypointInvalid.
    """
    try:
        with current.running(path, f"torch {torch.__version__} opened"):
            module = torch.jit.load(str(file), map_location=device)
        schema = module.forward.schema
    except Exception as error:
        line = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise StageError(Reason.CHECKPOINT_INVALID, f"{path} is not a TorchScript module: {line:.300}") from error
    if any(getattr(submodule, "training", False) for submodule in module.modules()):
        message = f"{path}: the module was saved in training mode; call model.eval() before torch.jit.trace or script"
        raise StageError(Reason.ENTRYPOINT_INVALID, message)
    return module, schema


def _in_order(side: str, declared: Sequence[Tensor], count: int, arguments: Sequence[str] = ()) -> tuple[str, ...]:
    """Return a name for each of the file's ``count`` tensors, in its order: a config.pbtxt's, or else made of ``side``.

    Raises StageError(ModelConfigRefused) if Triton would not find one name for each of them.
    """
    if not declared:
        return tuple(f"{side}__{index}" for index in range(count))
    names = [each.name for each in declared]
    places = positions(names, arguments)
    if sorted(places) != list(range(count)):
        words = f"{', '.join(names)} name the positions {', '.join(map(str, places))}"
        raise mismatch(f"{words}, but the model's file has {count}, and each needs one name")
    return tuple(name for _, name in sorted(zip(places, names, strict=True)))


def _invalid(message: str) -> StageError:
    return StageError(Reason.ENTRYPOINT_INVALID, message)


def _elements(returned: Any) -> list[Any]:
    return list(returned.elements()) if returned.kind() == "TupleType" else [returned]
