"""The served formats: file name, Triton backend, and the module that converts into it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Format:
    """One format of a candidate."""

    file: str
    """Triton's default file name of the backend: config.pbtxt need not repeat it."""
    backend: str
    platform: str
    """Only where the backend needs it; empty otherwise."""
    module: str
    """Has ``convert(task, directory)``."""


FORMATS = {
    "onnx": Format("model.onnx", "onnxruntime", "", "triton_converters.convert.onnx"),
    "ts-trace": Format("model.pt", "pytorch", "pytorch_libtorch", "triton_converters.convert.ts_trace"),
    "ts-script": Format("model.pt", "pytorch", "pytorch_libtorch", "triton_converters.convert.ts_script"),
}
"""By the format's name in spec.models[].candidates[]."""
