"""The kinds of model files that are told apart, and how each is recognized."""

from collections.abc import Callable, Mapping
from enum import Enum
from pathlib import Path

from triton_converters.contract.formats import SHOWN, SOURCES
from triton_converters.found import protobuf
from triton_converters.found.archive import members

SAVED_MODEL = SOURCES["tf-savedmodel"].marker
PICKLES = tuple(bytes([0x80, protocol]) for protocol in range(2, 6))
"""The first bytes of a pickle, by its protocol."""


class Kind(Enum):
    """A kind of model file, with the words that name it in messages."""

    ONNX = SHOWN["onnx"]
    TORCHSCRIPT = SHOWN["ts-script"]
    SAVED_MODEL = SHOWN["tf-savedmodel"]
    STATE_DICT = "a PyTorch checkpoint (torch.save), which holds weights and no model"
    SAFETENSORS = "a safetensors file, which holds weights and no model"
    EXPORTED_PROGRAM = "a program of torch.export"
    KERAS = "a Keras file"
    TENSORRT = "a TensorRT engine"
    TFLITE = "a TensorFlow Lite model"


def kind_of(path: Path) -> Kind | None:
    """Return the kind of a file or directory; None: it is none of them. Raises OSError."""
    if path.is_dir():
        file = path / SAVED_MODEL
        return Kind.SAVED_MODEL if file.is_file() and protobuf.is_message(file, {1, 2}, needed={2}) else None
    with path.open("rb") as file_:
        head = file_.read(16)
    return next((kind for kind, recognizes in _TESTS.items() if recognizes(path, head)), None)


def _is_onnx(path: Path, head: bytes) -> bool:
    """Whether a file is a ModelProto: its fields are known, among them a graph (7) and operator sets (8)."""
    return protobuf.is_message(path, {1, 2, 3, 4, 5, 6, 7, 8, 14, 20, 25, 26}, needed={7, 8})


def _is_safetensors(path: Path, head: bytes) -> bool:
    """Whether a file begins with the length of a JSON object and that object."""
    return head[8:9] == b"{" and 2 <= int.from_bytes(head[:8], "little") <= path.stat().st_size - 8


def _is_torchscript(path: Path, head: bytes) -> bool:
    names = members(path, head)
    return "constants.pkl" in names and any(name.startswith("code/") for name in names)


def _is_state_dict(path: Path, head: bytes) -> bool:
    """Whether a file is an archive of torch.save, or a pickle as torch.save wrote it before version 1.6."""
    return "data.pkl" in members(path, head) or head.startswith(PICKLES)


def _is_exported_program(path: Path, head: bytes) -> bool:
    names = members(path, head)
    return "serialized_exported_program.json" in names or "archive_format" in names


def _is_keras(path: Path, head: bytes) -> bool:
    return head.startswith(b"\x89HDF\r\n\x1a\n") or "model.weights.h5" in members(path, head)


_TESTS: Mapping[Kind, Callable[[Path, bytes], bool]] = {
    Kind.TORCHSCRIPT: _is_torchscript,
    Kind.EXPORTED_PROGRAM: _is_exported_program,
    Kind.KERAS: _is_keras,
    Kind.STATE_DICT: _is_state_dict,
    Kind.SAFETENSORS: _is_safetensors,
    Kind.TENSORRT: lambda path, head: head[:4] in (b"ptrt", b"ftrt"),
    Kind.TFLITE: lambda path, head: head[4:8] == b"TFL3",
    Kind.ONNX: _is_onnx,
}
"""The tests in their order. ONNX comes last: its files have no signature."""
