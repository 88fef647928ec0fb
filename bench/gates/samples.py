"""Samples as the models' own users have them, as far as packages hold them: one at a time, by a random generator.

Pictures are cut from scikit-learn's two photographs, and lines of text drawn. Rows of tables lie between two real ones.
Sound is made: voices of harmonics and noise, with pauses. Files are those of Python's standard library.
"""

import gzip
import math
import sysconfig
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy
from PIL import Image, ImageDraw, ImageFont

from bench.gates import packages
from triton_converters.claim_store.dump import Array

Random = numpy.random.Generator
Sampler = Callable[[Random], dict[str, Array]]
"""Makes one sample: inputs by name, without the batch dimension unless the model has none."""
WORDS = (
    "the",
    "quick",
    "brown",
    "fox",
    "jumps",
    "over",
    "a",
    "lazy",
    "dog",
    "and",
    "serves",
    "42",
    "models",
    "to",
    "7",
)


@cache
def _photographs() -> tuple[Array, ...]:
    """Return the pictures, [height, width, 3], 0 to 255."""
    paths = [packages.data(f"images/{name}.jpg") for name in ("china", "flower")]
    return tuple(numpy.asarray(Image.open(path).convert("RGB")) for path in paths)


def picture(random: Random, height: int, width: int) -> Array:
    """Return a part of a photograph, [height, width, 3] in 0 to 255, of any scale, mirrored or not."""
    photograph = _photographs()[random.integers(2)]
    scale = random.uniform(0.5, 1.0)
    high, wide = (max(16, int(scale * each)) for each in photograph.shape[:2])
    top, left = random.integers(photograph.shape[0] - high + 1), random.integers(photograph.shape[1] - wide + 1)
    part = Image.fromarray(photograph[top : top + high, left : left + wide]).resize((width, height))
    array = numpy.asarray(part, dtype=numpy.float32) * random.uniform(0.7, 1.0)
    return array[:, ::-1].copy() if random.integers(2) else array


def line(random: Random, height: int, width: int) -> Array:
    """Return some words on a plain ground, [height, width, 3] in 0 to 255."""
    ground, ink = (int(each) for each in (random.integers(180, 256), random.integers(0, 80)))
    image = Image.new("RGB", (width, height), (ground,) * 3)
    text = " ".join(random.choice(WORDS, random.integers(2, 6)))
    font = ImageFont.load_default(size=int(height * random.uniform(0.5, 0.75)))
    ImageDraw.Draw(image).text((int(random.integers(2, 12)), 2), text, fill=(ink,) * 3, font=font)
    return numpy.asarray(image, dtype=numpy.float32) + random.normal(0, 2, (height, width, 3)).astype(numpy.float32)


def page(random: Random, size: int) -> Array:
    """Return lines of text over a part of a photograph, [size, size, 3] in 0 to 255."""
    image = picture(random, size, size)
    for _ in range(random.integers(1, 4)):
        height, width = int(random.integers(20, 40)), int(random.integers(size // 2, size))
        top, left = random.integers(size - height + 1), random.integers(size - width + 1)
        image[top : top + height, left : left + width] = line(random, height, width)
    return image


def sound(random: Random, count: int, rate: int = 16000) -> Array:
    """Return [count] samples in -1 to 1: syllables of harmonics that glide, of noise, and pauses between them."""
    made, start = numpy.zeros(count), int(random.integers(0, rate // 20))
    while start < count:
        length = min(int(random.uniform(0.05, 0.3) * rate), count - start)
        time = numpy.arange(length) / rate
        pitch = random.uniform(90, 260) * (1 + random.uniform(-0.3, 0.3) * time)
        phase, kind = 2 * math.pi * numpy.cumsum(pitch) / rate, random.random()
        weights = random.uniform(0.2, 1, 12) / numpy.arange(1, 13)
        voice = sum(weight * numpy.sin(number * phase) for number, weight in enumerate(weights, start=1))
        noise = random.normal(0, 0.3, length)
        made[start : start + length] = numpy.hanning(length) * (voice if kind < 0.6 else noise if kind < 0.8 else 0)
        start += length + int(random.uniform(0, 0.1) * rate)
    made = made * random.uniform(0.1, 0.6) / max(1e-3, float(numpy.abs(made).max()))
    return (made + random.normal(0, 1e-3, count)).astype(numpy.float32)


@cache
def _table(name: str) -> Array:
    """Return a table's columns of features, [rows, columns]."""
    path = packages.data(f"data/{name}")
    text = gzip.decompress(path.read_bytes()).decode() if name.endswith(".gz") else path.read_text()
    separator = "," if "," in text else None
    rows = [row.split(separator) for row in text.splitlines()]
    if name in ("iris.csv", "wine_data.csv"):
        return numpy.array([row[:-1] for row in rows[1:]], dtype=numpy.float64)
    if name == "linnerud_exercise.csv":
        return numpy.array(rows[1:], dtype=numpy.float64)
    return numpy.array(rows, dtype=numpy.float64)[:, :64]


def row(name: str, kind: str = "float32", input_name: str = "X") -> Sampler:
    """Return a sampler of rows that lie between two of a table's."""

    def sample(random: Random) -> dict[str, Array]:
        table = _table(name)
        if name.startswith("diabetes"):
            # As scikit-learn's loader scales it: each column's sum of squares is 1.
            table = (table - table.mean(0)) / (table.std(0) * len(table) ** 0.5)
        one, other = table[random.integers(len(table), size=2)]
        share = random.uniform(0, 0.4)
        return {input_name: ((1 - share) * one + share * other).astype(kind)}

    return sample


@cache
def _files() -> tuple[Path, ...]:
    """Return files of many kinds, of which Python consists."""
    found = sorted(each for each in Path(sysconfig.get_path("stdlib")).rglob("*") if each.is_file())
    return tuple(each for each in found if "site-packages" not in each.parts)


def file_ends(random: Random) -> Array:
    """Return the first and last 1,024 bytes of a file, [2048]; 256: it has none there."""
    files = _files()
    content = files[random.integers(len(files))].read_bytes()
    ends = numpy.full(2048, 256, dtype=numpy.int32)
    first, last = content[:1024], content[-1024:]
    ends[: len(first)] = list(first)
    ends[2048 - len(last) :] = list(last)
    return ends


def words(random: Random, length: int, vocabulary: int) -> Array:
    """Return [length] numbers of a vocabulary, of which the first ones are the most frequent, as in texts."""
    return numpy.minimum(vocabulary - 1, random.zipf(1.3, length)).astype(numpy.int64)
