"""Read batches that user code wrote: npz files that NumPy's own reader would trust.

An array here is exactly as long as its file says, is stored as it is, and holds numbers or text: no pickle, no
compression, no object. Strings that are no text are made of their lengths and bytes (``dump.restored``). What is
read is written anew, so nothing else of the file gets onto the claim.
"""

import math
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import numpy

from triton_converters.claim_store.dump import CONTENT, KINDS, Array, Batch, is_name, is_unicode, restored
from triton_converters.incoming import files
from triton_converters.incoming.documents import Names
from triton_converters.incoming.files import unfit

ARRAYS = 4096
"""Most arrays in a file."""
LONGEST_ENTRY = 2048
"""Bytes of an entry in a file's list of arrays: its name has at most a quarter of them in letters."""
_GROUPS = ("inputs", "labels", "outputs")
_SUFFIX = ".npy"


def read_batches(root: Path, folder: str, names: Names, target: Path, limit: int) -> Iterator[Batch]:
    """Yield the batches ``<folder>/batches/00000.npz``, 00001.npz, ... one by one; there may be none.

    ``names``: those that every batch has, in both groups. ``target``: the directory whose file system has to have room
    for them. Raises StageError: Crashed (also if there are more than ``limit``), StorageFull.
    """
    number = 0
    while files.exists(root, name := f"{folder}/batches/{number:05}.npz"):
        if number >= limit:
            raise unfit(root / name, f"there are more than {limit} batches")
        yield read_batch(root, name, names, target)
        number += 1


def read_batch(root: Path, name: str, names: Names, target: Path) -> Batch:
    """Return one batch; raises what ``read_batches`` raises."""
    arrays = read_arrays(root, name, target)
    ids = arrays.pop("ids", None)
    groups: dict[str, dict[str, Array]] = {group: {} for group in _GROUPS}
    for key, array in arrays.items():
        group, _, own = key.partition("/")
        if group not in groups:
            raise unfit(root / name, f"it holds an array {key!r:.100}")
        groups[group][own] = array
    if ids is None or ids.ndim != 1:
        raise unfit(root / name, "its ids are missing or have more than one dimension")
    for group, wanted in (("inputs", names.inputs), ("outputs", names.outputs)):
        if set(groups[group]) != set(wanted):
            raise unfit(root / name, f"its {group} are not named {list(wanted)!r:.300}")
    # The model's own order, whatever the file's.
    inputs = {each: groups["inputs"][each] for each in names.inputs}
    outputs = {each: groups["outputs"][each] for each in names.outputs}
    return Batch(ids, inputs, groups["labels"], outputs)


def read_arrays(root: Path, name: str, target: Path, most: int = ARRAYS) -> dict[str, Array]:
    """Return the tensors of a file of at most ``most`` arrays by their names; raises what ``read_batches`` raises."""
    with files.open_file(root, name) as file:
        files.check_room(os.fstat(file.fileno()).st_size, target, root / name)
        try:
            return _restored(_read(file, most))
        except Exception as error:
            raise unfit(root / name, f"{type(error).__name__}: {error}") from error


def check_names(names: Names, path: Path, *, may_share: bool = False) -> None:
    """Raise StageError(Crashed) if a model's names are not distinct, or not what may stand in a configuration.

    The same goes for open axes that are no numbers. ``may_share``: whether an output may have the name of an input, as
    in a member of an ensemble.
    """
    every = (*names.inputs, *names.outputs)
    apart = (names.inputs, names.outputs) if may_share else (every,)
    wrong = (
        [each for side in apart for each in side if not is_name(each) or side.count(each) > 1]
        if len(every) <= ARRAYS
        else every
    )
    if wrong or not names.inputs or not names.outputs:
        raise unfit(path, f"its names are not those of a model: {list(wrong[:3])!r:.300}")
    for axes in names.open_axes.values():
        if not isinstance(axes, list | tuple) or not all(type(axis) is int for axis in axes):
            raise unfit(path, f"its open axes are no lists of numbers: {axes!r:.100}")


def _read(file: IO[bytes], most: int) -> dict[str, Array]:
    """Return the arrays by name; raises whatever the file's content provokes."""
    arrays: dict[str, Array] = {}
    listed = _Listed(file, most * LONGEST_ENTRY)
    with zipfile.ZipFile(listed) as archive:
        listed.limit = None
        members = archive.infolist()
        if len(members) > most:
            raise ValueError(f"it holds more than {most} arrays")
        # Members that overlap would otherwise make much of little.
        if sum(each.file_size for each in members) > os.fstat(file.fileno()).st_size:
            raise ValueError("its arrays are longer than the file")
        for member in members:
            name = member.filename.removesuffix(_SUFFIX)
            if not member.filename.endswith(_SUFFIX) or name in arrays or not is_name(name.removeprefix(CONTENT)):
                raise ValueError(f"it holds {member.filename!r:.100}, or holds it twice")
            if member.compress_type != zipfile.ZIP_STORED or member.compress_size != member.file_size:
                raise ValueError(f"{name} is compressed")
            with archive.open(member) as content:
                arrays[name] = _array(content, name, member.file_size)
    return arrays


def _restored(found: dict[str, Array]) -> dict[str, Array]:
    """Return the tensors of a file's arrays; raises ValueError for lengths or bytes that do not fit each other."""
    alone = [each for each in found if each.startswith(CONTENT) and each.removeprefix(CONTENT) not in found]
    if alone:
        raise ValueError(f"it holds {alone[0]!r:.100}, but no lengths")
    return {each: restored(found, each) for each in found if not each.startswith(CONTENT)}


class _Listed:
    """A file whose list of arrays is bounded: zipfile reads it in one piece, and keeps ten times as many bytes."""

    def __init__(self, file: IO[bytes], limit: int) -> None:
        self._file = file
        self.limit: int | None = limit
        """Most bytes that are read at once; None: any number, of arrays."""
        self.seek, self.tell, self.seekable = file.seek, file.tell, file.seekable

    def read(self, size: int = -1) -> bytes:
        if self.limit is not None and size > self.limit:
            raise ValueError(f"its list of arrays is longer than {self.limit} bytes")
        return self._file.read(size)


def _array(content: IO[bytes], name: str, size: int) -> Array:
    if numpy.lib.format.read_magic(content) != (1, 0):
        raise ValueError(f"{name} has another version of the format than 1.0")
    shape, by_columns, kind = numpy.lib.format.read_array_header_1_0(content)
    if kind.kind not in KINDS or kind.hasobject or not kind.itemsize:
        raise ValueError(f"{name} holds {kind!s:.100}, not numbers or text")
    length = size - content.tell()
    if min(shape, default=0) < 0 or math.prod(shape) * kind.itemsize != length:
        raise ValueError(f"{name} is not as long as its header says")
    # NumPy takes no empty buffer.
    data = content.read(length) or bytes(kind.itemsize)
    array: Array = numpy.ndarray(shape, kind, data, order="F" if by_columns else "C")
    array = numpy.ascontiguousarray(array.astype(kind.newbyteorder("="), copy=False)).reshape(shape)
    if array.dtype.kind == "U" and not is_unicode(array):
        raise ValueError(f"{name} holds text that is not Unicode")
    return array
