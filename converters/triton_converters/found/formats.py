"""The format of a model that the spec gives by its path alone."""

from collections.abc import Mapping
from pathlib import Path

from triton_converters.contract.failure import StageError
from triton_converters.contract.formats import SHOWN
from triton_converters.contract.reasons import Reason
from triton_converters.found.kinds import Kind, kind_of

FORMATS: Mapping[Kind, str] = {Kind(words): name for name, words in SHOWN.items()}
"""Values of spec.models[].format."""
WEIGHTS = {Kind.STATE_DICT, Kind.SAFETENSORS}
"""Kinds that need a Python file which builds the model. No format may be one of them."""
ADVICE: Mapping[Kind, str] = {
    Kind.EXPORTED_PROGRAM: "export the module with torch.onnx.export or torch.jit.trace",
    Kind.KERAS: "export it as a SavedModel (model.export), or load it in a Python file with get_model, format tf-keras",
    Kind.TENSORRT: "it runs only on the TensorRT that built it: give the ONNX file that it was built from",
    Kind.TFLITE: "give the SavedModel that it was made from",
}
"""What to do with a kind that cannot be served. Each Kind is in one of FORMATS, WEIGHTS and ADVICE."""
NAMED_FILES = 10
"""Files that the message about a missing one lists: enough to see a typing error, few enough to be read."""


def found_format(source: Path, path: str) -> str:
    """Return the format of ``path``, a file or directory below the source's directory.

    Raises StageError: EntrypointMissing, WeightsWithoutModel, FormatNotFound, SourceInvalid (unreadable).
    """
    place = source / path
    if not place.exists() or not place.resolve().is_relative_to(source.resolve()):
        files = sorted(str(each.relative_to(source)) for each in source.rglob("*") if each.is_file())[:NAMED_FILES]
        raise StageError(Reason.ENTRYPOINT_MISSING, f"the source has no {path!r}; it has: {', '.join(files)}")
    kind = kind_of(place)
    if kind in WEIGHTS:
        raise StageError(Reason.WEIGHTS_WITHOUT_MODEL, f"{path} is {kind.value}: {_model_file(path)}")
    if kind is None:
        message = f"{path} is no model that can be recognized: correct it, or set spec.models[].format"
        raise StageError(Reason.FORMAT_NOT_FOUND, message)
    if kind not in FORMATS:
        raise StageError(Reason.FORMAT_NOT_FOUND, f"{path} is {kind.value}, which cannot be served: {ADVICE[kind]}")
    return FORMATS[kind]


def _model_file(path: str) -> str:
    """Return in words what is missing, and the shortest Python file that does."""
    load = "safetensors.torch.load_file(checkpoint)" if path.endswith(".safetensors") else "torch.load(checkpoint)"
    return (
        "add a Python file that builds the model, and set format: pyt, entrypoint: model.py and arguments:"
        f" {{checkpoint: {path}}} instead of path. For example, model.py: def get_model(checkpoint: str): net = Net();"
        f" net.load_state_dict({load}); return net.eval(), {{'inputs': ['INPUT__0'], 'outputs': ['OUTPUT__0']}}"
    )
