"""How each kind of file or folder is recognized. Names in a folder count, the name of a file never does."""

import re
from collections.abc import Callable
from pathlib import Path

from triton_converters.contract.formats import SOURCE_FORMATS
from triton_converters.found import protobuf
from triton_converters.found.content import ZIP, Content

SAVED_MODEL = SOURCE_FORMATS["tf-savedmodel"].marker
PICKLES = tuple(bytes([0x80, protocol]) for protocol in range(2, 6))
"""The first bytes of a pickle, by its protocol."""
PICKLED = (b"sklearn", b"xgboost", b"lightgbm", b"catboost")
"""Packages whose models are pickled, as their names stand in the file."""
OLD_TORCH = b"\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."
"""The number with which torch.save began a file before version 1.6."""
DATA = (b"\x93NUMPY", b"PAR1", b"ARROW1", b"\x89PNG", b"\xff\xd8\xff")
ARCHIVES = (ZIP, b"\x1f\x8b", b"BZh", b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd", b"7z\xbc\xaf\x27\x1c", b"Rar!")
TAR = slice(257, 262)
"""Where a tar archive says that it is one."""
LEVELDB = b"\x57\xfb\x80\x8b\x24\x75\x47\xdb"
"""How the index of TensorFlow's checkpoints ends."""
META_GRAPH = 7
"""The last field of TensorFlow's MetaGraphDef."""
COREML = range(200, 3001)
"""The fields of Core ML's Model that hold the model itself, by its type."""
ONNX = frozenset({1, 2, 3, 4, 5, 6, 7, 8, 14, 20, 25, 26})
"""The fields of ONNX's ModelProto."""
CODE = re.compile(r"^(import \w|from \S+ import |def \w+\(|class \w)", re.MULTILINE)
WEB = re.compile(r"(<!--.*?-->\s*)?(<!doctype html|<html|(<\?xml[^>]*>\s*)?<error>)", re.IGNORECASE | re.DOTALL)
NET = re.compile(r"(<\?xml[^>]*>\s*)?<net\b", re.IGNORECASE)
LEARNER = 64
"""Bytes in which an XGBoost model names the key `learner`, in JSON and in UBJSON."""
HUB = ("config.json", "adapter_config.json", "model_index.json")


def is_onnx(content: Content) -> bool:
    """Whether a file is a ModelProto: its fields are known, among them a graph (7) and operator sets (8)."""
    return content.fields.are(ONNX, needed={7, 8})


def is_cut_onnx(content: Content) -> bool:
    """Whether a file begins as a ModelProto, with its version (1), and is cut."""
    return content.head[:1] == b"\x08" and content.fields.is_cut and content.fields.numbers <= ONNX


def is_safetensors(content: Content) -> bool:
    """Whether a file begins with the length of a JSON object and that object."""
    head = content.head
    return head[8:9] == b"{" and 2 <= int.from_bytes(head[:8], "little") <= content.size - 8


def is_torchscript(content: Content) -> bool:
    """Whether an archive holds code as well as weights."""
    return "constants.pkl" in content.names and any(name.startswith("code/") for name in content.names)


def is_state_dict(content: Content) -> bool:
    """Whether a file is an archive of torch.save, or a pickle as torch.save wrote it before version 1.6."""
    return "data.pkl" in content.names or (is_pickle(content) and content.head[2:].startswith(OLD_TORCH))


def is_exported_program(content: Content) -> bool:
    """Whether an archive holds a graph of torch.export, or what was compiled from one."""
    return bool({"serialized_exported_program.json", "archive_format"} & content.names)


def is_keras(content: Content) -> bool:
    """Whether a file is an archive of Keras 3, or HDF5."""
    return content.head.startswith(b"\x89HDF\r\n\x1a\n") or "model.weights.h5" in content.names


def is_pickle(content: Content) -> bool:
    """Whether a file begins with a protocol of pickle."""
    return content.head.startswith(PICKLES)


def is_pickled_model(content: Content) -> bool:
    """Whether a pickle soon names a package of trees and linear models."""
    return is_pickle(content) and any(each in content.head for each in PICKLED)


def is_skops(content: Content) -> bool:
    """Whether an archive holds the file in which skops names types."""
    return "schema.json" in content.names


def is_data(content: Content) -> bool:
    """Whether a file holds arrays, a table or a picture."""
    names = {name for name in content.names if name}
    return content.head.startswith(DATA) or (bool(names) and all(name.endswith(".npy") for name in names))


def is_archive(content: Content) -> bool:
    """Whether a file is an archive that nothing else was said of."""
    return content.head.startswith(ARCHIVES) or content.head[TAR] == b"ustar"


def is_cut_archive(content: Content) -> bool:
    """Whether a file is a zip archive without an end."""
    return content.is_cut


def is_xgboost(content: Content) -> bool:
    """Whether a file is an object with a learner, in JSON or UBJSON."""
    head = content.head[:LEARNER].lstrip()
    return head.startswith(b"{") and b"learner" in head


def is_tree_dump(content: Content) -> bool:
    """Whether a text is what dump_model of XGBoost (text or JSON) or LightGBM (JSON) wrote."""
    return bool(re.match(r'booster\[0\]:|\[\s*\{\s*"nodeid"|\{\s*"name": "tree",', content.text))


def is_frozen_graph(content: Content) -> bool:
    """Whether a file is TensorFlow's GraphDef: its first field is a node (1), with a name (1) and an operator (2)."""
    return content.fields.are({1, 2, 3, 4, 5}, needed={1}) and _is_node(content)


def _is_node(content: Content) -> bool:
    with protobuf.opened(content.path) as message:
        try:
            node = next(iter(message.inner(1)))
            return bool(node.text(1)) and node.text(2).isidentifier()
        except (StopIteration, ValueError):
            return False


def is_saved_model(content: Content) -> bool:
    """Whether a folder has the file of a SavedModel, or a file is that file."""
    file = Content(content.path / SAVED_MODEL) if content.is_folder else content
    return file.path.is_file() and file.fields.are({1, 2}, needed={2}) and _has_meta_graph(file.path)


def _has_meta_graph(file: Path) -> bool:
    """Whether each field of the number 2 is a message of the fields of a MetaGraphDef."""
    with protobuf.opened(file) as message:
        try:
            return all(field.number <= META_GRAPH for graph in message.inner(2) for field in graph.fields())
        except ValueError:
            return False


def is_coreml(content: Content) -> bool:
    """Whether a file is Core ML's Model: version (1), description (2), and one model; or a folder is its package."""
    if content.is_folder:
        return {"Manifest.json", "Data"} <= content.names
    return content.fields.are({1, 2, 10, *COREML}, needed={2}, one_of=COREML)


def is_tensorflow_checkpoint(content: Content) -> bool:
    """Whether a file is the index of TensorFlow's checkpoint, or a folder has one."""
    if content.is_folder:
        return "checkpoint" in content.names and any(name.endswith(".index") for name in content.names)
    return content.size > len(LEVELDB) and content.tail == LEVELDB


def is_paddle(content: Content) -> bool:
    """Whether a file is a program of PaddlePaddle: JSON of version 3, or blocks (1) that begin with a number (1)."""
    if content.text.startswith("{") and '"base_code"' in content.text:
        return True
    if not content.fields.are({1, 4, 5}, needed={1}):
        return False
    with protobuf.opened(content.path) as message:
        try:
            return next(iter(message.inner(1))).integer(1) is not None
        except (StopIteration, ValueError):
            return False


def is_mxnet(content: Content) -> bool:
    """Whether a file is a symbol of MXNet, or a list of its arrays."""
    is_symbol = content.text.startswith("{") and '"nodes"' in content.text and '"op"' in content.text
    return is_symbol or content.head.startswith((0x112).to_bytes(8, "little"))


def is_hub_folder(content: Content) -> bool:
    """Whether a folder has settings and weights as a model hub keeps them, and no code."""
    return bool(content.names.intersection(HUB)) and not any(name.endswith(".py") for name in content.names)


def is_json(content: Content) -> bool:
    """Whether a text begins as JSON."""
    return bool(re.match(r'[\[{]\s*["\[{\]}]', content.text))


def says(*keys: str) -> Callable[[Content], bool]:
    """Return the test of whether a JSON object soon has one of these keys."""
    return lambda content: content.text.startswith("{") and any(f'"{each}"' in content.text for each in keys)


def begins(*starts: bytes, at: int = 0) -> Callable[[Content], bool]:
    """Return the test of whether a file has one of these bytes at a place near its beginning."""
    return lambda content: content.head[at:].startswith(starts)
