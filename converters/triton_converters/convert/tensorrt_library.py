"""Find TensorRT and build an engine with it, in the same way for TensorRT 10 and 11.

TensorRT 11 no longer has weak typing and precision flags, so they are not used with 10 either: the network is strongly
typed, and each layer computes in the type that the ONNX graph says.
"""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from triton_converters.contract.conversion_requests import TensorRtOptions
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.load import gpu

Shapes = Mapping[str, tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]]
"""The smallest, the most usual and the largest shape by input, including the batch."""
_ERRORS = 3
"""Number of TensorRT's own errors that a message quotes."""


@dataclass(frozen=True)
class Library:
    """The Python module of TensorRT, or of TensorRT-RTX, which has the same classes."""

    module: Any
    compute_capability: str = ""
    """Target of a build without a GPU, such as ``SM89``: only TensorRT-RTX can do that, and only the tests use it."""

    @property
    def version(self) -> str:
        """The version, such as ``10.13.3.9``."""
        return str(self.module.__version__)


@dataclass(frozen=True)
class Engine:
    """A serialized engine and what its builder reported."""

    plan: bytes
    timing_cache: bytes
    """Timing cache for the next build on the same GPU with the same TensorRT."""
    tensors: tuple[str, ...]
    """Inputs and outputs, in words."""
    layers: str
    """One line a layer, in the words of TensorRT's inspector."""


@dataclass
class Log:
    """Collects TensorRT's messages."""

    errors: list[str] = field(default_factory=list)
    layers: str = ""
    """The verbose line in which a builder without a GPU describes the engine."""

    def add(self, is_error: bool, message: str) -> None:
        """Add one message."""
        if is_error:
            self.errors.append(" ".join(message.split()))
        elif message.startswith("Layers:"):
            self.layers = message


def load() -> Library:
    """Import TensorRT; raises StageError(TensorRtUnavailable)."""
    try:
        return Library(importlib.import_module("tensorrt"))
    except ImportError as error:
        message = (
            f"the image has no TensorRT ({error}); set spec.conversion.image to an image that has the tensorrt"
            " package in the server's version"
        )
        raise StageError(Reason.TENSOR_RT_UNAVAILABLE, message) from error


def build(library: Library, path: Path, shapes: Shapes, options: TensorRtOptions, timing_cache: bytes) -> Engine:
    """Build the ONNX file's engine.

    ``shapes``: those of the inputs whose dimensions vary. Raises StageError: TensorRtUnavailable (no GPU),
    ConversionUnsupported (the parser refuses a node), ConversionFailed with TensorRT's own words.
    """
    trt = library.module
    log = Log()
    logger = _logger(trt, log)
    builder = _builder(library, logger, log)
    flags = trt.NetworkDefinitionCreationFlag
    strongly_typed = 1 << int(flags.STRONGLY_TYPED) if hasattr(flags, "STRONGLY_TYPED") else 0
    network = builder.create_network(strongly_typed)
    parser = trt.OnnxParser(network, logger)
    if not parser.parse_from_file(str(path)):
        raise _refused(library, parser)
    config = builder.create_builder_config()
    config.clear_flag(trt.BuilderFlag.TF32)
    config.builder_optimization_level = options.builder_optimization_level
    config.set_memory_pool_limit(trt.MemoryPoolType.WORKSPACE, options.workspace_bytes)
    config.profiling_verbosity = trt.ProfilingVerbosity.DETAILED
    config.add_optimization_profile(_profile(builder, network, shapes))
    cache = config.create_timing_cache(timing_cache)
    config.set_timing_cache(cache, False)
    if library.compute_capability:
        config.num_compute_capabilities = 1
        config.set_compute_capability(getattr(trt.ComputeCapability, library.compute_capability), 0)
    plan = builder.build_serialized_network(network, config)
    if plan is None:
        why = "; ".join(log.errors[-_ERRORS:]) or "it gave no reason"
        raise StageError(Reason.CONVERSION_FAILED, f"TensorRT {library.version} built no engine: {why:.900}")
    layers = log.layers if library.compute_capability else _inspect(trt, logger, bytes(plan))
    return Engine(bytes(plan), bytes(cache.serialize() or b""), _tensors(network), layers)


def _logger(trt: Any, log: Log) -> Any:
    errors = (trt.ILogger.Severity.ERROR, trt.ILogger.Severity.INTERNAL_ERROR)

    class ForwardingLogger(trt.ILogger):
        def __init__(self) -> None:
            trt.ILogger.__init__(self)

        def log(self, severity: Any, message: str) -> None:
            log.add(severity in errors, message)

    return ForwardingLogger()


def _builder(library: Library, logger: Any, log: Log) -> Any:
    """Return a builder; TensorRT itself makes none without a GPU."""
    try:
        if hasattr(library.module, "init_libnvinfer_plugins"):
            library.module.init_libnvinfer_plugins(logger, "")
        return library.module.Builder(logger)
    except (TypeError, RuntimeError) as error:
        why = "; ".join(log.errors[-_ERRORS:]) or str(error)
        message = f"TensorRT {library.version} finds no GPU to build for ({why:.300}); {gpu.ADVICE}"
        raise StageError(Reason.TENSOR_RT_UNAVAILABLE, message) from error


def _profile(builder: Any, network: Any, shapes: Shapes) -> Any:
    profile = builder.create_optimization_profile()
    for index in range(network.num_inputs):
        tensor = network.get_input(index)
        if tensor.is_shape_tensor:
            message = f"TensorRT takes the input {tensor.name} for a shape, whose values it would have to know"
            raise StageError(Reason.CONVERSION_UNSUPPORTED, message)
        if -1 in tuple(tensor.shape):
            profile.set_shape(tensor.name, *shapes[tensor.name])
    return profile


def _refused(library: Library, parser: Any) -> StageError:
    """Return the parser's first error, with the node and the operator that it is about."""
    error = parser.get_error(0)
    where = f"node {error.node_name()!r} ({error.node_operator()})" if error.node_operator() else "the graph"
    message = f"TensorRT {library.version} does not support {where}: {' '.join(error.desc().split()):.500}"
    return StageError(Reason.CONVERSION_UNSUPPORTED, message)


def _inspect(trt: Any, logger: Any, plan: bytes) -> str:
    """Return the engine's layers as a runtime on this GPU reads them; raises StageError(ConversionFailed)."""
    engine = trt.Runtime(logger).deserialize_cuda_engine(plan)
    if engine is None:
        raise StageError(Reason.CONVERSION_FAILED, "TensorRT cannot read the engine that it has built")
    inspector = engine.create_engine_inspector()
    return str(inspector.get_engine_information(trt.LayerInformationFormat.ONELINE))


def _tensors(network: Any) -> tuple[str, ...]:
    """Return name, type and dimensions (-1: varies) of every input and output; a strongly typed engine keeps them."""
    inputs = [network.get_input(index) for index in range(network.num_inputs)]
    outputs = [network.get_output(index) for index in range(network.num_outputs)]
    return tuple(f"{each.name} {each.dtype.name} {list(each.shape)}" for each in (*inputs, *outputs))
