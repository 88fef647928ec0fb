"""What user code may leave in place of a model's files, and what of it gets onto the claim."""

import json
import os
import shutil
import socket
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy
import onnx
import pytest
from onnx import TensorProto, helper

from triton_converters.claim_store import embedding_tables, inspection
from triton_converters.claim_store.embedding_tables import Table
from triton_converters.contract.failure import StageError
from triton_converters.contract.formats import FORMATS
from triton_converters.contract.reasons import Reason
from triton_converters.incoming import files, model_files

SECRET = b"of another user"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The folder that user code filled."""
    folder = tmp_path / "incoming"
    folder.mkdir()
    return folder


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """Where it is published."""
    folder = tmp_path / "published"
    folder.mkdir()
    return folder


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A file that user code cannot read, but the publisher can."""
    path = tmp_path / "secret"
    path.write_bytes(SECRET)
    return path


def published(target: Path) -> set[str]:
    return {str(path.relative_to(target)) for path in target.rglob("*") if not path.is_dir()}


def refusal(call: Callable[[], object], reason: Reason = Reason.CRASHED) -> str:
    with pytest.raises(StageError) as caught:
        call()
    assert caught.value.reason is reason, caught.value.message
    assert caught.value.final == (reason is not Reason.STORAGE_FULL)
    return caught.value.message


def leave_socket(path: Path) -> None:
    # The name of a socket is short, but a test's path is long.
    os.chdir(path.parent)
    socket.socket(socket.AF_UNIX).bind(path.name)


INSTEAD: dict[str, Callable[[Path, Path], object]] = {
    "a link": lambda path, secret: path.symlink_to(secret),
    "a link to a device": lambda path, secret: path.symlink_to("/dev/zero"),
    "a hard link": lambda path, secret: os.link(secret, path),
    "a pipe": lambda path, secret: os.mkfifo(path),
    "a socket": lambda path, secret: leave_socket(path),
    "a directory": lambda path, secret: path.mkdir(),
    "nothing": lambda path, secret: None,
}


@pytest.mark.parametrize("format_name", ["ts-trace", "trt", "onnx", "tf-savedmodel", "hps"])
@pytest.mark.parametrize("instead", INSTEAD)
def test_what_is_no_file_of_its_own_is_refused(
    root: Path, target: Path, secret: Path, instead: str, format_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(root)
    name = {"tf-savedmodel": "model.savedmodel/saved_model.pb"}.get(format_name, FORMATS[format_name].file)
    (root / name).parent.mkdir(exist_ok=True)
    INSTEAD[instead](root / name, secret)
    words = refusal(lambda: model_files.take(root, format_name, target))
    assert Path(name).name in words
    assert "is not published" in words
    assert published(target) == set()


@pytest.mark.parametrize("folder", ["model.savedmodel", "model.savedmodel/variables", "model.savedmodel/assets"])
def test_a_folder_that_is_a_link_is_not_followed(root: Path, target: Path, tmp_path: Path, folder: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    saved_model(elsewhere)
    place = root / folder
    place.parent.mkdir(parents=True, exist_ok=True)
    if folder != "model.savedmodel":
        (root / "model.savedmodel/saved_model.pb").write_bytes(b"graph")
    place.symlink_to(elsewhere / folder)
    assert folder in refusal(lambda: model_files.take(root, "tf-savedmodel", target))
    assert published(target) == set()


@pytest.mark.parametrize("deeper", [0, 1])
def test_the_folder_of_the_conversion_itself_is_no_link(root: Path, target: Path, secret: Path, deeper: int) -> None:
    elsewhere = secret.parent / "elsewhere"
    elsewhere.mkdir()
    shutil.copyfile(secret, elsewhere / "model.pt")
    (root / "key").symlink_to(elsewhere)
    refusal(
        lambda: (
            files.copy(root, ["key/model.pt"], target) if deeper else model_files.take(root / "key", "ts-trace", target)
        )
    )
    assert published(target) == set()


def test_a_sparse_file_that_is_longer_than_the_claim_is_refused_before_it_is_copied(root: Path, target: Path) -> None:
    with (root / "model.plan").open("wb") as file:
        file.truncate(2 * shutil.disk_usage(root).free)
    words = refusal(lambda: model_files.take(root, "trt", target), Reason.STORAGE_FULL)
    assert "the repository claim has only" in words
    assert published(target) == set()


def test_files_that_fit_alone_but_not_together_are_refused(
    root: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved_model(root)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=20))
    refusal(lambda: model_files.take(root, "tf-savedmodel", target), Reason.STORAGE_FULL)
    assert published(target) == set()


FOREIGN = (
    "config.pbtxt",
    "libtriton_onnxruntime.so",
    "batchstrategy.so",
    "triton_python_backend_stub",
    "model.py",
    "model.onnx.data",
    "result.json",
    "1/model.onnx",
    "..data",
)


@pytest.mark.parametrize("format_name", ["ts-script", "trt", "onnx", "tf-savedmodel", "tf-trt", "hps"])
def test_nothing_beside_the_model_is_copied(root: Path, target: Path, format_name: str) -> None:
    expected = MODELS[FORMATS[format_name].file](root)
    for folder in (root, *(path for path in root.rglob("*") if path.is_dir() and path.name != "assets")):
        for name in FOREIGN:
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_bytes(b"foreign")
    model_files.take(root, format_name, target)
    assert published(target) == expected


def one_file(name: str) -> Callable[[Path], set[str]]:
    def write(root: Path) -> set[str]:
        (root / name).write_bytes(b"weights")
        return {name}

    return write


def saved_model(root: Path) -> set[str]:
    names = {
        "saved_model.pb",
        "fingerprint.pb",
        "keras_metadata.pb",
        "variables/variables.index",
        "variables/variables.data-00000-of-00002",
        "variables/variables.data-00001-of-00002",
        "assets/vocabulary.txt",
        "assets/trt-serialized-engine.TRTEngineOp_000_000",
    }
    for name in names:
        path = root / "model.savedmodel" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"content")
    return {f"model.savedmodel/{name}" for name in names}


def onnx_graph(root: Path) -> set[str]:
    onnx.save(graph(), str(root / "model.onnx"))
    return {"model.onnx"}


def tables(root: Path) -> set[str]:
    vectors = numpy.ones((3, 2), numpy.float32)
    embedding_tables.write_tables([Table("all", numpy.arange(3), vectors)], root)
    return {"tables.json", "0/key", "0/emb_vector"}


MODELS: dict[str, Callable[[Path], set[str]]] = {
    "model.pt": one_file("model.pt"),
    "model.plan": one_file("model.plan"),
    "model.onnx": onnx_graph,
    "model.savedmodel": saved_model,
    "tables.json": tables,
}


@pytest.mark.parametrize("name", ["custom_op.so", "libx.so.1", ".hidden", "a b", "\x1b[2J", "folder"])
def test_an_asset_is_a_plain_file_and_no_library(root: Path, target: Path, name: str) -> None:
    saved_model(root)
    path = root / "model.savedmodel/assets" / name
    path.mkdir() if name == "folder" else path.write_bytes(b"")
    refusal(lambda: model_files.take(root, "tf-savedmodel", target))


def test_a_folder_with_very_many_files_is_refused(root: Path, target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_files, "ASSETS", 10)
    saved_model(root)
    for number in range(11):
        (root / f"model.savedmodel/assets/{number}").touch()
    assert "more than 10 files" in refusal(lambda: model_files.take(root, "tf-savedmodel", target))


def weights(name: str, location: str | None) -> Any:
    """A tensor whose content is said to lie in a file."""
    tensor = helper.make_tensor(name, TensorProto.FLOAT, [2], [1.0, 2.0])
    if location is not None:
        tensor.ClearField("float_data")
        tensor.data_location = TensorProto.EXTERNAL
        entry = tensor.external_data.add()
        entry.key, entry.value = "location", location
    return tensor


def graph(
    own: str | None = None,
    inner: str | None = None,
    function: str | None = None,
    sparse: str | None = None,
    constant: str | None = None,
    training: str | None = None,
) -> Any:
    """A model with a tensor at every kind of place; its arguments say in which file each one lies."""
    value = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])
    body = helper.make_graph([helper.make_node("Identity", ["w"], ["z"])], "b", [], [result], [weights("w", inner)])
    nodes = [
        helper.make_node("If", ["c"], ["y"], then_branch=body, else_branch=body),
        helper.make_node("Constant", [], ["k"], value=weights("k", constant)),
    ]
    whole = helper.make_graph(nodes, "g", [value], [result], [weights("v", own)])
    values, indices = weights("s", sparse), helper.make_tensor("i", TensorProto.INT64, [2], [0, 1])
    whole.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [2]))
    model = helper.make_model(whole, opset_imports=[helper.make_opsetid("", 17)])
    inside = [helper.make_node("Constant", [], ["q"], value=weights("q", function))]
    model.functions.append(helper.make_function("own", "F", [], ["q"], inside, [helper.make_opsetid("", 17)]))
    more = model.training_info.add()
    more.algorithm.CopyFrom(helper.make_graph([], "t", [], [], [weights("t", training)]))
    return model


@pytest.mark.parametrize("place", ["own", "inner", "function", "sparse", "constant", "training"])
@pytest.mark.parametrize(
    "location", ["../../secret", "/etc/passwd", "secret", "./model.onnx.data", "*/_ORT_MEM_ADDR_/*", "", "model.onnx"]
)
def test_weights_that_lie_elsewhere_are_refused_wherever_they_are(
    root: Path, target: Path, place: str, location: str
) -> None:
    (root / "model.onnx").write_bytes(graph(**{place: location}).SerializeToString())
    (root / "model.onnx.data").write_bytes(bytes(8))
    assert "only model.onnx.data may hold them" in refusal(lambda: model_files.take(root, "onnx", target))
    assert "model.onnx.data" not in published(target)


@pytest.mark.parametrize("place", ["own", "inner", "function", "sparse", "constant"])
def test_large_weights_lie_beside_their_graph(root: Path, target: Path, place: str) -> None:
    (root / "model.onnx").write_bytes(graph(**{place: "model.onnx.data"}).SerializeToString())
    (root / "model.onnx.data").write_bytes(bytes(8))
    model_files.take(root, "onnx", target)
    assert published(target) == {"model.onnx", "model.onnx.data"}


def test_weights_beside_their_graph_are_no_link(root: Path, target: Path, secret: Path) -> None:
    (root / "model.onnx").write_bytes(graph(own="model.onnx.data").SerializeToString())
    (root / "model.onnx.data").symlink_to(secret)
    refusal(lambda: model_files.take(root, "onnx", target))


@pytest.mark.parametrize("content", [b"\x08\x07no model", b"\x3a\xff\xff\xff\xff\x0f", b"\x3a\x00" * 10 + b"\x0b"])
def test_what_is_no_graph_has_a_reason(root: Path, target: Path, content: bytes) -> None:
    (root / "model.onnx").write_bytes(content)
    refusal(lambda: model_files.take(root, "onnx", target), Reason.MODEL_LOAD_FAILED)


@pytest.mark.parametrize(
    "index",
    [
        "[]",
        "{}",
        "3",
        "null",
        "[" * 100_000,
        '[["a"]]',
        '[["a", 2, 3]]',
        '[["a", "2"]]',
        '[["a", true]]',
        '[["a", 0]]',
        '[["a", -2]]',
        '[["a", 2.0]]',
        '[["a", NaN]]',
        '[["a\\u001b[2J", 2]]',
        '[["a", 3]]',
        '[["a", 2], ["b", 2]]',
        json.dumps([["a" * 1000, 2]]),
        " " * 2**21,
    ],
)
def test_an_index_of_tables_that_does_not_fit_the_tables_is_refused(root: Path, target: Path, index: str) -> None:
    tables(root)
    (root / "tables.json").write_text(index)
    refusal(lambda: model_files.take(root, "hps", target))


WRONG_INSPECTIONS = {
    "no types": {"data_types": ["\x1b[2J"]},
    "too many types": {"data_types": ["FP32"] * 1000},
    "a version that is a path": {"tensorrt_version": "../../10"},
    "a version that is text": {"tensorrt_version": "10; rm -rf /"},
    "another product": {"gpu_product": "../other"},
}


@pytest.mark.parametrize("case", WRONG_INSPECTIONS)
def test_an_inspection_says_only_what_a_runtime_says(root: Path, target: Path, case: str) -> None:
    (root / "model.plan").write_bytes(b"plan")
    inspection.write(root, ("FP16",), ("x FLOAT [1]",), "10.13.3.9", "NVIDIA-L4")
    value = json.loads((root / inspection.FILE).read_text()) | WRONG_INSPECTIONS[case]
    (root / inspection.FILE).write_text(json.dumps(value))
    refusal(lambda: model_files.take_inspection(root, "NVIDIA-L4", target))


def test_the_digest_of_an_inspection_is_made_anew(root: Path, target: Path) -> None:
    (root / "model.plan").write_bytes(b"plan")
    inspection.write(root, ("FP16",), ("x\x1b[2J FLOAT",), "10.13.3.9", "NVIDIA-L4")
    (root / "model.plan").write_bytes(b"another")
    model_files.take(root, "trt", target)
    model_files.take_inspection(root, "NVIDIA-L4", target)
    found = inspection.read(target)
    assert (found.data_types, found.tensorrt_version, found.gpu_product) == (("FP16",), "10.13.3.9", "NVIDIA-L4")
    assert found.tensors == ("x [2J FLOAT",)


def test_what_an_onnx_file_repeats_is_walked_one_by_one(tmp_path: Path) -> None:
    """Two bytes of the file are one message, and a list of such messages takes a hundred."""
    tensor = helper.make_tensor("w", TensorProto.FLOAT, [1], [1.0])
    tensor.external_data.add(key="location", value="elsewhere")
    graph = helper.make_graph([], "g", [], [], [tensor])
    path = tmp_path / "model.onnx"
    path.write_bytes(helper.make_model(graph).SerializeToString() + b"\x72\x00" * 100_000)
    tracemalloc.start()
    try:
        assert model_files.data_files(path) == {"elsewhere"}
        assert tracemalloc.get_traced_memory()[1] < 4 * 2**20
    finally:
        tracemalloc.stop()
