"""The sample's step reads the files that programs write as JPEG and PNG, and says what it does not read."""

import io
import sys
import types
from collections.abc import Iterator
from typing import Any

import numpy
import pytest
from PIL import Image

from tests.unit.sample_code import module


@pytest.fixture
def decode(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The step, next to a module that only a server has."""
    monkeypatch.setitem(sys.modules, "triton_python_backend_utils", types.ModuleType("triton_python_backend_utils"))
    return module("pictures/decode/decode.py")


def saved(picture: numpy.ndarray[Any, Any], form: str = "PNG", mode: str = "L", size: int = 8) -> bytes:
    file = io.BytesIO()
    Image.fromarray(picture).convert(mode).resize((size, size), Image.Resampling.NEAREST).save(file, form, quality=95)
    return file.getvalue()


def test_it_reads_what_the_dataloader_writes(decode: Any) -> None:
    picture = numpy.arange(64).reshape(8, 8) % 17
    pixels = decode.decoded(module("pictures/dataloader.py").png(picture))
    assert (pixels.dtype, pixels.shape) == (numpy.float32, (64,))
    assert numpy.abs(pixels - picture.ravel() / 16).max() < 1 / 255


@pytest.mark.parametrize("mode", ["L", "RGB"])
@pytest.mark.parametrize("size", [8, 64, 400])
@pytest.mark.parametrize(("form", "most"), [("PNG", 1e-6), ("JPEG", 0.1)])
def test_it_reads_pictures_of_any_size_and_colours(decode: Any, form: str, most: float, size: int, mode: str) -> None:
    picture = numpy.add.outer(numpy.arange(8), numpy.arange(8)).astype(numpy.uint8) * 18
    pixels = decode.decoded(saved(picture, form, mode, size))
    assert numpy.abs(pixels - picture.ravel() / 255).max() < most


GOOD = saved(numpy.zeros((8, 8), numpy.uint8))


@pytest.mark.parametrize(
    "file",
    [
        GOOD[:40],
        b"",
        saved(numpy.zeros((8, 8), numpy.uint8), size=5000),
        saved(numpy.zeros((8, 8), numpy.uint8), "JPEG", size=64)[:200],
        saved(numpy.zeros((8, 8), numpy.uint8), "GIF"),
        GOOD.replace(b"IDAT", b"IDAX"),
        b"a picture",
    ],
    ids=["cut", "empty", "large", "cut JPEG", "GIF", "no data", "text"],
)
def test_it_refuses_what_is_no_such_picture(decode: Any, file: bytes) -> None:
    with pytest.raises(decode.BROKEN):
        decode.decoded(file)
