"""TorchScript models through PyTorch."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from triton_cpu import config as model_config
from triton_cpu import cores
from triton_cpu.batch import Array, Arrays
from triton_cpu.config import Config, ModelError, Tensor
from triton_cpu.naming import input_positions, missing_output, output_positions
from triton_cpu.session import Log, RunError

# Triton's types that are PyTorch's too (pytorch_backend, ModelConfigDataTypeToTorchType)
DATA_TYPES = {
    "TYPE_BOOL": torch.bool,
    "TYPE_UINT8": torch.uint8,
    "TYPE_INT8": torch.int8,
    "TYPE_INT16": torch.int16,
    "TYPE_INT32": torch.int32,
    "TYPE_INT64": torch.int64,
    "TYPE_FP16": torch.float16,
    "TYPE_FP32": torch.float32,
    "TYPE_FP64": torch.float64,
}
NAMES = {dtype: name for name, dtype in DATA_TYPES.items()}
# Parameters that set a switch of PyTorch's just-in-time compiler; without the parameter it stays as PyTorch has it, but
# for the fuser.
SWITCHES = {
    "ENABLE_JIT_EXECUTOR": torch._C._jit_set_profiling_executor,
    "ENABLE_JIT_PROFILING": torch._C._jit_set_profiling_mode,
    "ENABLE_TENSOR_FUSER": torch._C._jit_set_texpr_fuser_enabled,
}


class TorchSession:
    """A module of one model instance, in a process of its own."""

    def __init__(self, config: Config, log_warning: Log) -> None:
        """Load the model file and check the configuration against its `forward`. Raises ModelError."""
        if config.platform not in ("", "pytorch_libtorch"):
            raise ModelError(f"unable to load model '{config.name}', platform '{config.platform}' is not supported")
        for name in config.gpu_accelerators:
            log_warning(f"model '{config.name}': execution accelerator '{name}' is for GPUs and ignored on this CPU")
        model_config.check_file(config, config.file)
        _configure_runtime(config)
        inference_mode = config.boolean("INFERENCE_MODE")
        self._guard = torch.no_grad if inference_mode is False else torch.inference_mode
        try:
            with self._guard():
                self._device = torch.device(config.device)
                self._module = torch.jit.load(str(config.file), map_location=self._device)
                schema = self._module.forward.schema
        except Exception as error:
            raise ModelError(f"failed to load model '{config.name}': {error}") from error
        for kind, tensors in (("input", config.inputs), ("output", config.outputs)):
            _check_tensors(config, kind, tensors)
        arguments = [item for item in schema.arguments if item.type.kind() != "ClassType"]
        self._is_dict = [item.type.kind() for item in arguments] == ["DictType"]
        self._inputs = _inputs_in_order(config, arguments, self._is_dict)
        positions = output_positions([tensor.name for tensor in config.outputs], _output_count(schema))
        self._outputs = list(zip(config.outputs, positions, strict=True))

    def run(self, inputs: Arrays) -> Mapping[str, Array]:
        """Call `forward` once. Raises RunError with PyTorch's message."""
        with self._guard():
            try:
                values = {name: torch.from_numpy(inputs[name]).to(self._device) for name in self._inputs}
                result = self._module(values) if self._is_dict else self._module(*values.values())
                # What fails on a GPU fails when it is waited for.
                if self._device.type == "cuda":
                    torch.cuda.synchronize(self._device)
            except Exception as error:
                raise RunError(f"PyTorch execute failure: {error}") from error
            results = result if isinstance(result, tuple) else (result,)
            return {tensor.name: _output(tensor, position, results) for tensor, position in self._outputs}


def _configure_runtime(config: Config) -> None:
    """Set PyTorch's threads and switches, which are the whole process's: each instance has its own."""
    torch.set_num_threads(cores.torch_threads(config))
    interop = config.integer("INTER_OP_THREAD_COUNT") or config.integer("NUM_INTEROP_THREADS")
    if interop:
        torch.set_num_interop_threads(interop)
    torch._C._set_graph_executor_optimize(not config.boolean("DISABLE_OPTIMIZED_EXECUTION"))
    # On a CPU the fuser compiles anew for every shape, in a module's second call: seconds for ResNet-50, minutes for
    # FastPitch, and no faster afterwards. Of `round().long()` it makes zeros (PyTorch 2.6).
    if config.device == "cpu":
        torch._C._jit_set_texpr_fuser_enabled(False)
    for key, switch in SWITCHES.items():
        enabled = config.boolean(key)
        if enabled is not None:
            switch(enabled)


def _check_tensors(config: Config, kind: str, tensors: tuple[Tensor, ...]) -> None:
    if not tensors:
        raise ModelError(f"model configuration must contain at least one {kind}, none were specified.")
    for tensor in tensors:
        if tensor.data_type not in DATA_TYPES:
            raise ModelError(
                f"unsupported datatype {tensor.data_type} for {kind} '{tensor.name}' for model '{config.name}'"
            )


def _inputs_in_order(config: Config, arguments: list[Any], is_dict: bool) -> list[str]:
    """List the configuration's inputs in the order of `forward`'s arguments. Raises ModelError."""
    names = [tensor.name for tensor in config.inputs]
    if is_dict:
        return names
    kinds = [item.type.kind() for item in arguments]
    if "DictType" in kinds[1:]:
        raise ModelError(
            "Multiple inputs of kind DictType were detected. "
            "Only a single input of type Dict(str, Tensor) is supported."
        )
    for item in arguments:
        if item.type.kind() != "TensorType":
            raise ModelError(
                f"An input of type '{item.type}' was detected in the model. Only a single input of type "
                "Dict(str, Tensor) or input(s) of type Tensor are supported."
            )
    if len(arguments) != len(names):
        raise ModelError(
            f"unable to load model '{config.name}', configuration expects {len(names)} inputs, model provides "
            f"{len(arguments)}"
        )
    positions = input_positions(names, [item.name for item in arguments])
    return [name for _, name in sorted(zip(positions, names, strict=True))]


def _output_count(schema: Any) -> int | None:
    """Number of outputs by the declared return type; None where it does not tell."""
    type_ = schema.returns[0].type
    if type_.kind() == "TupleType":
        return len(type_.elements())
    return 1 if type_.kind() == "TensorType" else None


def _output(tensor: Tensor, position: int, results: tuple[Any, ...]) -> Array:
    """Turn one result into an array, without a copy where it is contiguous. Raises RunError."""
    if position >= len(results):
        raise RunError(missing_output(tensor.name, len(results)), invalid=True)
    result = results[position]
    if not isinstance(result, torch.Tensor):
        raise RunError(f"output '{tensor.name}' must be of type Tensor.", invalid=True)
    provided = NAMES.get(result.dtype, str(result.dtype))
    if provided != tensor.data_type:
        raise RunError(
            f"configuration expects datatype {tensor.data_type} for output '{tensor.name}', model provides {provided}",
            invalid=True,
        )
    if result.dim() == 0:
        raise RunError(f"output '{tensor.name}' is a scalar which is not supported.", invalid=True)
    return np.asarray(result.detach().cpu().contiguous().numpy())
