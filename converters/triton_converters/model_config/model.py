"""config.pbtxt: Triton's own protobuf message, printed by text_format. Pure.

Every server image understands it: all fields are in model_config.proto of Triton 2.51.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from google.protobuf import json_format, text_format
from tritonclient.grpc import model_config_pb2

from triton_converters.contract.backend_parameters import THREADS, threads
from triton_converters.contract.conversion_requests import ModelConfig
from triton_converters.contract.formats import FORMATS, HPS, PYTORCH
from triton_converters.contract.results import Signature, Tensor, Tuning
from triton_converters.model_config.overrides import override
from triton_converters.model_config.shapes import requested

WARMUP_CALLS = 3
"""How often a warm-up calls a TorchScript file, which PyTorch optimizes in the second and third call of a shape. On an
H200, the first request of a warmed-up ResNet-50 took 3.7 s with one call, and 0.37 s with three (2026-11-26,
driver 580.159). Other backends, and servers without a GPU, call once, Triton's default: on a CPU
a call of the largest batch can take minutes."""
WARMUP_SIZE = 2
"""A batch size besides 1 and the largest for a TorchScript file: PyTorch optimizes for two shapes, and then once for
all others. With two, the first other batch of a client took 1.2 s on that GPU."""

LONGEST_FILE = 255
"""Characters of a file's name on Linux's file systems, where a quoted name has one byte for each."""


@dataclass(frozen=True)
class Execution:
    """How the backend runs the file."""

    format: str
    accelerator: str
    workspace_bytes: int
    """Memory limit of TensorRT inside ONNX Runtime."""
    engine_cache: str
    """Directory where TensorRT inside ONNX Runtime keeps its engines; empty: every load builds them again."""


def render(
    signature: Signature,
    config: ModelConfig,
    execution: Execution,
    warmup_shapes: Mapping[str, tuple[int, ...]],
) -> str:
    """Return the text of config.pbtxt. It has no name, so Triton takes the directory's.

    ``warmup_shapes``: shapes of one real sample by input name, without the batch dimension; empty: no warm-up.
    """
    form = FORMATS[execution.format]
    max_batch_size = config.max_batch_size or signature.max_batch_size
    message = model_config_pb2.ModelConfig(
        backend=form.backend,
        platform=form.platform,
        max_batch_size=max_batch_size,
        input=[input_message(tensor) for tensor in signature.inputs],
        output=[output_message(tensor) for tensor in signature.outputs],
        instance_group=[
            model_config_pb2.ModelInstanceGroup(count=config.instances, kind=config.instance_group_kind),
        ],
    )
    _set_batching(message, config)
    if config.cuda_graphs:
        message.optimization.cuda.graphs = True
    if accelerators := _accelerators(form.backend, execution):
        message.optimization.execution_accelerators.gpu_execution_accelerator.extend(accelerators)
    if warmup_shapes:
        message.model_warmup.extend(_warmups(message, _warmup_inputs(signature, warmup_shapes)))
    for key, value in config.parameters.items():
        message.parameters[key].string_value = value
    override(message, config.overrides)
    return str(text_format.MessageToString(message))


def retuned(text: str, tuning: Tuning, cpus: int = 0) -> str:
    """Return a config.pbtxt with the fields of a tuning replaced, as the JSON that Triton's load request takes.

    ``cpus``: those that the instances share, if their threads follow from that; 0: the threads stay as they are.
    It equals what ``render`` makes of a ModelConfig with these fields, so what is measured is what would be served.
    """
    message = text_format.Parse(text, model_config_pb2.ModelConfig())
    message.max_batch_size = tuning.max_batch_size
    for group in message.instance_group:
        group.count = tuning.instances
    if cpus:
        message.parameters[THREADS[message.backend][0]].string_value = threads(cpus, tuning.instances)
    _set_batching(message, tuning)
    message.optimization.cuda.graphs = tuning.cuda_graphs
    if message.model_warmup:
        warmups = _warmups(message, message.model_warmup[0].inputs)
        message.ClearField("model_warmup")
        message.model_warmup.extend(warmups)
    return str(json_format.MessageToJson(message, preserving_proto_field_name=True, indent=None))


def warmup_file(tensor: str) -> str:
    """Return the name of an input's sample in the model's ``warmup`` directory.

    A tensor's name may hold slashes, be one of a directory (``.``), or be too long for a file's once it is quoted.
    """
    name = quote(tensor, safe="")
    is_usual = name.strip(".") and len(name) <= LONGEST_FILE
    return name if is_usual else hashlib.sha256(tensor.encode()).hexdigest()


def _type(tensor: Tensor) -> str:
    """Return config.pbtxt's name of a type; requests' BYTES is TYPE_STRING there."""
    return "TYPE_STRING" if tensor.data_type == "BYTES" else f"TYPE_{tensor.data_type}"


def input_message(tensor: Tensor) -> model_config_pb2.ModelInput:
    """Return an input as config.pbtxt declares it."""
    return model_config_pb2.ModelInput(
        name=tensor.name,
        data_type=_type(tensor),
        dims=tensor.served_dims,
        reshape=_reshape(tensor),
    )


def output_message(tensor: Tensor) -> model_config_pb2.ModelOutput:
    """Return an output as config.pbtxt declares it."""
    return model_config_pb2.ModelOutput(
        name=tensor.name,
        data_type=_type(tensor),
        dims=tensor.served_dims,
        reshape=_reshape(tensor),
    )


def _reshape(tensor: Tensor) -> model_config_pb2.ModelTensorReshape | None:
    is_own = tensor.served_dims == tensor.dims
    return None if is_own else model_config_pb2.ModelTensorReshape(shape=tensor.dims)


def _accelerators(backend: str, execution: Execution) -> list[Any]:
    """Return the accelerators under the backend's names; none if only its plain GPU execution was requested.

    Sources: the READMEs of onnxruntime_backend and tensorflow_backend (auto_mixed_precision).
    """
    accelerator = model_config_pb2.ModelOptimizationPolicy.ExecutionAccelerators.Accelerator
    if backend == "tensorflow" and execution.accelerator == "amp":
        return [accelerator(name="auto_mixed_precision")]
    if backend == "onnxruntime" and execution.accelerator == "cuda":
        return [accelerator(name="cuda")]
    if backend == "onnxruntime" and execution.accelerator == "trt":
        # Without precision_mode, TensorRT 10 and later take the types from the graph, which has the precision already.
        # With it, they may compute any layer in fp16, so that figures and answers depend on what is faster that day.
        parameters = {"max_workspace_size_bytes": str(execution.workspace_bytes)}
        if execution.engine_cache:
            parameters |= {"trt_engine_cache_enable": "1", "trt_engine_cache_path": execution.engine_cache}
        return [accelerator(name="tensorrt", parameters=parameters)]
    return []


def _set_batching(message: model_config_pb2.ModelConfig, config: ModelConfig | Tuning) -> None:
    if not config.dynamic_batching:
        message.ClearField("dynamic_batching")
        return
    message.dynamic_batching.SetInParent()
    message.dynamic_batching.preferred_batch_size[:] = config.preferred_batch_sizes
    message.dynamic_batching.max_queue_delay_microseconds = config.max_queue_delay_microseconds


def _warmup_inputs(
    signature: Signature, shapes: Mapping[str, tuple[int, ...]]
) -> dict[str, model_config_pb2.ModelWarmup.Input]:
    return {
        tensor.name: model_config_pb2.ModelWarmup.Input(
            data_type=_type(tensor),
            dims=requested(tensor, shapes[tensor.name]),
            input_data_file=warmup_file(tensor.name),
        )
        for tensor in signature.inputs
    }


def _warmups(
    message: model_config_pb2.ModelConfig, inputs: Mapping[str, model_config_pb2.ModelWarmup.Input]
) -> list[model_config_pb2.ModelWarmup]:
    """Return warm-ups for batch 1 and the message's largest batch: Triton repeats the file's only sample.

    A TorchScript file on a GPU has one more, and is called more often.
    """
    # A row of the hps backend holds all samples.
    largest = 1 if message.backend == HPS else max(1, message.max_batch_size)
    on_gpu = any(group.kind == model_config_pb2.ModelInstanceGroup.KIND_GPU for group in message.instance_group)
    optimizes = message.backend == PYTORCH and on_gpu
    sizes = {1, largest, min(WARMUP_SIZE, largest)} if optimizes else {1, largest}
    count = WARMUP_CALLS if optimizes else 0
    return [
        model_config_pb2.ModelWarmup(name=f"batch-{size}", batch_size=size, inputs=inputs, count=count)
        for size in sorted(sizes)
    ]
