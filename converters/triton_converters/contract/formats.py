"""The formats in which a model may be given and served, and the modules that convert between them.

Shared by the Jobs and the controller; standard library only. docs/converters.md shows the same in tables.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from triton_converters.contract.model_repository import CONFIG
from triton_converters.contract.reasons import Reason

CONVERTER: Final = "converter"
CONVERTER_TENSORFLOW: Final = "converter-tensorflow"
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
class SourceFormat:
    """A format in which a model may be given."""

    loader: str
    """Module that has ``load(source, model, output_format) -> Framework``."""
    image: Literal["converter", "converter-tensorflow"]
    """Image of the reference and convert Jobs. The operator tells the two apart in several places, so a third one is
    more than a value here."""
    is_file: bool
    """Whether the entrypoint is the model itself, a file or directory of the source, and not a Python file."""
    converters: Mapping[str, str]
    """The module that has ``convert(task, directory)``, by target format."""
    tried: tuple[str, ...] = ()
    """The target formats of a spec that lists no candidates, the likeliest to work first."""
    declares: bool = False
    """Whether the graph or config.pbtxt declares the types and shapes of the inputs, so that they can be generated."""
    kind: str = ""
    """What such a file is, in words, if the file itself shows its format (``found.kinds``); empty: it does not."""
    suffixes: tuple[str, ...] = ()
    """How the names of such files end."""
    marker: str = ""
    """Name of the file that makes a directory such a model; empty: it is a file."""
    alone: str = ""
    """What to say of a folder that is itself such a directory, and so cannot be pushed as a source."""
    tensors: str = ""
    """Where the names of its tensors come from, in words."""
    halves: bool = False
    """Whether inputs and outputs may be float16, as the graph declares them. What PyTorch and TensorFlow run is
    converted in float32, with casts inside for fp16."""

    library: str = ""
    """Name of the library that trained such a model of a table, and answers as its reference; empty: it is another."""

    @property
    def is_own_reference(self) -> bool:
        """Whether the model is a file that nothing else says what it should answer."""
        return self.is_file and not self.library

    @property
    def is_tensorflow(self) -> bool:
        """Whether TensorFlow runs such a model."""
        return self.image == CONVERTER_TENSORFLOW


PYTORCH = "pytorch"
"""The backend of TorchScript files."""
HPS = "hps"
"""Embedding tables of Merlin's Hierarchical Parameter Server: source and target, only inside an ensemble."""
ENSEMBLE = "ensemble"
"""Several models served as one; each of them has its own source and target."""
TRITON_PYTHON = "triton-python"
"""A file with the contract of Triton's Python backend: source and target, only inside an ensemble."""
AS_GIVEN = (HPS, TRITON_PYTHON)
"""Formats that are served as they are given, so that a model of them takes no candidates."""
REPOSITORY = "triton-repository"
"""A model's folder of a Triton model repository, which holds a file of another format and its config.pbtxt. The source
Job finds that format, and from then on the model has it."""
MLMODEL = "MLmodel"
"""The file of an MLflow model's folder that names the model's own file; as a ``path`` it stands for that one."""

FORMATS: Mapping[str, Format] = {
    "ts-trace": Format("model.pt", PYTORCH, "pytorch_libtorch", False, "", ("none", "cuda")),
    "ts-script": Format("model.pt", PYTORCH, "pytorch_libtorch", False, "", ("none", "cuda")),
    "onnx": Format("model.onnx", "onnxruntime", "", False, "", ("none", "cuda", "trt")),
    "trt": Format("model.plan", "tensorrt", "", True, "", ("none", "cuda")),
    "tf-savedmodel": Format(
        "model.savedmodel", "tensorflow", "tensorflow_savedmodel", False, "25.02", ("none", "cuda", "amp")
    ),
    "tf-trt": Format("model.savedmodel", "tensorflow", "tensorflow_savedmodel", True, "25.02", ("none", "cuda", "amp")),
    HPS: Format("tables.json", "hps", "", False, "", ("none",)),
    TRITON_PYTHON: Format("model.py", "python", "", False, "", ("none",)),
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
_TREES = {"onnx": "triton_converters.convert.trees_onnx"}
_SKLEARN = {"onnx": "triton_converters.convert.sklearn_onnx"}

_TORCHSCRIPT_SUFFIXES = (".pt", ".pth", ".ts", ".torchscript")
_BY_ORDER = "INPUT__0, INPUT__1, ... in the order of forward's parameters, and OUTPUT__0, ... of what it returns"
_OF_A_TABLE = "features, with a column for each feature in the model's order, and prediction"

SOURCE_FORMATS: Mapping[str, SourceFormat] = {
    "pyt": SourceFormat(
        "triton_converters.load.pyt",
        CONVERTER,
        is_file=False,
        converters=_TORCH,
        tried=("onnx", "ts-trace"),
        tensors="those that get_model returns",
    ),
    "ts-trace": SourceFormat(
        "triton_converters.load.torchscript",
        CONVERTER,
        is_file=True,
        converters=_TORCH,
        tried=("ts-script", "onnx"),
        suffixes=_TORCHSCRIPT_SUFFIXES,
        tensors=_BY_ORDER,
    ),
    # The file does not say whether it was traced or scripted, and the loader does not need to know.
    "ts-script": SourceFormat(
        "triton_converters.load.torchscript",
        CONVERTER,
        is_file=True,
        converters=_TORCH,
        tried=("ts-script", "onnx"),
        kind="a TorchScript file",
        suffixes=_TORCHSCRIPT_SUFFIXES,
        tensors=_BY_ORDER,
    ),
    "onnx": SourceFormat(
        "triton_converters.load.onnx",
        CONVERTER,
        is_file=True,
        converters=_ONNX,
        tried=("onnx",),
        declares=True,
        kind="an ONNX graph",
        suffixes=(".onnx",),
        tensors="those of the graph",
        halves=True,
    ),
    "xgboost": SourceFormat(
        "triton_converters.load.xgboost_trees",
        CONVERTER,
        is_file=True,
        converters=_TREES,
        tried=("onnx",),
        declares=True,
        kind="an XGBoost model",
        suffixes=(".json", ".ubj"),
        tensors=_OF_A_TABLE,
        library="XGBoost",
    ),
    "lightgbm": SourceFormat(
        "triton_converters.load.lightgbm_trees",
        CONVERTER,
        is_file=True,
        converters=_TREES,
        tried=("onnx",),
        declares=True,
        kind="a LightGBM model",
        suffixes=(".txt",),
        tensors=_OF_A_TABLE,
        library="LightGBM",
    ),
    "sklearn": SourceFormat(
        "triton_converters.load.sklearn_pipeline",
        CONVERTER,
        is_file=True,
        converters=_SKLEARN,
        tried=("onnx",),
        declares=True,
        kind="a model of scikit-learn, saved by skops",
        suffixes=(".skops",),
        tensors="features, with a column for each feature, or one of each column if some hold words; and prediction",
        library="scikit-learn",
    ),
    "tf-keras": SourceFormat(
        "triton_converters.load.tf_keras",
        CONVERTER_TENSORFLOW,
        is_file=False,
        converters=_TENSORFLOW,
        tried=("onnx", "tf-savedmodel"),
        tensors="those that get_model returns, or else the Keras model's",
    ),
    "tf-estimator": SourceFormat(
        "triton_converters.load.tf_estimator",
        CONVERTER_TENSORFLOW,
        is_file=False,
        converters=_TENSORFLOW,
        tried=("onnx", "tf-savedmodel"),
        tensors="those of get_serving_input_receiver_fn",
    ),
    "tf-savedmodel": SourceFormat(
        "triton_converters.load.tf_savedmodel",
        CONVERTER_TENSORFLOW,
        is_file=True,
        converters=_TENSORFLOW,
        tried=("onnx", "tf-savedmodel"),
        declares=True,
        kind="a SavedModel",
        marker="saved_model.pb",
        alone="a SavedModel, but spec.models[].path names a directory below the source; move it into another folder,"
        " next to a dataloader, and pass that folder",
        tensors="those of the signature serving_default (saved_model_cli show --dir DIR --all)",
    ),
    HPS: SourceFormat("triton_converters.load.hps", CONVERTER, False, {HPS: "triton_converters.convert.hps"}),
    TRITON_PYTHON: SourceFormat(
        "triton_converters.load.triton_python",
        CONVERTER,
        is_file=False,
        converters={TRITON_PYTHON: "triton_converters.convert.triton_python"},
        tensors="those of the spec or, if it names none, of auto_complete_config",
        halves=True,
    ),
    ENSEMBLE: SourceFormat(
        "triton_converters.load.ensemble", CONVERTER, False, {}, tensors="those of ensemble.inputs", halves=True
    ),
    REPOSITORY: SourceFormat(
        "",
        CONVERTER,
        is_file=True,
        converters=_TENSORFLOW | _TORCH | _ONNX,
        declares=True,
        marker=CONFIG,
        alone="a model of a Triton repository, but spec.models[].path names a folder below the source; pass the folder"
        " that contains it",
        tensors="those of config.pbtxt or, if it names none, of the graph",
        halves=True,
    ),
}
"""The sources by their names in spec.models[]."""


def has_runtime(format_name: str) -> bool:
    """Whether a file of that format runs without Triton in the Jobs that run user code."""
    return format_name in SOURCE_FORMATS and SOURCE_FORMATS[format_name].is_file


DECLARING = tuple(name for name, source in SOURCE_FORMATS.items() if source.declares)
OF_TABLES = tuple(name for name, source in SOURCE_FORMATS.items() if source.library)
"""The formats of models of tables, in which they were trained."""
SHOWN = {name: source.kind for name, source in SOURCE_FORMATS.items() if source.kind}
"""The formats that a file itself shows, with what it is in words."""

THROUGH = {"trt": "onnx"}
"""Formats that are made from another one: ``convert.trt`` first converts the source to ONNX."""


def refusal(source: str, target: str, accelerator: str) -> tuple[Reason, str] | None:
    """Return why a model of format ``source`` cannot be a candidate of format ``target`` with the accelerator, or None.

    The message names what is possible. Raises KeyError for a format that does not exist.
    """
    known = SOURCE_FORMATS[source].converters
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
