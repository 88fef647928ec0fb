"""The sample's step reads what programs write as PNG, and says what it does not read."""

import io
import sys
import types
import zlib
from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy
import pytest
from PIL import Image

SAMPLE = Path(__file__).parents[2] / "manifests/samples/pictures"


def module(path: str) -> Any:
    """A file of the sample."""
    spec = spec_from_file_location(Path(path).stem, SAMPLE / path)
    assert spec is not None
    assert spec.loader is not None
    made = module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


@pytest.fixture
def decode(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The step, next to a module that only a server has."""
    monkeypatch.setitem(sys.modules, "triton_python_backend_utils", types.ModuleType("triton_python_backend_utils"))
    return module("decode/decode.py")


def saved(picture: numpy.ndarray[Any, Any], mode: str = "L") -> bytes:
    file = io.BytesIO()
    Image.fromarray(picture).convert(mode).save(file, "PNG")
    return file.getvalue()


def test_it_reads_what_the_dataloader_writes(decode: Any) -> None:
    picture = numpy.arange(64).reshape(8, 8) % 17
    pixels = decode.decoded(module("dataloader.py").png(picture))
    assert (pixels.dtype, pixels.shape) == (numpy.float32, (64,))
    assert numpy.abs(pixels - picture.ravel() / 16).max() < 1 / 255


@pytest.mark.parametrize("kind", range(5))
def test_it_undoes_each_filter(decode: Any, kind: int) -> None:
    picture = numpy.random.default_rng(kind).integers(0, 256, (8, 8))
    wide = numpy.pad(picture, ((1, 0), (1, 0)))
    left, up, corner = wide[1:, :-1], wide[:-1, 1:], wide[:-1, :-1]
    foretold = left + up - corner
    ties = numpy.stack([abs(foretold - each) for each in (left, up, corner)]).argmin(0)
    paeth = numpy.choose(ties, [left, up, corner])
    rows = (picture - [0 * left, left, up, (left + up) // 2, paeth][kind]) % 256
    stored = b"".join(bytes([kind, *row]) for row in rows.tolist())
    plain = saved(picture.astype(numpy.uint8))
    at = plain.index(b"IDAT")
    length = int.from_bytes(plain[at - 4 : at])
    content = zlib.compress(stored)
    file = plain[: at - 4] + len(content).to_bytes(4) + b"IDAT" + content + bytes(4) + plain[at + 8 + length :]
    assert decode.decoded(file).tolist() == (picture.ravel() / 255).astype(numpy.float32).tolist()


def test_it_reads_what_pillow_writes(decode: Any) -> None:
    picture = numpy.random.default_rng(0).integers(0, 256, (8, 8)).astype(numpy.uint8)
    assert numpy.array_equal(decode.decoded(saved(picture)), (picture.ravel() / 255).astype(numpy.float32))


GOOD = saved(numpy.zeros((8, 8), numpy.uint8))


@pytest.mark.parametrize(
    "file",
    [
        GOOD[:40],
        b"",
        saved(numpy.zeros((9, 9), numpy.uint8)),
        saved(numpy.zeros((8, 8), numpy.uint8), "RGB"),
        GOOD.replace(b"IDAT", b"IDAX"),
        b"a picture",
    ],
    ids=["cut", "empty", "larger", "coloured", "no data", "text"],
)
def test_it_refuses_what_is_no_such_picture(decode: Any, file: bytes) -> None:
    with pytest.raises(decode.BROKEN):
        decode.decoded(file)
