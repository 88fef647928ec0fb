"""Revisions: layout, links, warm-up, and what happens when two Jobs write the same one."""

import errno
import os
from dataclasses import replace
from pathlib import Path

import numpy
import pytest

from triton_converters.claim_store.dump import Batch
from triton_converters.claim_store.publish import publish_directory, temporary_directory
from triton_converters.claim_store.repository import (
    Conversion,
    find_conversion,
    publish_revision,
    write_conversion,
)
from triton_converters.claim_store.revision import content_digest, model_file
from triton_converters.contract import layout
from triton_converters.contract.conversion_requests import (
    ConvertRequest,
    Entrypoint,
    ModelCode,
    ModelConfig,
    TensorRtOptions,
)
from triton_converters.contract.envelope import Outcome
from triton_converters.contract.results import ConvertResult, Signature, Tensor

CONFIG = ModelConfig(1, "KIND_AUTO", True, (), 0, False, True, {})
SIGNATURE = Signature((Tensor("x", "FP32", (3,)), Tensor("user/id", "INT64", ())), (Tensor("y", "FP32", (2,)),), 8)
EXAMPLE = Batch(
    numpy.arange(2),
    {"x": numpy.arange(6, dtype=numpy.float32).reshape(2, 3), "user/id": numpy.array([7, 8])},
    {},
    {"y": numpy.zeros((2, 2), numpy.float32)},
)
RESULT = ConvertResult("a" * 64, 4, ("FP32",), 1.5, ("a warning",), "", 1e-6)


def request(key: str = "1" * 16, config: ModelConfig = CONFIG) -> ConvertRequest:
    return ConvertRequest(
        key=key,
        conversion_key="c" * 16,
        source="d" * 64,
        reference="e" * 16,
        model_name="digits",
        model=ModelCode("pyt", Entrypoint("model.py", {}), 8),
        candidate="onnx-fp32",
        format="onnx",
        precision="fp32",
        accelerator="none",
        onnx_opset=17,
        onnx_exporter="TorchScript",
        onnx_optimized=False,
        tensorrt=TensorRtOptions(2**30, 3),
        gpu_product="",
        engine_cache="",
        config=config,
    )


@pytest.fixture
def conversion(mount: Path) -> Conversion:
    """A published candidate of two files."""
    made = Conversion("c" * 16, ("model.onnx", "model.onnx.data"), RESULT)
    target = layout.candidate_directory("c" * 16)
    with temporary_directory(target) as directory:
        (directory / "model.onnx").write_bytes(b"onnx")
        (directory / "model.onnx.data").write_bytes(b"data")
        write_conversion(directory, made)
        publish_directory(directory, target)
    return made


def test_a_revision_has_the_layout_that_triton_reads(conversion: Conversion) -> None:
    result = publish_revision(request(), SIGNATURE, conversion, EXAMPLE)
    revision = layout.revision_directory("1" * 16)
    assert result == replace(RESULT, content=content_digest(revision))
    assert sorted(str(path.relative_to(revision)) for path in revision.rglob("*") if path.is_file()) == [
        "models/digits/1/model.onnx",
        "models/digits/1/model.onnx.data",
        "models/digits/config.pbtxt",
        "models/digits/warmup/user%2Fid",
        "models/digits/warmup/x",
        "result.json",
    ]
    assert model_file("1" * 16, "digits", "onnx").read_bytes() == b"onnx"
    assert Outcome.from_json((revision / "result.json").read_text()) == Outcome("convert", "1" * 16, result)
    assert [path.name for path in revision.parent.iterdir()] == ["1" * 16]


def test_warm_up_files_are_one_raw_sample(conversion: Conversion) -> None:
    publish_revision(request(), SIGNATURE, conversion, EXAMPLE)
    warmup = layout.model_repository("1" * 16) / "digits" / "warmup"
    assert numpy.frombuffer((warmup / "x").read_bytes(), "<f4").tolist() == [0, 1, 2]
    assert numpy.frombuffer((warmup / "user%2Fid").read_bytes(), "<i8").tolist() == [7]


def test_without_warm_up_there_are_no_files(conversion: Conversion) -> None:
    cold = ModelConfig(1, "KIND_AUTO", True, (), 0, False, False, {})
    publish_revision(request(config=cold), SIGNATURE, conversion, EXAMPLE)
    model = layout.model_repository("1" * 16) / "digits"
    assert not (model / "warmup").exists()
    assert "model_warmup" not in (model / "config.pbtxt").read_text()


def test_tensorrt_inside_onnx_runtime_is_always_warmed_up(conversion: Conversion) -> None:
    """It builds its engines in the first requests, which a client would wait for."""
    cold = ModelConfig(1, "KIND_GPU", True, (), 0, False, False, {})
    publish_revision(replace(request(config=cold), accelerator="trt"), SIGNATURE, conversion, EXAMPLE)
    model = layout.model_repository("1" * 16) / "digits"
    assert (model / "warmup").is_dir()
    assert "model_warmup" in (model / "config.pbtxt").read_text()


def test_revisions_of_one_conversion_share_its_file(conversion: Conversion) -> None:
    for key in ("1" * 16, "2" * 16):
        publish_revision(request(key), SIGNATURE, conversion, EXAMPLE)
    inodes = {model_file(key, "digits", "onnx").stat().st_ino for key in ("1" * 16, "2" * 16)}
    assert inodes == {(layout.candidate_directory("c" * 16) / "model.onnx").stat().st_ino}


def test_where_links_fail_the_file_is_copied(conversion: Conversion, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(source: Path, target: Path) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", refuse)
    publish_revision(request(), SIGNATURE, conversion, EXAMPLE)
    file = model_file("1" * 16, "digits", "onnx")
    assert file.read_bytes() == b"onnx"
    assert file.stat().st_ino != (layout.candidate_directory("c" * 16) / "model.onnx").stat().st_ino


def test_a_full_claim_is_not_taken_for_missing_links(conversion: Conversion, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(source: Path, target: Path) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "link", full)
    with pytest.raises(OSError, match="No space left"):
        publish_revision(request(), SIGNATURE, conversion, EXAMPLE)
    assert list((layout.ROOT / "revisions").iterdir()) == []


def test_the_second_publisher_answers_with_the_first_s_result(conversion: Conversion) -> None:
    publish_revision(request(), SIGNATURE, conversion, EXAMPLE)
    slower = Conversion("c" * 16, conversion.files, ConvertResult("a" * 64, 4, ("FP32",), 99.0, (), "", None))
    result = publish_revision(request(), SIGNATURE, slower, EXAMPLE)
    assert replace(result, content="") == RESULT


@pytest.mark.parametrize(
    ("name", "content"),
    [("result.json", b"{"), ("result.json", b"{}"), ("model.onnx.data", None), ("result.json", None)],
)
def test_an_incomplete_conversion_is_none(conversion: Conversion, name: str, content: bytes | None) -> None:
    directory = layout.candidate_directory("c" * 16)
    assert find_conversion(directory, "c" * 16) == conversion
    assert find_conversion(directory, "d" * 16) is None
    (directory / name).unlink()
    if content is not None:
        (directory / name).write_bytes(content)
    assert find_conversion(directory, "c" * 16) is None
