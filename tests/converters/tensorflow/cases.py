"""Requests for the small models of ``user/``, and runtimes that run what came of them."""

from pathlib import Path
from typing import Any

import onnxruntime
import tensorflow as tf

from triton_converters.claim_store.dump import Arrays
from triton_converters.claim_store.revision import model_file
from triton_converters.contract.conversion_requests import (
    ConvertRequest,
    Entrypoint,
    ModelCode,
    ModelConfig,
    TensorRtOptions,
)
from triton_converters.contract.results import Signature

SOURCE = "d" * 64
REFERENCE = "e" * 16
REVISION = "1" * 16
CONVERSION = "c" * 16
MAX_BATCH_SIZE = {"Points": 0}
"""By kind of model; 4 for the others."""


def model_code(kind: str, **arguments: str) -> ModelCode:
    return ModelCode("tf-keras", Entrypoint("model.py", {"kind": kind, **arguments}), MAX_BATCH_SIZE.get(kind, 4))


def savedmodel_code(path: str) -> ModelCode:
    return ModelCode("tf-savedmodel", Entrypoint(path, {}), 4)


def request(code: ModelCode, format_name: str, precision: str = "fp32", opset: int = 17) -> ConvertRequest:
    return ConvertRequest(
        key=REVISION,
        conversion_key=CONVERSION,
        source=SOURCE,
        reference=REFERENCE,
        model_name="small",
        model=code,
        candidate="candidate",
        format=format_name,
        precision=precision,
        accelerator="none",
        onnx_opset=opset,
        onnx_exporter="TorchScript",
        onnx_optimized=False,
        tensorrt=TensorRtOptions(2**30, 3),
        gpu_product="",
        engine_cache="",
        config=ModelConfig(1, "KIND_AUTO", True, (), 0, False, True, {}),
    )


def converted(format_name: str) -> Path:
    return model_file(REVISION, "small", format_name)


def run_file(format_name: str, inputs: Arrays, signature: Signature) -> dict[str, Any]:
    """Outputs by name of the converted model, run by its format's own runtime."""
    names = [tensor.name for tensor in signature.outputs]
    if format_name == "onnx":
        session = onnxruntime.InferenceSession(str(converted("onnx")), providers=["CPUExecutionProvider"])
        return dict(zip(names, session.run(names, dict(inputs)), strict=True))
    serve = tf.saved_model.load(str(converted(format_name))).signatures["serving_default"]
    answers = serve(**{name: tf.constant(array) for name, array in inputs.items()})
    return {name: answers[name].numpy() for name in names}
