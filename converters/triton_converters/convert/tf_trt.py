"""Format ``tf-trt``: TensorFlow's own converter makes a SavedModel with parts that TensorRT computes.

This is not tested on our machines: the TensorFlow of our image has no TensorRT, nor has any release from 2.18 on.
"""

import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

from triton_converters.claim_store import inspection
from triton_converters.claim_store.dump import Arrays
from triton_converters.contract.failure import StageError
from triton_converters.contract.formats import FORMATS
from triton_converters.contract.reasons import Reason
from triton_converters.convert import tf_savedmodel
from triton_converters.convert.task import Task

ENGINE = "TRTEngineOp"
PROFILES = "Range+Optimal"
"""One profile for all sizes from one sample to the largest batch, and one more for each of these two. With those two
alone, TensorFlow itself would compute every batch between them."""


def convert(task: Task, directory: Path) -> None:
    """Write model.savedmodel with the engines of this machine's GPU and TensorRT.

    Engines take every size from one sample to the largest batch. Raises StageError: TensorRtUnavailable,
    ConversionFailed (no part of the graph became an engine), and what ``tf_savedmodel.write`` raises.
    """
    path = directory / FORMATS["tf-trt"].file
    plain = directory / "plain"
    version = tensorrt_version()
    tf_savedmodel.write(task, plain, half=False)
    converter = tf.experimental.tensorrt.Converter(
        input_saved_model_dir=str(plain),
        precision_mode=task.request.precision.upper(),
        max_workspace_size_bytes=task.request.tensorrt.workspace_bytes,
        use_dynamic_shape=True,
        dynamic_shape_profile_strategy=PROFILES,
    )
    converter.convert()
    converter.build(lambda: _batches(task))
    converter.save(str(path))
    shutil.rmtree(plain)
    precisions = engines(path)
    if not precisions:
        message = "TensorFlow found no part of the graph that TensorRT computes"
        raise StageError(Reason.CONVERSION_FAILED, f"{message}; use format tf-savedmodel, or onnx or trt")
    types = tuple(precision for precision, _ in precisions.most_common())
    inspection.write(directory, types, tf_savedmodel.tensors(path), version, task.request.gpu_product)


def tensorrt_version() -> str:
    """Return the version of the TensorRT in this TensorFlow; raises StageError(TensorRtUnavailable) if it has none."""
    try:
        from tensorflow.compiler.tf2tensorrt import _pywrap_py_utils

        has_one = _pywrap_py_utils.is_tensorrt_enabled()
    except ImportError:
        has_one = False
    if not has_one:
        message = f"TensorFlow {tf.__version__} of this image was built without TensorRT, like all from 2.18 on"
        advice = "use format trt or onnx, or set spec.conversion.image to one whose TensorFlow has it"
        raise StageError(Reason.TENSOR_RT_UNAVAILABLE, f"{message}; {advice} (NVIDIA's 25.02-tf2-py3 is the last)")
    return ".".join(map(str, _pywrap_py_utils.get_linked_tensorrt_version()))


def engines(path: Path) -> Counter[str]:
    """Return how many TensorRT engines of each precision (FP32, FP16) the file's graph holds."""
    graph = saved_model_pb2.SavedModel.FromString((path / "saved_model.pb").read_bytes()).meta_graphs[0].graph_def
    every = [graph.node, *(function.node_def for function in graph.library.function)]
    return Counter(node.attr["precision_mode"].s.decode() for nodes in every for node in nodes if node.op == ENGINE)


def _batches(task: Task) -> Iterator[Any]:
    """Yield real inputs of one sample and of the largest batch; only the example without a batch dimension."""
    sizes = sorted({1, task.signature.max_batch_size}) if task.signature.max_batch_size else [0]
    for size in sizes:
        yield {name: tf.constant(array) for name, array in _repeat(task.example, size).items()}


def _repeat(example: Arrays, size: int) -> Arrays:
    import numpy

    return {name: array[numpy.arange(size) % len(array)] if size else array for name, array in example.items()}
