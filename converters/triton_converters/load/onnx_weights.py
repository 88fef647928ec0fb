"""Whether the files with the weights of an ONNX graph are there: graphs of over 2 GiB, and many smaller, have some."""

from pathlib import Path
from typing import Any

import onnx

from triton_converters.found.kinds import FileKind, kind_of


def fault(model: Any, folder: Path) -> str:
    """Return which file is missing or too short, and what to do; empty: none. ``folder``: that of the graph."""
    needed: dict[str, int] = {}
    for tensor in model.graph.initializer:
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            said = {entry.key: entry.value for entry in tensor.external_data}
            name = said.get("location", "")
            end = _number(said.get("offset")) + _number(said.get("length"))
            needed[name] = max(needed.get(name, 0), end)
    for name, size in sorted(needed.items()):
        shown = ascii(name)
        file = folder / name
        if not file.is_file():
            return f"its weights are in {shown}, which is not next to it: push the folder with both files"
        if kind_of(file) is FileKind.LFS:
            return f"its weights are in {shown}, which is {FileKind.LFS.words}: {FileKind.LFS.advice}"
        if file.stat().st_size < size:
            found = file.stat().st_size
            return f"its weights are in {shown}, which has {found} of at least {size} bytes: copy or download it again"
    return ""


def _number(text: str | None) -> int:
    return int(text) if text and text.isdecimal() else 0
