"""What a model may come as, what it may be served as, and what converts the one into the other.

Shared by the Jobs and the controller; standard library only. docs/converters.md holds the same as tables.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from triton_converters.contract.reasons import Reason

CONVERTER = "converter"
CONVERTER_TENSORFLOW = "converter-tensorflow"
"""The images whose Jobs load and convert a source; PyTorch and TensorFlow have one each."""


@dataclass(frozen=True)
class Format:
    """A format that Triton serves."""

    file: str
    """Triton's default file or directory name of the backend: config.pbtxt need not repeat it."""
    backend: str
    platform: str
    """Only where the backend needs it; empty otherwise."""
    needs_gpu: bool
    """Neither made nor served without one."""
    last_release: str
    """Newest NVIDIA image (YY.MM) whose server has the backend; empty: the current ones have it."""
    accelerators: tuple[str, ...]
    """What spec.models[].candidates[].accelerator may be."""


@dataclass(frozen=True)
class Source:
    """A format that a model comes as."""

    loader: str
    """Module that has ``load(source, model, output_format) -> Framework``."""
    image: str
    """Of the reference and convert Jobs."""
    is_file: bool
    """The entrypoint is the model itself, a file or directory of the source, not a Python file."""
    converters: Mapping[str, str]
    """By format: the module that has ``convert(task, directory)``."""


HPS = "hps"
"""Embedding tables of Merlin's Hierarchical Parameter Server: source and target, only inside an ensemble."""
ENSEMBLE = "ensemble"
"""Several models as one; each of them has a source and a target of its own."""

FORMATS: Mapping[str, Format] = {
    "ts-trace": Format("model.pt", "pytorch", "pytorch_libtorch", False, "", ("none", "cuda")),
    "ts-script": Format("model.pt", "pytorch", "pytorch_libtorch", False, "", ("none", "cuda")),
    "onnx": Format("model.onnx", "onnxruntime", "", False, "", ("none", "cuda", "trt")),
    "trt": Format("model.plan", "tensorrt", "", True, "", ("none", "cuda")),
    "tf-savedmodel": Format(
        "model.savedmodel", "tensorflow", "tensorflow_savedmodel", False, "25.02", ("none", "cuda", "amp")
    ),
    "tf-trt": Format("model.savedmodel", "tensorflow", "tensorflow_savedmodel", True, "25.02", ("none", "cuda", "amp")),
    HPS: Format("tables.json", "hps", "", False, "", ("none",)),
}
"""By the format's name in spec.models[].candidates[]."""

_TORCH = {
    "ts-trace": "triton_converters.convert.ts_trace",
    "ts-script": "triton_converters.convert.ts_script",
    "onnx": "triton_converters.convert.torch_onnx",
    "trt": "triton_converters.convert.trt",
}
_TENSORFLOW = {
    "tf-savedmodel": "triton_converters.convert.tf_savedmodel",
    "tf-trt": "triton_converters.convert.tf_trt",
    "onnx": "triton_converters.convert.tf_onnx",
    "trt": "triton_converters.convert.trt",
}
_ONNX = {
    "onnx": "triton_converters.convert.onnx_file",
    "trt": "triton_converters.convert.trt",
}

SOURCES: Mapping[str, Source] = {
    "pyt": Source("triton_converters.load.pyt", CONVERTER, False, _TORCH),
    "ts-trace": Source("triton_converters.load.torchscript", CONVERTER, True, _TORCH),
    "ts-script": Source("triton_converters.load.torchscript", CONVERTER, True, _TORCH),
    "onnx": Source("triton_converters.load.onnx", CONVERTER, True, _ONNX),
    "tf-keras": Source("triton_converters.load.tf_keras", CONVERTER_TENSORFLOW, False, _TENSORFLOW),
    "tf-estimator": Source("triton_converters.load.tf_estimator", CONVERTER_TENSORFLOW, False, _TENSORFLOW),
    "tf-savedmodel": Source("triton_converters.load.tf_savedmodel", CONVERTER_TENSORFLOW, True, _TENSORFLOW),
    HPS: Source("triton_converters.load.hps", CONVERTER, False, {HPS: "triton_converters.convert.hps"}),
    ENSEMBLE: Source("triton_converters.load.ensemble", CONVERTER, False, {}),
}
"""By the format's name in spec.models[]."""

THROUGH = {"trt": "onnx"}
"""Formats that are made from another one: ``convert.trt`` first takes the source's own way to ONNX."""


def refusal(source: str, target: str, accelerator: str) -> tuple[Reason, str] | None:
    """Why a model of format ``source`` cannot be a candidate of format ``target`` with that accelerator, or None.

    The message names what can. Raises KeyError for a format that does not exist.
    """
    known = SOURCES[source].converters
    if target not in known:
        message = f"{source} does not convert into {target}; it converts into {', '.join(known)}"
        return Reason.CONVERSION_UNSUPPORTED, message
    allowed = FORMATS[target].accelerators
    if accelerator not in allowed:
        message = f"accelerator {accelerator} does not go with format {target}; that takes {', '.join(allowed)}"
        return Reason.INVALID_SPEC, message
    return None


def unserved(target: str, release: str) -> str | None:
    """Why a server of that release does not serve the format, or None.

    ``release``: of NVIDIA's image, as YY.MM; empty where it is not known. Such releases compare as text.
    """
    last = FORMATS[target].last_release
    if not last or not release or release <= last:
        return None
    return (
        f"format {target} is not served by release {release}: its backend {FORMATS[target].backend} left Triton after"
        f" {last}; use format onnx or trt, or an image of {last} or older in spec.serving.image"
    )
