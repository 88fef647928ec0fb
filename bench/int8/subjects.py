"""The models, each with data and a metric, as a user's folder: model.onnx, data.npz, dataloader.py and metrics.py."""

import ast
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy
import onnx
import onnxruntime

from bench.gates import packages
from hack.deploy.command import ROOT
from tests.zoo.fetch import fetch, once, unpacked
from tests.zoo.models import BY_NAME
from triton_converters.contract.accuracy import Threshold
from triton_converters.contract.formats import CONVERTER

FOLDER = Path(__file__).parent
IMAGE_PYTHON = "3.13"
"""The version in the converter image, which the packages are for."""
LETTERS = 40
"""The letters of a text without spaces; a longer one is cut, a shorter one padded."""
MOST_TEXTS = 160
KHMER = re.compile("[\u1780-\u17ff]+")
SEPARATOR = "\u200b"
"""The space without width, which some of those who write Khmer put between some words."""
UNKNOWN = 1
"""The number of a letter that the model does not know."""
MESSAGE = re.compile(r'^msgstr(?:\[0\])? ("(?:.*\n")*.*")$', re.MULTILINE)


@dataclass(frozen=True)
class Subject:
    """A model and how its answers are judged."""

    name: str
    told: str
    """What it is, and of what data."""
    metric: str
    """A name of user/metrics.py."""
    output: str
    max_degradation: float
    """The threshold."""
    max_batch_size: int
    """0: no batch dimension."""
    fill: Callable[[Path], None]
    """Writes model.onnx and data.npz into a folder."""

    @property
    def threshold(self) -> Threshold:
        """The threshold as the operator judges it."""
        return Threshold(self.metric, None, None, self.max_degradation)


def _trained(name: str) -> Callable[[Path], None]:
    """Return what copies a network that training.py makes, once for each state of what it is made of."""

    def fill(folder: Path) -> None:
        made = _networks()
        for file in ("model.onnx", "data.npz"):
            shutil.copyfile(made / name / file, folder / file)

    return fill


def _networks() -> Path:
    """Return the folder with all trained networks, from the cache if they are there."""
    program, wheels = FOLDER / "training.py", unpacked(FOLDER / "packages.txt", IMAGE_PYTHON)
    example, texts = ROOT / "manifests/examples/digits", ROOT / "manifests/samples/texts"
    files = (program, example / "model.py", texts / "train.py", texts / "texts.tsv", texts / "tokenize/tokenizer.json")
    digest = hashlib.sha256(wheels.name.encode() + b"".join(each.read_bytes() for each in files)).hexdigest()

    def make(folder: Path) -> None:
        mounts = [
            f"{program}:/training.py:ro",
            f"{wheels}:/packages:ro",
            f"{example}:/digits:ro",
            f"{texts}:/texts:ro",
            f"{packages.data('.')}:/datasets:ro",
            f"{folder}:/made",
        ]
        options = [word for each in mounts for word in ("--mount", each)]
        # The image's own packages come first.
        start = "import runpy, sys; sys.path.append('/packages'); runpy.run_path('/training.py', run_name='__main__')"
        argv = [sys.executable, "-m", "hack.imagebuild", "run", CONVERTER, *options, "--env", "OMP_NUM_THREADS=1"]
        subprocess.run([*argv, "--", "python3", "-W", "ignore", "-c", start, "/made"], cwd=ROOT, check=True)

    return once(f"int8-{digest[:12]}", make)


def _khmer(folder: Path) -> None:
    """Write the zoo's model, its weights in one file, and texts of Django's messages.

    Nobody marked where their words begin, so the labels are what the model itself finds in fp32.
    """
    model = BY_NAME["khmer-words"]
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        onnx.save(onnx.load(place / fetch(model, place)), folder / "model.onnx")
        config = place / fetch(replace(model, path="khmersm/config.json"), place)
        numbers = json.loads(config.read_text(encoding="utf-8"))["char2id"]
    catalogs = sorted((unpacked(FOLDER / "packages.txt", IMAGE_PYTHON) / "django").rglob("locale/km/**/django.po"))
    messages = [
        "".join(map(ast.literal_eval, strings.splitlines()))
        for catalog in catalogs
        for strings in MESSAGE.findall(catalog.read_text(encoding="utf-8"))
    ]
    texts = runs(messages)
    inputs = numpy.zeros((len(texts), LETTERS), numpy.int64)
    for given, text in zip(inputs, texts, strict=True):
        given[: len(text)] = [numbers.get(each, UNKNOWN) for each in text]
    mask = inputs > 0
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"), providers=["CPUExecutionProvider"])
    scores = [session.run(None, {"x": x[None], "mask": there[None]})[0] for x, there in zip(inputs, mask, strict=True)]
    labels = numpy.where(mask, numpy.concatenate(scores).argmax(axis=-1), -1)
    arrays: dict[str, Any] = {"inputs/x": inputs, "inputs/mask": mask, "labels/label": labels}
    numpy.savez(folder / "data.npz", **arrays)


def runs(messages: Iterable[str]) -> list[str]:
    """Return the longest texts without spaces in Khmer letters, each once and cut."""
    found = dict.fromkeys(text for message in messages for text in KHMER.findall(message.replace(SEPARATOR, "")))
    return [text[:LETTERS] for text in sorted(found, key=len, reverse=True)[:MOST_TEXTS]]


SUBJECTS = (
    Subject(
        name="digits",
        told="the example's network with 96 channels, trained here; handwritten digits that it has not seen",
        metric="accuracy",
        output="scores",
        max_degradation=0.01,
        max_batch_size=8,
        fill=_trained("digits"),
    ),
    Subject(
        name="languages",
        told="a transformer, trained here; Django's messages in eight languages that it has not seen",
        metric="accuracy",
        output="scores",
        max_degradation=0.01,
        max_batch_size=8,
        fill=_trained("languages"),
    ),
    Subject(
        name="khmer-words",
        told="the transformer of the package khmersm, as it is; Django's Khmer messages, with the model's own labels",
        metric="boundaries",
        output="emissions",
        max_degradation=0.01,
        max_batch_size=0,
        fill=_khmer,
    ),
    Subject(
        name="restorer",
        told=(
            "a network of convolutions, trained here; parts of a photograph that it has not seen, with faint made noise"
        ),
        metric="psnr",
        output="scores",
        max_degradation=0.1,
        max_batch_size=8,
        fill=_trained("restorer"),
    ),
)
CHOICE = {each.name: each for each in SUBJECTS}
"""The subjects by name."""
