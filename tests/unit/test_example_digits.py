import ast
import importlib.util
import io
import json
import math
import re
import struct
import sys
import zlib
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from PIL import Image

ROOT = Path(__file__).resolve().parents[2]
DIGITS = ROOT / "manifests/examples/digits"
PNG = ROOT / "manifests/examples/digits-png"


def user_file(name: str, folder: Path = DIGITS) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"digits_{name}", folder / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_dataloader_yields_every_held_out_picture_once_in_order(tmp_path: Path) -> None:
    pictures = np.random.default_rng(0).random((70, 1, 8, 8), dtype=np.float32)
    digits = np.arange(70, dtype=np.int64) % 10
    np.savez(tmp_path / "held-out.npz", pictures=pictures, digits=digits)

    batches = list(user_file("dataloader").get_dataloader_fn(data_dir=str(tmp_path), batch_size=32)())

    assert [len(ids) for ids, _, _ in batches] == [32, 32, 6]
    assert [number for ids, _, _ in batches for number in ids] == [str(number) for number in range(70)]
    np.testing.assert_array_equal(np.concatenate([x["INPUT__0"] for _, x, _ in batches]), pictures)
    np.testing.assert_array_equal(np.concatenate([y["OUTPUT__0"] for _, _, y in batches]), digits)


def test_accuracy_is_the_fraction_of_pictures_read_right() -> None:
    logits = np.eye(10, dtype=np.float32)[[3, 1, 4, 1]]
    digits = np.array([3, 1, 4, 5], dtype=np.int64)
    calculator = user_file("metrics").MetricsCalculator(output_used_for_metrics="OUTPUT__0")

    metrics = calculator.calc(ids=list("abcd"), y_pred={"OUTPUT__0": logits}, x={}, y_real={"OUTPUT__0": digits})

    assert metrics == {"accuracy": 0.75}


def test_the_request_is_one_picture_of_the_served_shape() -> None:
    (tensor,) = json.loads((DIGITS / "request.json").read_text(encoding="utf-8"))["inputs"]
    assert (tensor["name"], tensor["datatype"], tensor["shape"]) == ("INPUT__0", "FP32", [1, 1, 8, 8])
    assert len(tensor["data"]) == math.prod(tensor["shape"])
    assert {value * 16 for value in tensor["data"]} <= set(range(17))


def test_the_trainers_image_shares_its_large_layer_with_the_converters() -> None:
    def first_layers(name: str) -> list[str]:
        text = (ROOT / "images" / name / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
        return [re.sub(r"\s+", " ", line) for line in text.splitlines() if line.startswith("RUN")][:2]

    assert first_layers("digits-trainer") == first_layers("converter")


@pytest.fixture
def decode(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The step, next to a module that only a server has."""
    monkeypatch.setitem(sys.modules, "triton_python_backend_utils", ModuleType("triton_python_backend_utils"))
    return user_file("decode", PNG / "decode")


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The dataloader of files, next to that of pictures."""
    monkeypatch.setitem(sys.modules, "dataloader", user_file("dataloader"))
    return user_file("files", PNG)


def test_the_file_is_the_picture_of_the_request(decode: ModuleType) -> None:
    (tensor,) = json.loads((DIGITS / "request.json").read_text(encoding="utf-8"))["inputs"]
    picture = decode.decoded((PNG / "7.png").read_bytes())
    assert (picture.shape, picture.dtype) == ((1, 8, 8), np.float32)
    assert np.abs(picture - np.reshape(tensor["data"], (1, 8, 8))).max() < 1 / 255


def test_the_files_are_the_held_out_pictures_with_text_for_labels(
    tmp_path: Path, files: ModuleType, decode: ModuleType
) -> None:
    pictures = np.random.default_rng(0).random((5, 1, 8, 8), dtype=np.float32)
    np.savez(tmp_path / "held-out.npz", pictures=pictures, digits=np.array([3, 1, 4, 1, 5]))
    first, second = files.get_dataloader_fn(data_dir=str(tmp_path), batch_size=3)()
    assert (first[0], second[0]) == (["0", "1", "2"], ["3", "4"])
    assert first[2]["LABEL"].tolist() == ["3", "1", "4"]
    assert first[1]["FILE"].shape == (3, 1)
    read = np.stack([decode.decoded(file) for (file,) in first[1]["FILE"]])
    assert np.abs(read - pictures[:3]).max() <= 0.5 / 255 + 1e-6
    right = user_file("label_metrics", PNG).MetricsCalculator()
    answers = {"LABEL": np.array([["3"], ["1"], ["8"]])}
    assert right.calc(ids=[], y_pred=answers, x={}, y_real=first[2]) == {"accuracy": pytest.approx(2 / 3)}


@pytest.mark.parametrize("mode", ["L", "RGB"])
@pytest.mark.parametrize("kind", range(5))
def test_the_step_reads_each_filter_as_other_programs_do(decode: ModuleType, mode: str, kind: int) -> None:
    channels = len(Image.new(mode, (1, 1)).getbands())
    rows = np.random.default_rng(kind).integers(0, 256, (16, 24 * channels), dtype=np.uint8)
    filtered = zlib.compress(b"".join(bytes([kind]) + row.tobytes() for row in rows))
    file = png(struct.pack(">2I5B", 24, 16, 8, 0 if mode == "L" else 2, 0, 0, 0), filtered)
    with Image.open(io.BytesIO(file)) as opened:
        pixels = np.asarray(opened, float).reshape(16, 24, channels)
    assert (
        np.abs(decode.decoded(file)[0] * 255 - pixels.mean(axis=2).reshape(8, 2, 8, 3).mean(axis=(1, 3))).max() < 1e-3
    )


def png(header: bytes, data: bytes) -> bytes:
    """A PNG file of two parts and its end."""
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
        for name, content in ((b"IHDR", header), (b"IDAT", data), (b"IEND", b""))
    )


GREY = struct.pack(">2I5B", 8, 8, 8, 0, 0, 0, 0)
ROWS = zlib.compress(bytes(8 * 9))


@pytest.mark.parametrize(
    "file",
    [
        b"",
        b"a picture",
        png(GREY, ROWS)[:30],
        png(GREY, ROWS[:-8]),
        png(GREY, zlib.compress(bytes(8 * 9 - 1))),
        png(GREY, b"no stream"),
        png(GREY, zlib.compress(b"\x05" * (8 * 9))),
        png(GREY[:-1] + b"\x01", ROWS),
        png(struct.pack(">2I5B", 8, 8, 16, 0, 0, 0, 0), ROWS),
        png(struct.pack(">2I5B", 8, 8, 8, 3, 0, 0, 0), ROWS),
        png(struct.pack(">2I5B", 9, 8, 8, 0, 0, 0, 0), ROWS),
        png(struct.pack(">2I5B", 0, 8, 8, 0, 0, 0, 0), ROWS),
        png(struct.pack(">2I5B", 2**30, 2**30, 8, 0, 0, 0, 0), ROWS),
    ],
)
def test_a_file_that_is_no_such_picture_fails_its_own_request(decode: ModuleType, file: bytes) -> None:
    with pytest.raises((ValueError, struct.error, zlib.error)):
        decode.decoded(file)


def test_the_trainer_publishes_what_lies_next_to_it_with_the_steps_folders(tmp_path: Path) -> None:
    # As a ConfigMap's volume has them: each name is a link into a folder that begins with a dot.
    (tmp_path / "..data" / "decode").mkdir(parents=True)
    for name in ("train.py", "model.py", "decode/decode.py"):
        (tmp_path / "..data" / name).write_text("", encoding="utf-8")
    for name in ("train.py", "model.py", "decode"):
        (tmp_path / name).symlink_to(f"..data/{name}")
    tree = ast.parse((DIGITS / "train.py").read_text(encoding="utf-8"))
    (function,) = [each for each in tree.body if isinstance(each, ast.FunctionDef) and each.name == "user_files"]
    found: dict[str, Any] = {"Path": Path, "HERE": tmp_path, "__file__": str(tmp_path / "train.py")}
    exec(compile(ast.Module([function], []), "train.py", "exec"), found)  # noqa: S102 - importing it needs torch
    assert found["user_files"]() == [Path("decode/decode.py"), Path("model.py")]
