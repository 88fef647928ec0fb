"""How an object learns that files on this machine have changed."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from triton_local.session import Given
from triton_local.versions import versioned

Body = dict[str, Any]
SPEC: Body = {"source": {"uri": "pvc://models/ocr"}, "dataset": {"uri": "pvc://models/data", "version": "v" * 128}}


def versions(claim: Path) -> tuple[str, str]:
    found = versioned(SPEC, Given({"models": claim}))
    return found["source"]["version"], found["dataset"]["version"]


@pytest.fixture
def claim(tmp_path: Path) -> Path:
    for folder in ("ocr/deep", "data"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "ocr/deep/a.onnx").write_text("a")
    (tmp_path / "ocr/b").symlink_to("deep/a.onnx")
    return tmp_path


def replaced(claim: Path) -> None:
    """Put a file of the same length and time in the place of another."""
    times = (claim / "ocr/deep/a.onnx").stat()
    (claim / "new").write_text("b")
    os.utime(claim / "new", ns=(times.st_atime_ns, times.st_mtime_ns))
    (claim / "new").rename(claim / "ocr/deep/a.onnx")


CHANGES: dict[str, Callable[[Path], object]] = {
    "written": lambda claim: (claim / "ocr/deep/a.onnx").write_text("ab"),
    "replaced": replaced,
    "removed": lambda claim: (claim / "ocr/deep/a.onnx").unlink(),
    "renamed": lambda claim: (claim / "ocr/deep").rename(claim / "ocr/deeper"),
    "added": lambda claim: (claim / "ocr/c").touch(),
    "an empty folder": lambda claim: (claim / "ocr/c").mkdir(),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_is_another_version_of_what_it_is_in(what: str, claim: Path) -> None:
    source, dataset = versions(claim)
    assert versions(claim) == (source, dataset)
    CHANGES[what](claim)
    assert versions(claim)[0] != source
    assert versions(claim)[1] == dataset


def test_a_version_of_the_user_s_stays_within_what_a_version_may_be(claim: Path) -> None:
    source, dataset = versions(claim)
    assert source.startswith("files-")
    assert dataset.startswith(f"{'v' * 100}+")
    assert len(dataset) <= 128
    assert SPEC["dataset"]["version"] == "v" * 128


def test_a_config_map_is_one_of_its_text_and_what_is_downloaded_keeps_the_user_s() -> None:
    spec = {"source": {"uri": "configmap://code"}, "weights": {"uri": "s3://a/b", "version": "2"}}
    found = [versioned(spec, Given(config_maps={"code": {"a.py": text}})) for text in (b"one", b"one", b"two")]
    assert found[0] == found[1]
    assert found[0]["source"]["version"] != found[2]["source"]["version"]
    assert found[0]["weights"] == spec["weights"]


def test_what_is_not_there_has_a_version_too(tmp_path: Path) -> None:
    assert versions(tmp_path) == versions(tmp_path)
