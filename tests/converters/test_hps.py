"""Embedding tables as Merlin's Hierarchical Parameter Server reads them, and where they come from."""

import json
import struct
from pathlib import Path

import numpy
import pytest

from tests.converters.sources import WriteSource
from triton_converters.claim_store import embedding_tables
from triton_converters.contract.conversion_requests import Entrypoint, HpsOptions, ModelCode
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.load.hps import load

COLOURS = embedding_tables.Table(
    "colours", numpy.array([7, 3, 2**40]), numpy.array([[1, 2], [3, 4], [5, 6]], numpy.float32)
)
SHAPES = embedding_tables.Table("shapes", numpy.array([0]), numpy.array([[0.5, -1.5, 2.5]], numpy.float32))
TABLES = """
import numpy
def get_model(rows: int = 3):
    tables = {"colours": (numpy.arange(rows), numpy.ones((rows, 2), numpy.float32))}
    return tables, {"inputs": ["KEYS", "NUMKEYS"], "outputs": ["OUTPUT0"]}
"""


def test_a_table_is_two_files_byte_for_byte(tmp_path: Path) -> None:
    embedding_tables.write_tables([COLOURS, SHAPES], tmp_path)
    assert (tmp_path / "0" / "key").read_bytes() == struct.pack("<3q", 7, 3, 2**40)
    assert (tmp_path / "0" / "emb_vector").read_bytes() == struct.pack("<6f", 1, 2, 3, 4, 5, 6)
    assert (tmp_path / "1" / "key").read_bytes() == struct.pack("<q", 0)
    assert (tmp_path / "1" / "emb_vector").read_bytes() == struct.pack("<3f", 0.5, -1.5, 2.5)
    assert embedding_tables.read_index(tmp_path) == (("colours", 2), ("shapes", 3))


def test_a_table_is_written_in_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding_tables, "CHUNK_ROWS", 2)
    embedding_tables.write_tables([COLOURS], tmp_path)
    assert (tmp_path / "0" / "emb_vector").read_bytes() == COLOURS.vectors.tobytes()


def test_the_parameter_servers_file() -> None:
    version = Path("/repository/revisions/k/models/sparse/1")
    model = embedding_tables.ServedTables(
        "sparse", version, (("colours", 2), ("shapes", 3)), 65536, 4, HpsOptions(10, 26)
    )
    expected = {
        "supportlonglong": True,
        "models": [
            {
                "model": "sparse",
                "sparse_files": [f"{version}/0", f"{version}/1"],
                "num_of_worker_buffer_in_pool": 4,
                "embedding_table_names": ["colours", "shapes"],
                "embedding_vecsize_per_table": [2, 3],
                "maxnum_catfeature_query_per_table_per_sample": [26, 26],
                "default_value_for_each_table": [1.0, 1.0],
                "deployed_device_list": [0, 1],
                "max_batch_size": 65536,
                "cache_refresh_percentage_per_iteration": 0.0,
                "hit_rate_threshold": 1.0,
                "gpucacheper": 0.1,
                "gpucache": True,
            }
        ],
    }
    assert json.loads(embedding_tables.parameter_server([model], gpu_count=2)) == expected
    on_cpu = json.loads(embedding_tables.parameter_server([model], gpu_count=0))["models"][0]
    assert (on_cpu["gpucache"], on_cpu["deployed_device_list"]) == (False, [0])


def test_vectors_come_in_the_keys_order_and_missing_keys_have_the_default() -> None:
    inputs = {"KEYS": numpy.array([[2**40, 9, 7, 0]]), "NUMKEYS": numpy.array([[3, 1]], numpy.int32)}
    found = embedding_tables.lookup([COLOURS, SHAPES], inputs)
    assert found.dtype == numpy.float32
    assert found.tolist() == [5, 6, 1, 1, 1, 2, 0.5, -1.5, 2.5]


@pytest.mark.parametrize(
    ("counts", "words"),
    [([[4]], r"\[1, 1\], not \[1, 2\]"), ([[3, 2]], "asks for"), ([[-1, 5]], "asks for"), ([4, 0], r"\[2\], not")],
)
def test_counts_that_do_not_fit_the_keys(counts: list[object], words: str) -> None:
    inputs = {"KEYS": numpy.zeros((1, 4), numpy.int64), "NUMKEYS": numpy.array(counts, numpy.int32)}
    with pytest.raises(ValueError, match=words):
        embedding_tables.lookup([COLOURS, SHAPES], inputs)


def test_get_model_returns_tables(write_source: WriteSource) -> None:
    source = write_source({"sparse.py": TABLES})
    model = load(source, ModelCode("hps", Entrypoint("sparse.py", {"rows": "5"}), 64), "hps")
    assert (model.inputs, model.outputs) == (("KEYS", "NUMKEYS"), ("OUTPUT0",))
    assert [(table.name, len(table.keys), table.width) for table in model.tables] == [("colours", 5, 2)]
    with pytest.raises(StageError) as error:
        model({"KEYS": numpy.zeros((1, 4), numpy.int64), "NUMKEYS": numpy.array([[5]], numpy.int32)})
    assert error.value.reason is Reason.FRAMEWORK_FAILED


@pytest.mark.parametrize(
    ("old", "new", "reason", "words"),
    [
        ('["KEYS", "NUMKEYS"]', '["KEYS"]', Reason.ENTRYPOINT_INVALID, "the hps backend's names are"),
        ("return tables,", "return", Reason.ENTRYPOINT_INVALID, "must return (tables, names), not dict"),
        ("return tables,", "return {},", Reason.ENTRYPOINT_INVALID, "{table's name: (keys, vectors)}"),
        ("numpy.arange(rows),", "numpy.zeros(rows, int),", Reason.ENTRYPOINT_INVALID, "has the same key twice"),
        ("numpy.arange(rows),", "numpy.ones(rows),", Reason.ENTRYPOINT_INVALID, "float64[3], not integers"),
        ("numpy.arange(rows),", "numpy.arange(2),", Reason.ENTRYPOINT_INVALID, "not float32 [2, width]"),
        ("numpy.float32", "numpy.float64", Reason.ENTRYPOINT_INVALID, "float64[3, 2], not float32"),
        ("numpy.ones(", "numpy.inf * numpy.ones(", Reason.CHECKPOINT_INVALID, "NaN or infinity"),
    ],
)
def test_what_is_no_table(write_source: WriteSource, old: str, new: str, reason: Reason, words: str) -> None:
    source = write_source({"sparse.py": TABLES.replace(old, new)})
    with pytest.raises(StageError) as error:
        load(source, ModelCode("hps", Entrypoint("sparse.py", {}), 64), "hps")
    assert error.value.reason is reason
    assert words in error.value.message
    assert "sparse.py" in error.value.message
