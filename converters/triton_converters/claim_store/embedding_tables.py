"""The files that Merlin's Hierarchical Parameter Server reads: two for each table, and the JSON that names them.

A table is a directory of two files without headers, both little-endian: ``key``, int64, and ``emb_vector``, float32,
one vector for each key in the keys' order (HugeCTR's inference with ``supportlonglong``; NVIDIA's DeepLearningExamples
write the same in deployment/hps/deploy_sparse.py).
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy

from triton_converters.claim_store.dump import Array, Arrays
from triton_converters.contract.conversion_requests import HpsOptions
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import Signature, Tensor

KEYS, NUMKEYS, OUTPUT = "KEYS", "NUMKEYS", "OUTPUT0"
"""The only names that hps_backend accepts (model_state.cpp)."""
KEY_FILE, VECTOR_FILE = "key", "emb_vector"
INDEX_FILE = "tables.json"
"""Our own file next to the tables: a list of their names and widths."""
DEFAULT_VALUE = 1.0
"""Value of every element of the vector for a key that a table lacks; DeepLearningExamples' value."""
WORKER_BUFFERS = 3
"""num_of_worker_buffer_in_pool, DeepLearningExamples' value; hps_backend refuses more instances than buffers."""
CHUNK_ROWS = 2**18
"""Rows that are written at once, so that a table of any size needs little memory: 64 MiB at 64 columns."""


@dataclass(frozen=True)
class Table:
    """One embedding table; a missing key has a vector of DEFAULT_VALUE."""

    name: str
    keys: Array
    """int64 (rows,), distinct."""
    vectors: Array
    """float32 (rows, width)."""

    @property
    def width(self) -> int:
        """The number of elements of a vector."""
        return int(self.vectors.shape[1])


def signature(max_batch_size: int) -> Signature:
    """Return the signature that hps_backend serves: one row holds all samples' keys, table after table."""
    return Signature(
        (Tensor(KEYS, "INT64", (-1,)), Tensor(NUMKEYS, "INT32", (-1,))),
        (Tensor(OUTPUT, "FP32", (-1,)),),
        max_batch_size,
    )


def lookup(tables: Sequence[Table], inputs: Arrays) -> Array:
    """Return the vectors of all keys, as float32 of one dimension, in the keys' order.

    KEYS: int64 [1, n], all keys of the first table, then of the second, ...; NUMKEYS: int32 [1, len(tables)], how many
    keys each has. Raises ValueError if they do not fit each other.
    """
    keys = inputs[KEYS].reshape(-1)
    counts = inputs[NUMKEYS]
    if counts.shape != (1, len(tables)):
        raise ValueError(f"{NUMKEYS} has shape {list(counts.shape)}, not [1, {len(tables)}]: one number for each table")
    if counts.min() < 0 or int(counts.sum()) != keys.size:
        raise ValueError(f"{NUMKEYS} asks for {counts[0].tolist()} keys, but {KEYS} holds {keys.size}")
    parts = numpy.split(keys, numpy.cumsum(counts[0])[:-1])
    return numpy.concatenate([_find(table, part).reshape(-1) for table, part in zip(tables, parts, strict=True)])


def write_tables(tables: Sequence[Table], directory: Path) -> None:
    """Write ``<directory>/<number>/{key,emb_vector}`` for each table in their order, and INDEX_FILE.

    Raises OSError if no space is left.
    """
    index = [[table.name, table.width] for table in tables]
    (directory / INDEX_FILE).write_text(json.dumps(index), encoding="utf-8")
    for number, table in enumerate(tables):
        folder = directory / str(number)
        folder.mkdir()
        _write(folder / KEY_FILE, table.keys, "<i8")
        _write(folder / VECTOR_FILE, table.vectors, "<f4")


def read_index(directory: Path) -> tuple[tuple[str, int], ...]:
    """Return name and width of each table that ``write_tables`` wrote."""
    index = json.loads((directory / INDEX_FILE).read_text(encoding="utf-8"))
    return tuple((str(name), int(width)) for name, width in index)


@dataclass(frozen=True)
class ServedTables:
    """A model of format hps as ps.json describes it."""

    name: str
    version: Path
    """The model's version directory as the *server* sees it: hps_backend opens absolute paths."""
    tables: tuple[tuple[str, int], ...]
    """Name and width of each table, in their order."""
    max_batch_size: int
    instances: int
    options: HpsOptions


def parameter_server(models: Sequence[ServedTables], gpu_count: int) -> str:
    """Return the text of ps.json, which tritonserver gets as --backend-config=hps,ps=FILE.

    ``gpu_count``: 0 keeps the tables in the processor's memory. The fields of ps.json are HugeCTR's (hps_backend's
    docs/hierarchical_parameter_server.md, and backend.cpp's ParseParameterServer).
    """
    document = {"supportlonglong": True, "models": [_entry(model, gpu_count) for model in models]}
    return json.dumps(document, indent=1)


def _entry(model: ServedTables, gpu_count: int) -> dict[str, Any]:
    count = len(model.tables)
    return {
        "model": model.name,
        "sparse_files": [str(model.version / str(number)) for number in range(count)],
        "num_of_worker_buffer_in_pool": max(WORKER_BUFFERS, model.instances),
        "embedding_table_names": [name for name, _ in model.tables],
        "embedding_vecsize_per_table": [width for _, width in model.tables],
        "maxnum_catfeature_query_per_table_per_sample": [model.options.keys_per_sample] * count,
        "default_value_for_each_table": [DEFAULT_VALUE] * count,
        "deployed_device_list": list(range(max(1, gpu_count))),
        "max_batch_size": model.max_batch_size,
        "cache_refresh_percentage_per_iteration": 0.0,
        "hit_rate_threshold": 1.0,
        "gpucacheper": model.options.gpu_cache_percent / 100,
        "gpucache": gpu_count > 0,
    }


def checked_tables(value: Any, where: str) -> tuple[Table, ...]:
    """Return the tables that ``get_model`` returned as {name: (keys, vectors)}.

    ``where`` names the user's file in messages. Raises StageError: EntrypointInvalid, CheckpointInvalid (a vector that
    is not finite).
    """
    if not isinstance(value, Mapping) or not value:
        raise _invalid(where, f"get_model must return {{table's name: (keys, vectors)}}, not {type(value).__name__}")
    return tuple(_checked(str(name), pair, where) for name, pair in value.items())


def _checked(name: str, pair: Any, where: str) -> Table:
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise _invalid(where, f"table {name} must be (keys, vectors), not {type(pair).__name__}")
    keys, vectors = (numpy.asarray(array) for array in pair)
    if keys.ndim != 1 or keys.dtype.kind not in "iu" or not len(keys):
        raise _invalid(
            where, f"the keys of table {name} are {keys.dtype}{list(keys.shape)}, not integers of one dimension"
        )
    if vectors.ndim != 2 or vectors.dtype != numpy.float32 or len(vectors) != len(keys):
        message = f"the vectors of table {name} are {vectors.dtype}{list(vectors.shape)}"
        raise _invalid(where, f"{message}, not float32 [{len(keys)}, width] with one for each key")
    whole = keys.astype(numpy.int64)
    if len(numpy.unique(whole)) != len(whole):
        raise _invalid(where, f"table {name} has the same key twice")
    if not numpy.isfinite(vectors).all():
        raise StageError(Reason.CHECKPOINT_INVALID, f"{where}: the vectors of table {name} hold NaN or infinity")
    return Table(name, whole, vectors)


def _find(table: Table, keys: Array) -> Array:
    order = numpy.argsort(table.keys, kind="stable")
    places = order[numpy.minimum(numpy.searchsorted(table.keys, keys, sorter=order), len(order) - 1)]
    found: Array = table.vectors[places]
    found[table.keys[places] != keys] = DEFAULT_VALUE
    return found


def _write(path: Path, array: Array, kind: str) -> None:
    """Write raw bytes, in chunks: a table may be as large as the memory."""
    with path.open("wb") as file:
        for start in range(0, len(array), CHUNK_ROWS):
            file.write(numpy.ascontiguousarray(array[start : start + CHUNK_ROWS], dtype=kind).tobytes())


def _invalid(where: str, message: str) -> StageError:
    return StageError(Reason.ENTRYPOINT_INVALID, f"{where}: {message}")
