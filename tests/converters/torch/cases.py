"""Requests for the small models of ``user/``, and runtimes that run what came of them."""

from typing import Any

import numpy
import torch

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
from triton_converters.model_config.data_types import NUMPY_BY_TRITON

SOURCE = "d" * 64
REFERENCE = "e" * 16
REVISION = "1" * 16
CONVERSION = "c" * 16
MAX_BATCH_SIZE = {"Points": 0}
"""By kind of model; 4 for the others."""


def model_code(kind: str, **arguments: str) -> ModelCode:
    return ModelCode("pyt", Entrypoint("model.py", {"kind": kind, **arguments}), MAX_BATCH_SIZE.get(kind, 4))


def request(
    code: ModelCode, format_name: str, precision: str = "fp32", exporter: str = "TorchScript", opset: int = 17
) -> ConvertRequest:
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
        onnx_exporter=exporter,
        onnx_optimized=False,
        tensorrt=TensorRtOptions(2**30, 3),
        gpu_product="",
        engine_cache="",
        config=ModelConfig(1, "KIND_AUTO", True, (), 0, False, True, {}),
    )


def run_file(format_name: str, inputs: Arrays, signature: Signature) -> dict[str, Any]:
    """Outputs by name of the converted file, run by the runtime that serves it; their types are the signature's."""
    path = model_file(REVISION, "small", format_name)
    names = [tensor.name for tensor in signature.outputs]
    if format_name == "onnx":
        import onnxruntime

        session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        answers = session.run(names, dict(inputs))
    else:
        module = torch.jit.load(str(path))
        result = module(*(torch.from_numpy(numpy.array(inputs[tensor.name])) for tensor in signature.inputs))
        answers = [tensor.numpy() for tensor in (result if isinstance(result, tuple) else (result,))]
    for tensor, answer in zip(signature.outputs, answers, strict=True):
        assert answer.dtype.name == NUMPY_BY_TRITON[tensor.data_type]
    return dict(zip(names, answers, strict=True))
