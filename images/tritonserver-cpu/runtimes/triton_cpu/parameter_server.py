"""The hps backend's JSON file and the tables it names, as NVIDIA's hps_backend and HugeCTR read them.

A table is a directory of two files without headers: ``key``, int64, and ``emb_vector``, float32, one vector a key; both
little-endian (HugeCTR, inference's SparseModelFile with supportlonglong).
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from triton_cpu.batch import Array
from triton_cpu.config import ModelError

KEY_TYPE, VECTOR_TYPE = np.dtype("<i8"), np.dtype("<f4")


@dataclass(frozen=True)
class Table:
    """One embedding table, its keys sorted."""

    keys: Array
    """int64 (rows,), ascending."""
    vectors: Array
    """float32 (rows, width)."""
    default: float
    """Every element of the vector of a key that the table does not have."""

    @property
    def width(self) -> int:
        """Elements of a vector."""
        return int(self.vectors.shape[1])

    def lookup(self, keys: Array) -> Array:
        """float32 (len(keys), width)."""
        places = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        found: Array = self.vectors[places]
        missing = self.keys[places] != keys
        if missing.any():
            found[missing] = self.default
        return found


@dataclass(frozen=True)
class Parameters:
    """What ps.json says of one model."""

    sparse_files: tuple[Path, ...]
    widths: tuple[int, ...]
    keys_per_sample: tuple[int, ...]
    """maxnum_catfeature_query_per_table_per_sample."""
    defaults: tuple[float, ...]
    max_batch_size: int
    """Samples of a request."""
    workers: int
    """num_of_worker_buffer_in_pool: instances share them."""
    gpu_cache: bool

    @property
    def max_samples_keys(self) -> int:
        """Keys of one sample, all tables together."""
        return sum(self.keys_per_sample)


def read_parameters(file: Path, model: str) -> Parameters:
    """The entry of ``model`` in ps.json; raises ModelError."""
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ModelError(f"Failed to open Parameter Server Configuration {file}: {error.strerror}") from error
    except ValueError as error:
        raise ModelError(f"Parameter Server Configuration {file} is not JSON: {error}") from error
    if document.get("supportlonglong") is not True:
        raise ModelError(f"{file}: supportlonglong is not true, and only int64 keys are served")
    entries = [entry for entry in document.get("models", []) if entry.get("model") == model]
    if not entries:
        raise ModelError(
            f"Please make sure that the configuration of model {model} has been added to the Parameter Server json"
            f" configuration file {file}"
        )
    try:
        return _parameters(entries[0])
    except (KeyError, TypeError, ValueError) as error:
        raise ModelError(f"{file}: model {model}: {error!r}") from error


def read_tables(parameters: Parameters) -> tuple[Table, ...]:
    """Every table of the model, in the order of sparse_files; raises ModelError."""
    return tuple(
        read_table(directory, width, default)
        for directory, width, default in zip(
            parameters.sparse_files, parameters.widths, parameters.defaults, strict=True
        )
    )


def read_table(directory: Path, width: int, default: float) -> Table:
    """A table's two files; raises ModelError where they are not there or do not fit each other."""
    keys, vectors = _read(directory / "key", KEY_TYPE), _read(directory / "emb_vector", VECTOR_TYPE)
    if len(keys) == 0 or len(vectors) != len(keys) * width:
        raise ModelError(
            f"{directory}: {len(keys)} keys in `key` and {len(vectors)} elements in `emb_vector`:"
            f" not vectors of {width}"
        )
    order = np.argsort(keys, kind="stable")
    if (order == np.arange(len(order))).all():
        return Table(keys, vectors.reshape(-1, width), default)
    return Table(keys[order], vectors.reshape(-1, width)[order], default)


def _parameters(entry: Mapping[str, Any]) -> Parameters:
    files = tuple(Path(path) for path in entry["sparse_files"])
    lists: Sequence[Sequence[Any]] = [
        entry[name]
        for name in (
            "embedding_vecsize_per_table",
            "maxnum_catfeature_query_per_table_per_sample",
            "default_value_for_each_table",
        )
    ]
    if not files or any(len(values) != len(files) for values in lists):
        raise ValueError(f"{len(files)} sparse_files and {[len(values) for values in lists]} values for them")
    return Parameters(
        sparse_files=files,
        widths=tuple(int(value) for value in lists[0]),
        keys_per_sample=tuple(int(value) for value in lists[1]),
        defaults=tuple(float(value) for value in lists[2]),
        max_batch_size=int(entry["max_batch_size"]),
        workers=int(entry.get("num_of_worker_buffer_in_pool", 1)),
        gpu_cache=bool(entry.get("gpucache", True)),
    )


def _read(file: Path, kind: np.dtype[Any]) -> Array:
    try:
        size = file.stat().st_size
        if size % kind.itemsize:
            raise ModelError(f"{file}: {size} bytes are not a whole number of {kind.name}")
        values: Array = np.fromfile(file, dtype=kind)
    except OSError as error:
        raise ModelError(f"failed to open {file}: {error.strerror}") from error
    return values
