"""The request of a conversion to ONNX, which tests of the convert stage change."""

from typing import Any

from triton_converters.contract.conversion_requests import ConvertRequest, ModelCode, ModelConfig, TensorRtOptions

CONFIG = ModelConfig(1, "KIND_CPU", True, (), 0, False, False, {})
"""One instance on the CPU, with the dynamic batcher and no warm-up."""


def conversion(model: ModelCode, **fields: Any) -> ConvertRequest:
    """A candidate in fp32 for the CPU, in the model's own format; keywords are the other fields, or replace them."""
    return ConvertRequest(
        **{
            "candidate": model.format,
            "format": model.format,
            "precision": "fp32",
            "accelerator": "none",
            "onnx_opset": 0,
            "onnx_exporter": "TorchScript",
            "onnx_optimized": False,
            "tensorrt": TensorRtOptions(2**30, 3),
            "gpu_product": "",
            "engine_cache": "",
            "config": CONFIG,
        }
        | fields,
        model=model,
    )
