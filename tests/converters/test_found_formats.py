"""What a model's file is, by its content: small real files, cut ones, and any bytes."""

import io
import pickle
import struct
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto

from tests.converters.onnx_models import Graph, transformer
from tests.converters.pushed import LIGHTGBM, SKOPS, XGBOOST
from triton_converters.contract import layout
from triton_converters.contract.conversion_requests import SourceRequest
from triton_converters.contract.failure import StageError
from triton_converters.contract.formats import SOURCE_FORMATS
from triton_converters.contract.reasons import Reason
from triton_converters.found.content import LONGEST_DIRECTORY, Content
from triton_converters.found.kinds import FileKind, kind_of
from triton_converters.stages import source


def archive(*names: str) -> bytes:
    """A zip archive of empty files."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as file:
        for name in names:
            file.writestr(name, b"")
    return made.getvalue()


SMALL = Graph().model({"x": (TensorProto.FLOAT, ["n"])}, {"y": ("x", TensorProto.FLOAT, ["n"])}).SerializeToString()
FILES: dict[str, tuple[bytes, FileKind | None]] = {
    "small ONNX": (SMALL, FileKind.ONNX),
    "ONNX": (transformer().SerializeToString(), FileKind.ONNX),
    "TorchScript": (archive("net/data.pkl", "net/constants.pkl", "net/code/__torch__/net.py"), FileKind.TORCHSCRIPT),
    "state_dict": (archive("best/data.pkl", "best/version", "best/data/0"), FileKind.STATE_DICT),
    "old state_dict": (pickle.dumps(0x1950A86A20F9469CFC6C, protocol=2), FileKind.STATE_DICT),
    "safetensors": ((2).to_bytes(8, "little") + b"{}", FileKind.SAFETENSORS),
    "torch.export": (archive("m/archive_format", "m/models/model.json", "m/data/weights/0"), FileKind.EXPORTED_PROGRAM),
    "Keras 3": (archive("metadata.json", "config.json", "model.weights.h5"), FileKind.KERAS),
    "HDF5": (b"\x89HDF\r\n\x1a\n" + bytes(64), FileKind.KERAS),
    "engine": (b"ptrt" + bytes(64), FileKind.TENSORRT),
    "TensorFlow Lite": (b"\x1c\x00\x00\x00TFL3" + bytes(64), FileKind.TFLITE),
    "empty": (b"", FileKind.EMPTY),
    "text": (b"Read me.\n", None),
    "XGBoost": (XGBOOST, FileKind.XGBOOST),
    "skops": (SKOPS, FileKind.SKOPS),
    "LightGBM": (LIGHTGBM, FileKind.LIGHTGBM),
    "another archive": (archive("a.txt"), FileKind.ARCHIVE),
    "a broken archive": (b"PK\x03\x04" + bytes(64), FileKind.CUT_ARCHIVE),
    "a cut graph": (SMALL[:-3], FileKind.CUT_ONNX),
    "no graph": (onnx.ModelProto(ir_version=8, producer_name="x").SerializeToString(), None),
    "a pointer of Git LFS": (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", FileKind.LFS),
}


def test_every_format_that_a_file_shows_is_among_these_files_or_a_directory() -> None:
    files = {source.kind for source in SOURCE_FORMATS.values() if source.kind and not source.marker}
    assert files <= {kind.words for _, kind in FILES.values() if kind}


def test_a_kind_is_either_a_format_or_weights_or_has_advice() -> None:
    """A kind in two of them would be refused as weights, whatever the others say."""
    assert all(sum(map(bool, (kind.format, kind.is_weights, kind.advice))) == 1 for kind in FileKind)


@pytest.mark.parametrize("name", FILES)
def test_the_content_tells_the_kind_whatever_the_name_says(tmp_path: Path, name: str) -> None:
    content, kind = FILES[name]
    for suffix in (".onnx", ".pt", ""):
        file = tmp_path / f"model{suffix}"
        file.write_bytes(content)
        assert kind_of(file) is kind


@given(st.binary(max_size=200))
@settings(max_examples=300)
def test_any_bytes_have_a_kind_or_none(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    file = tmp_path_factory.getbasetemp() / "any"
    for prefix in (b"", b"PK\x03\x04", SMALL, b"\x08"):
        file.write_bytes(prefix + content)
        assert kind_of(file) in {None, *FileKind}


def a_zip_of_names(path: Path, number: int) -> None:
    """A zip that is nothing but its list of names."""
    entry = struct.pack("<IHHHHHHIIIHHHHHII", 0x02014B50, 20, 20, 0, 0, 0, 0x21, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0) + b"a"
    with path.open("wb") as file:
        file.write(b"PK\x03\x04" + bytes(26))
        start = file.tell()
        file.write(entry * number)
        size, end = file.tell() - start, file.tell()
        file.write(struct.pack("<IQHHIIQQQQ", 0x06064B50, 44, 45, 45, 0, 0, number, number, size, start))
        file.write(struct.pack("<IIQI", 0x07064B50, 0, end, 1))
        file.write(struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0))


def test_a_zip_of_too_many_names_is_not_read(tmp_path: Path) -> None:
    """Each takes ten times its bytes."""
    a_zip_of_names(tmp_path / "few.pt", 1000)
    assert Content(tmp_path / "few.pt").names == {"a", ""}
    a_zip_of_names(tmp_path / "many.pt", LONGEST_DIRECTORY // 47 + 1)
    tracemalloc.start()
    try:
        assert Content(tmp_path / "many.pt").names == frozenset()
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()
    assert kind_of(tmp_path / "many.pt") is FileKind.ARCHIVE


def test_a_directory_is_a_savedmodel_by_the_message_in_it(tmp_path: Path) -> None:
    assert kind_of(tmp_path) is None
    file = tmp_path / "saved_model.pb"
    file.write_bytes(b"")
    assert kind_of(tmp_path) is None
    # saved_model_schema_version: 1, and one empty meta_graphs.
    file.write_bytes(b"\x08\x01\x12\x00")
    assert kind_of(tmp_path) is FileKind.SAVED_MODEL


@pytest.fixture
def published(mount: Path) -> Callable[..., source.SourceResult]:
    """Publishes files and looks for the formats of some."""

    def run(files: dict[str, bytes], *models: str) -> source.SourceResult:
        layout.SOURCE_MOUNT.mkdir(exist_ok=True)
        for name, content in files.items():
            place = layout.SOURCE_MOUNT / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
        return source.run(SourceRequest("0" * 16, "pvc://models", "", "", models))

    return run


def test_the_source_says_the_formats_in_the_request_s_order(published: Callable[..., source.SourceResult]) -> None:
    files = {
        "a.pt": FILES["TorchScript"][0],
        "b/saved_model.pb": b"\x08\x01\x12\x00",
        "c.bin": SMALL,
        "model.py": b"",
    }
    assert published(files, "c.bin", "b", "a.pt").formats == ("onnx", "tf-savedmodel", "ts-script")
    assert published(files).formats == ()


def test_a_savedmodel_may_hold_any_asset(published: Callable[..., source.SourceResult]) -> None:
    files = {"b/saved_model.pb": b"\x08\x01\x12\x00", "b/assets/config.pbtxt": b"", "b/1/a": b""}
    assert published(files, "b").formats == ("tf-savedmodel",)


@pytest.mark.parametrize(
    ("content", "reason", "words"),
    [
        (
            "state_dict",
            Reason.FORMAT_NOT_FOUND,
            ["format: pyt, entrypoint: model.py", "torch.load(checkpoint)"],
        ),
        ("safetensors", Reason.FORMAT_NOT_FOUND, ["a safetensors file", "def get_model(checkpoint: str)"]),
        ("engine", Reason.FORMAT_NOT_FOUND, ["m.bin is a TensorRT engine", "give the ONNX file"]),
        ("Keras 3", Reason.FORMAT_NOT_FOUND, ["a Keras file", "get_model, format tf-keras"]),
        ("TensorFlow Lite", Reason.FORMAT_NOT_FOUND, ["give the SavedModel"]),
        ("torch.export", Reason.FORMAT_NOT_FOUND, ["torch.onnx.export"]),
        ("text", Reason.FORMAT_NOT_FOUND, ["m.bin is no model that can be recognized", "set spec.models[].format"]),
    ],
)
def test_what_cannot_be_served_says_what_to_give_instead(
    published: Callable[..., source.SourceResult], content: str, reason: Reason, words: list[str]
) -> None:
    with pytest.raises(StageError) as caught:
        published({"m.bin": FILES[content][0]}, "m.bin")
    assert caught.value.reason is reason
    for each in words:
        assert each in caught.value.message


@pytest.mark.parametrize("path", ["absent.onnx", "../../other"])
def test_a_path_that_is_not_in_the_source_is_missing(published: Callable[..., source.SourceResult], path: str) -> None:
    with pytest.raises(StageError) as caught:
        published({"model.onnx": SMALL}, path)
    assert caught.value.reason is Reason.ENTRYPOINT_INVALID
    assert "it has: 'model.onnx'" in caught.value.message
