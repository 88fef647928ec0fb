"""The formats in which a model may be given and served, and the modules that convert between them.

Shared by the Jobs and the controller; standard library only. docs/converters.md shows the same in tables.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from triton_converters.contract.reasons import Reason

CONVERTER = "converter"
CONVERTER_TENSORFLOW = "converter-tensorflow"
"""Images of the Jobs that load and convert a source, one for PyTorch and one for TensorFlow."""


@dataclass(frozen=True)
class Format:
    """A format that Triton serves."""

    file: str
    """The backend's default file or directory name, which config.pbtxt need not repeat."""
    backend: str
    platform: str
    """config.pbtxt's platform if the backend needs it; otherwise empty."""
    needs_gpu: bool
    """Whether both conversion and serving need a GPU."""
    last_release: str
    """Newest NVIDIA image (YY.MM) whose server has the backend; empty: current images still have it."""
    accelerators: tuple[str, ...]
    """Values that spec.models[].candidates[].accelerator may have."""


@dataclass(frozen=True)
class Source:
    """A format in which a model may be given."""

    loader: str
    """Module that has ``load(source, model, output_format) -> Framework``."""
    image: str
    """Image of the reference and convert Jobs."""
    is_file: bool
    """Whether the entrypoint is the model itself, a file or directory of the source, and not a Python file."""
    converters: Mapping[str, str]
    """The module that has ``convert(task, directory)``, by target format."""


HPS = "hps"
"""Embedding tables of Merlin's Hierarchical Parameter Server: source and target, only inside an ensemble."""
ENSEMBLE = "ensemble"
"""Several models served as one; each of them has its own source and target."""
REPOSITORY = "repository"
"""A model's folder of a Triton model repository, which holds a file of another format and its config.pbtxt. The source
Job finds that format, and from then on the model has it."""

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
"""The formats by their names in spec.models[].candidates[]."""

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
    REPOSITORY: Source("", CONVERTER, True, _TENSORFLOW | _TORCH | _ONNX),
}
"""The sources by their names in spec.models[]."""

DECLARING = ("onnx", "tf-savedmodel", REPOSITORY)
"""Sources whose graph or config.pbtxt declares the types and shapes of its inputs, so that inputs can be generated."""

THROUGH = {"trt": "onnx"}
"""Formats that are made from another one: ``convert.trt`` first converts the source to ONNX."""


def refusal(source: str, target: str, accelerator: str) -> tuple[Reason, str] | None:
    """Return why a model of format ``source`` cannot be a candidate of format ``target`` with the accelerator, or None.

    The message names what is possible. Raises KeyError for a format that does not exist.
    """
    known = SOURCES[source].converters
    if target not in known:
        message = f"format {source} cannot be converted to {target}; it can be converted to {', '.join(known)}"
        return Reason.CONVERSION_UNSUPPORTED, message
    allowed = FORMATS[target].accelerators
    if accelerator not in allowed:
        message = f"format {target} does not support accelerator {accelerator}; it supports {', '.join(allowed)}"
        return Reason.INVALID_SPEC, message
    return None


def unserved(target: str, release: str) -> str | None:
    """Return why a server of that release cannot serve the format, or None.

    ``release``: the release of NVIDIA's image as YY.MM, or empty if unknown. Such releases compare as text.
    """
    last = FORMATS[target].last_release
    if not last or not release or release <= last:
        return None
    return (
        f"release {release} does not serve format {target}: its backend {FORMATS[target].backend} left Triton after"
        f" {last}; use format onnx or trt, or set spec.serving.image to an image of {last} or older"
    )
