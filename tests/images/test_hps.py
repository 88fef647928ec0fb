"""The backend `hps`: tables as the converters write them, looked up by a real server, alone and inside an ensemble."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
import tritonclient.grpc as triton
from onnx import TensorProto, helper
from tritonclient.utils import InferenceServerException

from tests.images.server import Server, wait_ready
from triton_converters.claim_store import embedding_tables
from triton_converters.contract.conversion_requests import (
    EnsembleCode,
    Entrypoint,
    HpsOptions,
    ModelCode,
    ModelConfig,
    Step,
)
from triton_converters.contract.results import Signature, Tensor
from triton_converters.model_config import ensemble
from triton_converters.model_config.model import Execution, render, warmup_file

MOUNT = Path("/models")
"""Where the server sees the repository."""
CONFIG = ModelConfig(1, "KIND_AUTO", False, (), 0, cuda_graphs=False, warmup=True, parameters={})
TABLES = (
    embedding_tables.Table("first", np.array([30, 10, 20]), np.array([[3, 3.5], [1, 1.5], [2, 2.5]], np.float32)),
    embedding_tables.Table("second", np.array([5, 2**40]), np.array([[5, 5.25, 5.5], [6, 6.25, 6.5]], np.float32)),
)
KEYS, COUNTS = np.array([[10, 20, 30, 10, 2**40, 5]]), np.array([[4, 2]], np.int32)
"""Two samples: two keys in the first table and one in the second."""
VECTORS = [1, 1.5, 2, 2.5, 3, 3.5, 1, 1.5, 6, 6.25, 6.5, 5, 5.25, 5.5]


def dense() -> onnx.ModelProto:
    """Twice every element, (n,) to (n,)."""
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n"]) for name in ("vectors", "doubled")]
    node = helper.make_node("Add", ["vectors", "vectors"], ["doubled"])
    graph = helper.make_graph([node], "dense", values[:1], values[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def write_repository(root: Path) -> None:
    """Models `sparse`, `dense` and the ensemble `both`, and ps.json beside them."""
    sparse, version = root / "sparse", root / "sparse" / "1"
    version.mkdir(parents=True)
    embedding_tables.write_tables(TABLES, version)
    signature = embedding_tables.signature(64)
    shapes = {"KEYS": (6,), "NUMKEYS": (2,)}
    (sparse / "config.pbtxt").write_text(render(signature, CONFIG, Execution("hps", "none", 0, ""), shapes))
    (sparse / "warmup").mkdir()
    KEYS.tofile(sparse / "warmup" / warmup_file("KEYS"))
    COUNTS.tofile(sparse / "warmup" / warmup_file("NUMKEYS"))
    served = embedding_tables.ServedTables(
        "sparse", MOUNT / "sparse" / "1", embedding_tables.read_index(version), 64, 1, HpsOptions(10, 2)
    )
    (root / "ps.json").write_text(embedding_tables.parameter_server([served], gpu_count=0))

    (root / "dense" / "1").mkdir(parents=True)
    onnx.save(dense(), root / "dense" / "1" / "model.onnx")
    flat = Signature((Tensor("vectors", "FP32", (-1,)),), (Tensor("doubled", "FP32", (-1,)),), 0)
    execution = Execution("onnx", "none", 0, "")
    (root / "dense" / "config.pbtxt").write_text(render(flat, CONFIG, execution, {}))

    (root / "both" / "1").mkdir(parents=True)
    steps = (
        Step("sparse", {"KEYS": "A", "NUMKEYS": "N"}, {"OUTPUT0": "V"}, ModelCode("hps", Entrypoint("", {}), 64)),
        Step("dense", {"vectors": "V"}, {"doubled": "Y"}, ModelCode("onnx", Entrypoint("", {}), 0)),
    )
    code = EnsembleCode(
        (Tensor("A", "INT64", (1, -1)), Tensor("N", "INT32", (1, 2))), (Tensor("Y", "FP32", (-1,)),), steps
    )
    (root / "both" / "config.pbtxt").write_text(ensemble.render_ensemble(code, 0))


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("hps")
    write_repository(root)
    for path in (root, *root.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return root


@pytest.fixture(scope="module")
def server(repository: Path, start: Callable[..., Server]) -> Server:
    return wait_ready(start(repository, "--model-control-mode=none", "--backend-config=hps,ps=/models/ps.json"))


def ask(server: Server, model: str, output: str, **arrays: np.ndarray) -> np.ndarray:
    inputs = []
    for name, array in arrays.items():
        tensor = triton.InferInput(name, list(array.shape), "INT64" if array.dtype == np.int64 else "INT32")
        tensor.set_data_from_numpy(array)
        inputs.append(tensor)
    answer = server.client().infer(model, inputs).as_numpy(output)
    assert answer is not None
    return answer


@pytest.mark.images
def test_vectors_in_one_row_in_the_keys_order(server: Server) -> None:
    found = ask(server, "sparse", "OUTPUT0", KEYS=KEYS, NUMKEYS=COUNTS)
    assert found.shape == (14,), "no batch dimension, as NVIDIA's backend answers"
    assert found.tolist() == VECTORS


@pytest.mark.images
def test_an_ensemble_hands_the_vectors_on(server: Server) -> None:
    for keys in (KEYS, KEYS[:, ::-1][:, [2, 3, 4, 5, 0, 1]]):
        expected = embedding_tables.lookup(TABLES, {"KEYS": keys, "NUMKEYS": COUNTS})
        np.testing.assert_array_equal(ask(server, "both", "Y", A=np.ascontiguousarray(keys), N=COUNTS), 2 * expected)


@pytest.mark.images
def test_a_missing_key_has_the_default(server: Server) -> None:
    found = ask(server, "sparse", "OUTPUT0", KEYS=np.array([[11, 5]]), NUMKEYS=np.array([[1, 1]], np.int32))
    assert found.tolist() == [1, 1, 5, 5.25, 5.5]


@pytest.mark.images
def test_every_model_is_warmed_up(server: Server) -> None:
    assert sum(server.runtime_calls("sparse").values()) >= 1


@pytest.mark.images
@pytest.mark.parametrize(
    ("count", "numbers", "words"),
    [
        (3, [[1, 1]], r"NUMKEYS asks for \[1, 1\] keys, KEYS holds 3"),
        (2, [[2]], r"NUMKEYS has shape \[1, 1\], not \[1, 2\]: the number of tables"),
        (300, [[300, 0]], "number of Input samples greater than max batch size: 300 keys, at most 64 samples of 4"),
    ],
)
def test_a_request_that_does_not_fit_is_refused(
    server: Server, count: int, numbers: list[list[int]], words: str
) -> None:
    with pytest.raises(InferenceServerException, match=words):
        ask(server, "sparse", "OUTPUT0", KEYS=np.zeros((1, count), np.int64), NUMKEYS=np.array(numbers, np.int32))
    assert ask(server, "sparse", "OUTPUT0", KEYS=KEYS, NUMKEYS=COUNTS).tolist() == VECTORS


@pytest.mark.images
def test_without_the_parameter_servers_file_the_server_does_not_start(
    repository: Path, start: Callable[..., Server]
) -> None:
    server = start(repository, "--model-control-mode=none")
    assert server.process.wait(300) == 1
    assert "the server has no --backend-config=hps,ps=FILE" in server.log()


class TestFiles:
    """The backend's own reading, without a server."""

    def test_tables_are_read_back(self, tmp_path: Path) -> None:
        from triton_cpu.parameter_server import read_parameters, read_tables

        write_repository(tmp_path)
        text = (tmp_path / "ps.json").read_text().replace(str(MOUNT), str(tmp_path))
        (tmp_path / "ps.json").write_text(text)
        tables = read_tables(read_parameters(tmp_path / "ps.json", "sparse"))
        assert tables[0].keys.tolist() == [10, 20, 30]
        assert tables[1].lookup(np.array([2**40, 7])).tolist() == [[6, 6.25, 6.5], [1, 1, 1]]

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ({"supportlonglong": False}, "supportlonglong is not true"),
            ({"models": []}, "configuration of model sparse has been added"),
        ],
    )
    def test_what_is_no_configuration(self, tmp_path: Path, change: dict[str, object], words: str) -> None:
        from triton_cpu.config import ModelError
        from triton_cpu.parameter_server import read_parameters

        write_repository(tmp_path)
        file = tmp_path / "ps.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | change))
        with pytest.raises(ModelError, match=words):
            read_parameters(file, "sparse")

    def test_a_cut_file_is_named(self, tmp_path: Path) -> None:
        from triton_cpu.config import ModelError
        from triton_cpu.parameter_server import read_table

        write_repository(tmp_path)
        folder = tmp_path / "sparse" / "1" / "0"
        with pytest.raises(ModelError, match="3 keys in `key` and 6 elements in `emb_vector`: not vectors of 5"):
            read_table(folder, 5, 1.0)
        (folder / "key").write_bytes(b"12345")
        with pytest.raises(ModelError, match="5 bytes are not a whole number of int64"):
            read_table(folder, 2, 1.0)
        (folder / "key").unlink()
        with pytest.raises(ModelError, match=r"failed to open .*key: No such file"):
            read_table(folder, 2, 1.0)

    def test_the_servers_argv_is_understood(self) -> None:
        from triton_cpu.command_line import backend_setting, setting

        for arguments in (
            ["tritonserver", "--backend-config=hps,ps=/a/ps.json", "--backend-config=python,x=1"],
            ["tritonserver", "--backend-config", "hps,ps=/a/ps.json"],
        ):
            assert setting(arguments, "hps", "ps") == "/a/ps.json"
        assert setting(["tritonserver", "--backend-config=hps,other=1"], "hps", "ps") is None
        assert backend_setting("hps", "never-set") is None, sys.argv
