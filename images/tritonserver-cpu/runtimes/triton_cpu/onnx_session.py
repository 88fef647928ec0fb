"""ONNX models through ONNX Runtime's CPU provider."""

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnxruntime

from triton_cpu import config as model_config
from triton_cpu import cores
from triton_cpu.batch import Array, Arrays
from triton_cpu.config import Config, ModelError
from triton_cpu.onnx_signature import Value, check, value
from triton_cpu.session import Log, RunError

# optimization.graph.level -> onnxruntime's (onnxruntime.cc, ModelState::ModelState)
GRAPH_LEVELS = {
    -1: onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    1: onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
    2: onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL,
}
SHRINKAGE = "memory.enable_memory_arena_shrinkage"
INITIALIZERS = "session.use_device_allocator_for_initializers"


class OnnxSession:
    """A session of one model instance."""

    def __init__(self, config: Config, log_warning: Log) -> None:
        """Load the model file and check the configuration against it. Raises ModelError."""
        if config.device != "cpu":
            raise ModelError(f"unable to load model '{config.name}', this ONNX Runtime has no GPU: {config.device}")
        for name in config.cpu_accelerators:
            raise ModelError(f"unknown Execution Accelerator '{name}' is requested")
        for name in config.gpu_accelerators:
            log_warning(f"model '{config.name}': execution accelerator '{name}' is for GPUs and ignored on this CPU")
        file = config.file / "model.onnx" if config.file.is_dir() else config.file
        model_config.check_file(config, file)
        self._session = _load(config, file)
        inputs = [value(item.name, item.type, item.shape) for item in self._session.get_inputs()]
        outputs = [value(item.name, item.type, item.shape) for item in self._session.get_outputs()]
        initializers = [
            value(item.name, item.type, item.shape) for item in self._session.get_overridable_initializers()
        ]
        check(config, inputs, initializers, outputs)
        self._outputs = [tensor.name for tensor in config.outputs]
        self._scalar_inputs = _scalars([*inputs, *initializers])
        self._scalar_outputs = {
            tensor.name: tensor.dims for tensor in config.outputs if tensor.name in _scalars(outputs)
        }
        self._run_options = onnxruntime.RunOptions()
        if SHRINKAGE in config.parameters:
            self._run_options.add_run_config_entry(SHRINKAGE, config.parameters[SHRINKAGE])

    def run(self, inputs: Arrays) -> Mapping[str, Array]:
        """Call the session once. Raises RunError with ONNX Runtime's message."""
        feed = dict(inputs)
        for name in self._scalar_inputs & feed.keys():
            feed[name] = feed[name].reshape(())
        try:
            results = self._session.run(self._outputs, feed, self._run_options)
        except Exception as error:
            raise RunError(_message(error)) from error
        outputs = dict(zip(self._outputs, results, strict=True))
        for name, dims in self._scalar_outputs.items():
            outputs[name] = np.reshape(outputs[name], dims)
        return outputs


def _load(config: Config, file: Path) -> onnxruntime.InferenceSession:
    try:
        return onnxruntime.InferenceSession(str(file), _options(config), providers=["CPUExecutionProvider"])
    except Exception as error:
        raise ModelError(_message(error)) from error


def _options(config: Config) -> onnxruntime.SessionOptions:
    options = onnxruntime.SessionOptions()
    if config.graph_level in GRAPH_LEVELS:
        options.graph_optimization_level = GRAPH_LEVELS[config.graph_level]
    mode = config.integer("execution_mode") or 0
    if mode not in (0, 1):
        raise ModelError(
            f"Invalid configuration value provided. Expected values for  execution_mode are 0 or 1 but got {mode} ."
        )
    options.execution_mode = (
        onnxruntime.ExecutionMode.ORT_PARALLEL if mode else onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    )
    threads = config.integer("intra_op_thread_count") or cores.share(config.instances, cores.available())
    options.intra_op_num_threads = threads
    # Waiting threads that spin use up a container's CPU limit; on 2 cores they cost a tenth of the throughput.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.inter_op_num_threads = config.integer("inter_op_thread_count") or 0
    arena = config.boolean("enable_mem_arena")
    pattern = config.boolean("enable_mem_pattern")
    options.enable_cpu_mem_arena = True if arena is None else arena
    options.enable_mem_pattern = True if pattern is None else pattern
    if INITIALIZERS in config.parameters:
        options.add_session_config_entry(INITIALIZERS, config.parameters[INITIALIZERS])
    return options


def _scalars(values: list[Value]) -> set[str]:
    return {item.name for item in values if not item.dims}


def _message(error: Exception) -> str:
    """Word an error of ONNX Runtime as the native backend does: `onnx runtime error CODE: MESSAGE`."""
    found = re.fullmatch(r"\[ONNXRuntimeError\] : (\d+) : \w+ : (.*)", str(error), re.DOTALL)
    return f"onnx runtime error {found[1]}: {found[2]}" if found else f"onnx runtime error: {error}"
