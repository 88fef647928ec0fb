"""Take the files of one converted model: exactly those names that its format knows, and nothing beside them.

A directory that Triton loads from may hold more than a model: a config.pbtxt that is taken instead of ours, libraries
and programs that a backend runs. So files are chosen by name here, and whatever else lies there stays behind.
"""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from triton_converters.claim_store import embedding_tables, inspection
from triton_converters.claim_store.inspection import Inspection
from triton_converters.contract.failure import StageError
from triton_converters.contract.formats import FORMATS, HPS
from triton_converters.contract.reasons import Reason
from triton_converters.contract.text import printable
from triton_converters.incoming import documents, files
from triton_converters.incoming.files import unfit

ONNX_DATA = "model.onnx.data"
"""The only file beside an ONNX graph that may hold its weights."""
TIMING_CACHE_BYTES = 64 * 2**20
ASSETS, SHARDS, TABLES = 1000, 10_000, 10_000
"""Most files of a kind."""
INSPECTION_BYTES = 64 * 1024
TEXT_CHARACTERS = 300
DATA_TYPES = frozenset({"FP32", "FP16", "FP64", "BF16"})
VERSION = re.compile(r"[0-9][0-9A-Za-z.+-]{0,31}")
"""A version of TensorRT; it also names a directory."""
_ASSET = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,200}")
_SHARD = re.compile(r"variables\.data-\d{5}-of-\d{5}")


def take(root: Path, format_name: str, directory: Path) -> None:
    """Copy the model's files from ``root`` into ``directory``.

    Raises StageError: Crashed (a file is missing or is not what its name says), StorageFull, ModelLoadFailed (an ONNX
    file that cannot be parsed).
    """
    _TAKERS[FORMATS[format_name].file](root, directory)


def take_inspection(root: Path, gpu_product: str, directory: Path) -> None:
    """Write what the format's own runtime reported about the files that were taken.

    The digest in it is made anew, of the files as they are here.

    Raises StageError(Crashed) if the report says what no file can be.
    """
    found = documents.read(root, inspection.FILE, Inspection, INSPECTION_BYTES)
    if not set(found.data_types) <= DATA_TYPES or len(found.data_types) > len(DATA_TYPES):
        raise unfit(root / inspection.FILE, "it names types that no weights have")
    if found.tensorrt_version and not VERSION.fullmatch(found.tensorrt_version):
        raise unfit(root / inspection.FILE, "its tensorrt_version is none")
    if found.gpu_product not in ("", gpu_product):
        raise unfit(root / inspection.FILE, "the GPU product in it is not the one that was asked for")
    tensors = tuple(documents.plain(text, TEXT_CHARACTERS) for text in found.tensors)
    inspection.write(directory, found.data_types, tensors, found.tensorrt_version, found.gpu_product)


def _take_one(root: Path, directory: Path, name: str) -> None:
    files.copy(root, [name], directory)


def _take_onnx(root: Path, directory: Path) -> None:
    graph = FORMATS["onnx"].file
    files.copy(root, [graph], directory)
    places = data_files(directory / graph)
    if places - {ONNX_DATA}:
        foreign = ", ".join(f"{each!r:.100}" for each in sorted(places - {ONNX_DATA})[:3])
        raise unfit(root / graph, f"it has weights in {foreign}, but only {ONNX_DATA} may hold them")
    if places:
        files.copy(root, [ONNX_DATA], directory)


def data_files(path: Path) -> set[str]:
    """Return every place outside the file that any tensor of the graph names, wherever the tensor is.

    Raises StageError(ModelLoadFailed) if the file cannot be parsed.
    """
    import onnx

    try:
        model = onnx.load(str(path), load_external_data=False)
    except Exception as error:
        line = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise StageError(Reason.MODEL_LOAD_FAILED, f"{path.name} cannot be parsed: {line:.300}") from error
    found = set()
    for tensor in _tensors(model, onnx.TensorProto):
        places = {entry.value for entry in tensor.external_data if entry.key == "location"}
        # A tensor that is said to lie elsewhere, without a place, is refused with those that lie somewhere else.
        is_outside = tensor.external_data or tensor.data_location == onnx.TensorProto.EXTERNAL
        found |= places or ({""} if is_outside else set())
    return found


def _tensors(message: Any, kind: type[Any]) -> Iterator[Any]:
    """Yield every tensor in a message, at any depth: subgraphs, functions, sparse tensors and whatever comes.

    A message lies at most a hundred others deep, or onnx does not parse it.
    """
    if isinstance(message, kind):
        yield message
    for field, value in message.ListFields():
        if field.message_type is not None:
            # One by one: a list of them takes many times the bytes of the file.
            for each in [value] if hasattr(value, "ListFields") else value:
                yield from _tensors(each, kind)


def _take_saved_model(root: Path, directory: Path) -> None:
    top = FORMATS["tf-savedmodel"].file
    known = files.names_in(root, top, ASSETS)
    names = [f"{top}/saved_model.pb"]
    names += [f"{top}/{name}" for name in ("fingerprint.pb", "keras_metadata.pb") if name in known]
    if "variables" in known:
        shards = files.names_in(root, f"{top}/variables", SHARDS)
        names += [f"{top}/variables/{name}" for name in shards if name == "variables.index" or _SHARD.fullmatch(name)]
    if "assets" in known:
        for name in files.names_in(root, f"{top}/assets", ASSETS):
            if not _ASSET.fullmatch(name) or ".so" in name:
                raise unfit(root / top / "assets" / printable(name), "an asset has a plain name and is no library")
            names.append(f"{top}/assets/{name}")
    files.copy(root, names, directory)


def _take_tables(root: Path, directory: Path) -> None:
    """Copy embedding tables, whose index is written anew and whose files are as long as it says."""
    path = root / embedding_tables.INDEX_FILE
    try:
        text = files.read_file(root, embedding_tables.INDEX_FILE, documents.LIMIT_BYTES).decode()
        index = [(name, width) for name, width in json.loads(text)]
    except (ValueError, TypeError, RecursionError) as error:
        raise unfit(path, error) from error
    if not 0 < len(index) <= TABLES or not all(_is_table(name, width) for name, width in index):
        raise unfit(path, "it is no list of tables' names and widths")
    names = (embedding_tables.KEY_FILE, embedding_tables.VECTOR_FILE)
    files.copy(root, [f"{number}/{name}" for number in range(len(index)) for name in names], directory)
    for number, (name, width) in enumerate(index):
        keys, vectors = ((directory / str(number) / each).stat().st_size for each in names)
        if not keys or keys % 8 or vectors != keys // 8 * width * 4:
            raise unfit(root / str(number), f"the table {name} has {keys} bytes of keys and {vectors} of vectors")
    (directory / embedding_tables.INDEX_FILE).write_text(json.dumps(index), encoding="utf-8")


def _is_table(name: Any, width: Any) -> bool:
    is_name = isinstance(name, str) and 0 < len(name) <= TEXT_CHARACTERS and name.isprintable()
    return is_name and type(width) is int and 0 < width < 2**31


_TAKERS: dict[str, Callable[[Path, Path], None]] = {
    "model.pt": lambda root, directory: _take_one(root, directory, "model.pt"),
    "model.plan": lambda root, directory: _take_one(root, directory, "model.plan"),
    FORMATS["onnx"].file: _take_onnx,
    FORMATS["tf-savedmodel"].file: _take_saved_model,
    FORMATS[HPS].file: _take_tables,
}
